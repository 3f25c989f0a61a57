//! The checkpoints of one session beneath one root.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rethread_store::backend::{LogKey, LogName};
use rethread_store::{EntryId, Session};

use crate::ancestry;
use crate::capture::Moment;
use crate::contents::Contents;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::hands::Hands;
use crate::lines;
use crate::log::{Log, News};
use crate::look::{SMALL, look};
use crate::name::Name;
use crate::plan::{Choices, Plan, Step};
use crate::planner::{Lines, Planner};
use crate::point::{self, Point};
use crate::record::{Checkpoint, What};
use crate::rewind::Recovered;
use crate::root::Root;
use crate::settings::{Settings, Switch};
use crate::state::State;
use crate::tracker::Tracker;

/// The checkpoints of one session beneath one root.
///
/// # Example
///
/// ```
/// use rethread_checkpoint::{Checkpointer, Choices, Moment, Point, Settings};
/// use rethread_store::{MemoryBackend, NewSession, Options, Store};
///
/// # let folder = tempfile::tempdir()?;
/// # let project = folder.path();
/// # pollster::block_on(async {
/// let store = Store::new(MemoryBackend::default(), Options::default());
/// let session = store.create(NewSession::at(project)).await?;
/// std::fs::write(project.join("greeting"), "hello\n")?;
///
/// let checkpoints = Checkpointer::open(&session, project, Settings::default()).await?;
/// let before = checkpoints.before(Moment::default(), &["greeting"]).await?;
/// std::fs::write(project.join("greeting"), "goodbye\n")?; // what a tool does
/// checkpoints.after(Moment::default(), &["greeting"]).await?;
///
/// let plan = checkpoints.plan(&Point::At(before.id), &Choices::default()).await?;
/// let rewound = checkpoints.apply(&plan).await?;
/// assert_eq!(std::fs::read_to_string(project.join("greeting"))?, "hello\n");
/// assert_eq!((rewound.insertions, rewound.deletions, rewound.receipt.is_some()), (1, 1, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Checkpointer {
    /// Whose checkpoints these are.
    session: Session,
    /// Where they are recorded: a child's edits belong to the turn that spawned it.
    owner: Session,
    root: Root,
    settings: Settings,
    contents: Contents,
    state: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) log: Log,
    /// What ancestors recorded up to where this session begins.
    inherited: Arc<Vec<Checkpoint>>,
    /// Captures that failed and are not recorded yet.
    missed: Vec<String>,
    pub(crate) tracker: Option<Tracker>,
    pub(crate) recovered: Vec<Recovered>,
}

impl Checkpointer {
    /// Opens a session's checkpoints beneath a folder. A rewind that was interrupted is finished or taken back first.
    pub async fn open(session: &Session, root: &Path, settings: Settings) -> Result<Self> {
        let opened = Self::unsettled(session, root, settings).await?;
        if opened.is_on() {
            opened.settle().await?;
        }
        Ok(opened)
    }

    /// The same, and leaves what was interrupted as it is.
    pub(crate) async fn unsettled(session: &Session, root: &Path, settings: Settings) -> Result<Self> {
        let root = Root::open(root)?;
        let owner = ancestry::owner(session).await?;
        let backend = session.store().backend();
        let inherited = Arc::new(ancestry::inherited(&owner).await?);
        let inner = Inner {
            log: Log::default(),
            inherited,
            missed: Vec::new(),
            tracker: None,
            recovered: Vec::new(),
        };
        let (contents, state) = (Contents::of(backend), Mutex::new(inner));
        Ok(Self { session: session.clone(), owner, root, settings, contents, state })
    }

    /// Returns whether anything is captured.
    pub fn is_on(&self) -> bool {
        self.settings.switch == Switch::On && self.session.store().backend().capabilities().keeps
    }

    /// Returns whose checkpoints these are.
    pub fn session_id(&self) -> &rethread_store::SessionId {
        self.session.id()
    }

    /// Returns the canonical folder that all paths are beneath.
    pub fn root_path(&self) -> &Path {
        self.root.path()
    }

    /// Returns the interrupted rewinds that were finished or taken back since this was opened.
    pub fn recovered(&self) -> Vec<Recovered> {
        self.inner().recovered.clone()
    }

    /// Returns what a rewind to a point would do.
    pub async fn plan(&self, to: &Point, choices: &Choices) -> Result<Plan> {
        self.settle().await?;
        self.plan_with(to, choices, Lines::Counted).await
    }

    /// Returns how a path's content differs now from what a step would restore, as a unified diff from the restored
    /// content to the present one; nothing for what has no lines.
    pub async fn diff(&self, step: &Step) -> Result<Option<String>> {
        let size = |state: &State| state.file().map_or(0, |file| file.size);
        if size(&step.target).max(size(&step.now)) > SMALL || step.target.is_folder() || step.now.is_folder()
        {
            return Ok(None);
        }
        let old = self.contents.small(&step.path, &step.target).await?;
        let new = look(&self.root, &step.path, SMALL).bytes;
        Ok(lines::unified_diff(&step.path.to_string(), old.as_deref(), new.as_deref()))
    }

    /// Returns all captures, those of ancestors first, the oldest first.
    pub async fn checkpoints(&self) -> Result<Vec<Checkpoint>> {
        self.settle().await?;
        let mut all = self.live().await?;
        all.retain(Checkpoint::is_capture);
        if self.owner.id() != self.session.id() {
            all.retain(|record| record.session.as_ref() == Some(self.session.id()));
        }
        Ok(all)
    }

    /// Returns what can be rewound to by name: every capture, and every message in whose turn something was captured or
    /// should have been.
    pub async fn points(&self) -> Result<HashSet<EntryId>> {
        self.settle().await?;
        let (owner, own) = (self.owner.id(), self.session.id());
        let is_own = |record: &Checkpoint| owner == own || record.session.as_ref() == Some(own);
        let mut points = HashSet::new();
        for record in self.live().await?.into_iter().filter(is_own) {
            points.extend(record.message.clone());
            if record.is_capture() {
                points.insert(record.id);
            }
        }
        Ok(points)
    }

    pub(crate) async fn plan_with(&self, to: &Point, choices: &Choices, lines: Lines) -> Result<Plan> {
        if !self.is_on() {
            return Err(Error::Off);
        }
        let records = self.live().await?;
        let mut fold = match to {
            Point::At(point) => {
                let from = self.find(&records, point).await?;
                Fold::of(records[from..].iter())
            }
            Point::Turn(message) => {
                let of_turn: Vec<_> =
                    records.iter().filter(|record| record.message.as_ref() == Some(message)).collect();
                if of_turn.is_empty() {
                    return Err(self.no_such_point(message));
                }
                Fold::of(of_turn.into_iter())
            }
            Point::Undo(receipt) => {
                let session = self.session.id().clone();
                let no_such = || Error::NoSuchReceipt { session, receipt: receipt.clone() };
                let record = records.iter().find(|record| record.id == *receipt && record.rewind.is_some());
                Fold::of(std::iter::once(record.ok_or_else(no_such)?))
            }
        };
        // What was left out before the point is still left out.
        let left_out = records.iter().flat_map(|record| &record.left_out);
        fold.left_out.extend(left_out.map(|left| (left.path.clone(), left.reason.clone())));
        fold.incomplete.extend(self.with_log(|log| log.damage.clone()));
        fold.paths.retain(|path, _| !self.is_forbidden(path));
        let plan = Plan {
            session: self.session.id().clone(),
            root: self.root.path().to_owned(),
            to: to.clone(),
            choices: choices.clone(),
            steps: Vec::new(),
            conflicts: Vec::new(),
            skipped: Vec::new(),
            incomplete: Vec::new(),
            insertions: 0,
            deletions: 0,
            digest: rethread_store::BlobId::of(b""),
        };
        let (limit, replaced) = (u64::MAX, BTreeSet::new());
        Planner { root: &self.root, contents: &self.contents, plan, limit, replaced }.make(fold, lines).await
    }

    /// Returns the first record that counts for a point.
    pub(crate) async fn find(&self, records: &[Checkpoint], point: &EntryId) -> Result<usize> {
        if let Some(at) = point::find(records, point) {
            return Ok(at);
        }
        // A message whose turn changed nothing: the first turn after it that did.
        let chain = self.session.messages().await?;
        let mut ids =
            chain.records.iter().map(|record| record.entry.id()).skip_while(|id| *id != point).peekable();
        if ids.peek().is_none() {
            return Err(self.no_such_point(point));
        }
        let later: HashSet<_> = ids.collect();
        let is_later =
            |record: &Checkpoint| record.message.as_ref().is_some_and(|message| later.contains(message));
        // What retention gave up since then, nobody can take back any more.
        if self.with_log(|log| log.given_up().any(is_later)) {
            return Err(self.no_such_point(point));
        }
        Ok(records.iter().position(is_later).unwrap_or(records.len()))
    }

    pub(crate) fn no_such_point(&self, point: &EntryId) -> Error {
        Error::NoSuchPoint { session: self.session.id().clone(), point: point.clone() }
    }

    pub(crate) async fn refresh(&self) -> Result<()> {
        let from = self.with_log(Log::next);
        let news = News::since(from, self.session.store().backend(), self.owner.id()).await?;
        self.inner().log.take_in(news);
        Ok(())
    }

    pub(crate) fn with_log<T>(&self, ask: impl FnOnce(&Log) -> T) -> T {
        ask(&self.inner().log)
    }

    /// Returns every record that counts and is about this root.
    pub(crate) async fn live(&self) -> Result<Vec<Checkpoint>> {
        let mut all = self.inner().inherited.as_ref().clone();
        all.extend(self.with_log(Log::live));
        all.retain(|record| self.is_here(record));
        Ok(all)
    }

    /// Returns whether a record is about this root. What older stores recorded may not say where it was.
    pub(crate) fn is_here(&self, record: &Checkpoint) -> bool {
        let mut names =
            std::iter::once(self.root.path()).chain(self.settings.formerly.iter().map(PathBuf::as_path));
        record.root.as_ref().is_none_or(|root| names.any(|name| root.as_os_str() == name.as_os_str()))
    }

    /// Adds a record to the log and waits until it is durable.
    pub(crate) async fn record(&self, mut record: Checkpoint) -> Result<Checkpoint> {
        record.root = Some(Name::from(self.root.path().as_os_str()));
        record.session = (self.owner.id() != self.session.id()).then(|| self.session.id().clone());
        let missed = std::mem::take(&mut self.inner().missed);
        record.missed.extend(missed.iter().cloned());
        let recorded = match record.entry() {
            Ok(entry) => self.owner.append_checkpoint(entry).await.map_err(Error::from),
            Err(error) => Err(error),
        };
        match recorded {
            Ok(ack) => {
                record.position = ack.records.first().map_or(0, |placed| placed.position);
                Ok(record)
            }
            Err(error) => {
                self.inner().missed.extend(missed);
                Err(error)
            }
        }
    }

    /// Says that something was to be captured and was not, so that no plan across it claims to be complete.
    ///
    /// The turn that it was to be captured in can be rewound to all the same, as far as anything is known of it.
    pub async fn missed(&self, moment: Moment, why: impl Into<String>) -> Result<()> {
        self.note_missed(why.into());
        let mut record = Checkpoint::new(moment.id.unwrap_or_else(EntryId::generate), What::Missed);
        (record.message, record.tool_use) = (moment.message, moment.tool_use);
        self.record(record).await.map(drop)
    }

    pub(crate) fn note_missed(&self, why: String) {
        self.inner().missed.push(why);
    }

    /// Returns whether a path is the store's own, or one that must never be touched.
    pub(crate) fn is_forbidden(&self, path: &crate::TreePath) -> bool {
        let full = self.root.full(path);
        self.forbidden().iter().any(|folder| full.starts_with(folder))
    }

    pub(crate) fn forbidden(&self) -> Vec<PathBuf> {
        let key = LogKey::new(self.owner.id().clone(), LogName::Checkpoints);
        let log = self.session.store().backend().path(&key);
        let store = log.and_then(|log| log.ancestors().nth(3).map(Path::to_owned));
        let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        self.settings.never.iter().chain(&store).chain(&self.settings.cache).map(canonical).collect()
    }

    pub(crate) fn root(&self) -> Result<&Root> {
        if self.is_on() { Ok(&self.root) } else { Err(Error::Off) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn owner(&self) -> &Session {
        &self.owner
    }

    pub(crate) fn hands(&self) -> &dyn Hands {
        &*self.settings.hands
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

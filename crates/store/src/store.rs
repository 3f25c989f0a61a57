//! All sessions of one place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rethread_redact::Redactor;

use crate::backend::{Backend, Durability, Expect, From, Key, LogKey, LogName, Position, Put, Target};
use crate::chain;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::health::{Event, Health};
use crate::id::{EntryId, SessionId};
use crate::known_folds::KnownFolds;
use crate::lease::Sightings;
use crate::metadata::Metadata;
use crate::note::{Note, Origin};
use crate::session::Session;
use crate::stamp::Flaw;
use crate::writer::{Draft, Limits, Request, Writer};

/// The newest format of a store that this program knows.
pub const FORMAT: u32 = 1;

/// How long somebody who needs a log durable waits for whoever writes it.
const SETTLE_WITHIN: Duration = Duration::from_secs(5);

/// How a store behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// What an acknowledgement means.
    pub durability: Durability,
    /// How much may wait to be written.
    pub limits: Limits,
    /// How long [`Store::close`] waits for what is still being written.
    pub close_within: Duration,
    /// Takes secrets out of entries, and of what sessions are called, before they are written; `None`: entries are kept
    /// byte for byte.
    ///
    /// What was stored before stays as it is, and so does the content of files in checkpoints: a rewind that brought
    /// back anything else would be none.
    pub redactor: Option<Arc<Redactor>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Synced,
            limits: Limits::default(),
            close_within: Duration::from_secs(30),
            redactor: None,
        }
    }
}

/// All sessions of one place. Cheap to clone; the clones share one writer.
///
/// # Example
///
/// ```
/// use rethread_store::{Entry, MemoryBackend, NewSession, Options, Store};
///
/// # pollster::block_on(async {
/// let store = Store::new(MemoryBackend::default(), Options::default());
/// let session = store.create(NewSession::default()).await?;
/// session.append(Entry::parse(r#"{"role":"user","content":"hello"}"#)?).await?.await?;
///
/// let again = store.open(session.id()).await?;
/// assert_eq!(again.messages().await?.records.len(), 1);
/// store.close()?;
/// # Ok::<(), rethread_store::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) writer: Writer,
    pub(crate) sightings: Sightings,
    folds: KnownFolds,
    options: Options,
}

/// What is known of a session before it begins.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NewSession {
    /// Its id; a new one if none is given.
    pub id: Option<SessionId>,
    /// Its working directory, made canonical where it exists.
    pub cwd: Option<PathBuf>,
    /// A person's name for it.
    pub name: Option<String>,
    /// The model that answers.
    pub model: Option<String>,
    /// Who serves the model.
    pub provider: Option<String>,
    /// The agent that it belongs to.
    pub agent_name: Option<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// It belongs to another session, and is listed only when asked for.
    pub child: bool,
    /// Everything else that is to be known of it.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl NewSession {
    /// Returns a session that begins in a directory.
    pub fn at(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..Self::default() }
    }

    /// Sets the id.
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    fn metadata(self) -> Metadata {
        let id = self.id.unwrap_or_else(SessionId::generate);
        let mut metadata = Metadata::new(id, Timestamp::now());
        let cwd = self.cwd.map(|cwd| canonical(&cwd));
        metadata.project = cwd.as_deref().map(|cwd| project_of(cwd).display().to_string());
        metadata.cwd = cwd.map(|cwd| cwd.display().to_string());
        metadata.name = self.name;
        metadata.model = self.model;
        metadata.provider = self.provider;
        metadata.agent_name = self.agent_name;
        metadata.tags = self.tags;
        metadata.child = self.child;
        metadata.extra = self.extra;
        metadata
    }
}

impl Store {
    /// Opens the sessions of a backend. Nothing is read or written yet.
    pub fn new(backend: impl Backend + 'static, options: Options) -> Self {
        Self::on(Arc::new(backend), options)
    }

    /// Opens the sessions of a shared backend.
    pub fn on(backend: Arc<dyn Backend>, options: Options) -> Self {
        let writer = Writer::new(backend.clone(), options.durability, options.limits.clone());
        Self {
            inner: Arc::new(Inner {
                backend,
                writer,
                sightings: Sightings::default(),
                folds: KnownFolds::default(),
                options,
            }),
        }
    }

    /// Returns whether entries are kept as they are, secrets and all.
    pub fn keeps_secrets(&self) -> bool {
        self.inner.options.redactor.is_none()
    }

    pub(crate) fn redactor(&self) -> Option<&Arc<Redactor>> {
        self.inner.options.redactor.as_ref()
    }

    /// Returns the backend, for what is not about sessions.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.inner.backend
    }

    /// Begins a session and waits until that is durable. An id that is taken, even by a session in the trash, is an
    /// error.
    pub async fn create(&self, new: NewSession) -> Result<Session> {
        self.create_with(new.metadata(), None).await
    }

    pub(crate) async fn create_with(
        &self,
        mut metadata: Metadata,
        origin: Option<Origin>,
    ) -> Result<Session> {
        self.claim_format().await?;
        self.redact_names(&mut metadata);
        let id = metadata.session_id.clone();
        let keeps = self.inner.backend.capabilities().keeps;
        let is_unknown = keeps && self.inner.backend.stat(&id).await?.is_none();
        if keeps && !is_unknown {
            match self.check_unreadable(&id).await {
                Err(Error::Damaged { .. } | Error::Erased(_)) => return Err(Error::SessionExists(id)),
                checked => checked?,
            }
        }
        let blank = Metadata::new(id.clone(), metadata.created_at);
        let mut set = blank.changes_to(&metadata);
        // So that a log that ends up in another session's folder is recognised.
        set.insert("session_id".into(), id.as_str().into());
        if let Some(prompt) = &metadata.first_prompt {
            set.insert("first_prompt".into(), prompt.clone().into());
        }
        let note = Note::Created { at: metadata.created_at, set, origin, arrival: None };
        let session = Session::new(self.clone(), id);
        session.note(if is_unknown { Draft::Birth(note) } else { Draft::Note(note) }).await?;
        Ok(session)
    }

    /// Returns a session, or `None` if there is no such one. One in the trash is an error.
    pub async fn load(&self, id: &SessionId) -> Result<Option<Session>> {
        self.check_format().await?;
        let fold = self.fold(id).await?;
        if fold.next == 0 && self.inner.backend.capabilities().keeps {
            return self.check_unreadable(id).await.map(|()| None);
        }
        if fold.purging {
            return Ok(None);
        }
        match fold.metadata.trashed_at {
            Some(_) => Err(Error::Trashed(id.clone())),
            None => Ok(Some(Session::new(self.clone(), id.clone()))),
        }
    }

    /// A session of which no record can be read is damaged, not absent.
    pub(crate) async fn check_unreadable(&self, id: &SessionId) -> Result<()> {
        let backend = &*self.inner.backend;
        let log = LogKey::new(id.clone(), LogName::Messages);
        let chunk = backend.read(&log, From::Position(0), 1).await?;
        // A first record that was merely cut, or that a power cut kept from the disk, was never acknowledged: then the
        // session never began.
        let unborn = |flaw: Flaw| matches!(flaw, Flaw::Cut | Flaw::Nul);
        let something = chunk.tail.is_some_and(|tail| !unborn(tail.flaw)) || !chunk.damage.is_empty();
        let known = Fold::cached(backend, id).await?.is_some_and(|fold| fold.next > 0 && !fold.purging);
        if something || known {
            let reason = "none of its records can be read".into();
            return Err(Error::Damaged { what: format!("session {id}"), reason });
        }
        Ok(())
    }

    /// Returns a session; that there is none is an error.
    pub async fn open(&self, id: &SessionId) -> Result<Session> {
        self.load(id).await?.ok_or_else(|| Error::SessionNotFound(id.clone()))
    }

    /// Returns a session's metadata, whether it is in the trash or not.
    pub async fn metadata(&self, id: &SessionId) -> Result<Metadata> {
        self.metadata_at(id).await.map(|(metadata, _)| metadata)
    }

    /// Returns the same, and the position of the first record of the conversation's log that it does not tell of.
    pub async fn metadata_at(&self, id: &SessionId) -> Result<(Metadata, Position)> {
        self.check_format().await?;
        let fold = self.fold(id).await?;
        if fold.next == 0 || fold.purging {
            return Err(Error::SessionNotFound(id.clone()));
        }
        let modified = match fold.timeless {
            true => self.inner.backend.stat(id).await?.map(|listed| listed.modified),
            false => None,
        };
        Ok((fold.metadata(modified), fold.next))
    }

    /// Reads a session's state, with what this store has accepted for it.
    pub(crate) async fn fold(&self, id: &SessionId) -> Result<Fold> {
        self.catch_up(id).await;
        self.check_erased(id).await?;
        self.inner.folds.load(&*self.inner.backend, id).await
    }

    /// Whoever asks for an erased session does not get it, though a fork may still read through it.
    pub(crate) async fn check_erased(&self, id: &SessionId) -> Result<()> {
        match self.inner.backend.is_erased(id).await? {
            true => Err(Error::Erased(id.clone())),
            false => Ok(()),
        }
    }

    pub(crate) async fn find(
        &self,
        session: &SessionId,
        id: &EntryId,
    ) -> Result<(crate::fold::Leaf, chain::Record)> {
        self.catch_up(session).await;
        chain::find(&self.inner.backend, session, id).await
    }

    /// Waits until what was accepted for a conversation can be read.
    async fn catch_up(&self, session: &SessionId) {
        // What cannot be written now must not keep anybody from reading; `health` tells of it.
        let _ = self.inner.writer.settle(&LogKey::new(session.clone(), LogName::Messages)).await;
    }

    /// Makes a log durable. Writers go to the next log when they find one locked; whoever needs this one waits for it.
    pub(crate) async fn settle(&self, log: &LogKey) -> Result<()> {
        let until = Instant::now() + SETTLE_WITHIN;
        loop {
            match self.inner.backend.settle(log).await {
                Err(Error::Busy { .. }) if Instant::now() < until => {}
                settled => return settled,
            }
        }
    }

    /// Waits until everything accepted so far is durable, or says what is in the way.
    pub async fn flush(&self) -> Result<()> {
        self.inner.writer.flush().await
    }

    /// Stops accepting, makes everything accepted durable, and returns how that went, within
    /// [`Options::close_within`]. Calling it again gives the same answer.
    pub fn close(&self) -> Result<()> {
        let until = Instant::now() + self.inner.options.close_within;
        let result = self.inner.writer.close(self.inner.options.close_within);
        if result.is_ok() {
            let touched = self.inner.writer.take_touched();
            for (session, fold) in touched.into_iter().take_while(|_| Instant::now() < until) {
                // Only an index and a cache; whoever misses them reads the log.
                let messages = LogKey::new(session.clone(), LogName::Messages);
                let _ = pollster::block_on(self.inner.backend.settle(&messages));
                let _ = pollster::block_on(self.cache_known(&session, fold));
            }
        }
        result
    }

    /// Says whether writes get through.
    pub fn health(&self) -> Health {
        self.inner.writer.health()
    }

    /// Returns what goes wrong, and right again, from now on.
    pub fn events(&self) -> async_channel::Receiver<Event> {
        self.inner.writer.subscribe()
    }

    /// Writes the cached metadata of a session whose state may be known already.
    async fn cache_known(&self, id: &SessionId, fold: Option<Fold>) -> Result<()> {
        let backend = &*self.inner.backend;
        if let Some(fold) = fold
            && let Some(change) = backend.change_at(id, fold.next)
            && !fold.purging
        {
            let document = Fold { change, ..fold }.to_document();
            // What others have cached may know more.
            if let Put::Done(_) = backend.put(&Key::metadata(id), &document, Expect::Absent).await? {
                return Ok(());
            }
        }
        self.cache_metadata(id).await.map(drop)
    }

    /// Writes a session's cached metadata, unless it is up to date.
    pub(crate) async fn cache_metadata(&self, id: &SessionId) -> Result<Fold> {
        let backend = &*self.inner.backend;
        // Taken before the log is read: should it grow meanwhile, the cache merely looks older than it is.
        let change = backend.stat(id).await?.map(|listed| listed.change).unwrap_or_default();
        let cached = Fold::cached(backend, id).await?;
        let known = cached.as_ref().map_or(0, |cached| cached.next);
        let mut fold = Fold::load_from(backend, id, cached).await?;
        if known > fold.next {
            // The log was longer once. Until a repair has noted the loss, this is all that knows of it.
            return Ok(fold);
        }
        if fold.next > 0 && !fold.purging && fold.change != change {
            fold.change = change;
            // What it says was in the log must not be lost with the next power cut.
            backend.settle(&LogKey::new(id.clone(), LogName::Messages)).await?;
            backend.put(&Key::metadata(id), &fold.to_document(), Expect::Any).await?;
        }
        Ok(fold)
    }

    /// Writes a session's cached metadata from its log alone, and forgets what else was known of the log.
    pub(crate) async fn rebuild_metadata(&self, id: &SessionId) -> Result<()> {
        for derived in [Key::metadata(id), Key::listed(id), Key::replica(id)] {
            self.inner.backend.remove(&Target::Document(derived)).await?;
        }
        self.cache_metadata(id).await.map(drop)
    }

    /// Makes sure that this program knows the store's format.
    pub(crate) async fn check_format(&self) -> Result<()> {
        match self.inner.backend.get(&Key::format()).await? {
            Some(document) => check_format(&document.bytes),
            None => Ok(()),
        }
    }

    /// Says which format the store has, before the first write to it.
    pub(crate) async fn claim_format(&self) -> Result<()> {
        let backend = &*self.inner.backend;
        if let Some(document) = backend.get(&Key::format()).await? {
            return check_format(&document.bytes);
        }
        let ours = format!("{{\"rethread\":{FORMAT}}}\n");
        match backend.put(&Key::format(), ours.as_bytes(), Expect::Absent).await? {
            Put::Conflict(Some(document)) => check_format(&document.bytes),
            _ => Ok(()),
        }
    }

    pub(crate) async fn request(&self, log: &LogKey, request: Request) -> Result<crate::Ticket> {
        self.inner.writer.submit(log, request).await
    }
}

/// Returns a directory without links and dots, or as it is if it is not there.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Returns the repository that a directory is in, else the directory itself.
pub(crate) fn project_of(cwd: &Path) -> PathBuf {
    let is_root = |folder: &&Path| folder.join(".git").try_exists().unwrap_or(false);
    cwd.ancestors().find(is_root).unwrap_or(cwd).to_owned()
}

fn check_format(document: &[u8]) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Format {
        rethread: u32,
    }
    let found = String::from_utf8_lossy(document).trim().to_owned();
    match serde_json::from_str(&found) {
        Ok(Format { rethread }) if rethread <= FORMAT => Ok(()),
        Ok(Format { rethread }) => Err(Error::NewerFormat { found: rethread.to_string(), known: FORMAT }),
        Err(error) => {
            if found.starts_with("{\"sealed\":") {
                return Err(Error::Key("the store is encrypted, and no key was given"));
            }
            Err(Error::Damaged { what: "format.json of the store".into(), reason: error.to_string() })
        }
    }
}

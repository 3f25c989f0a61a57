//! Whole-tree captures: what changed beneath the root since the last one, whoever changed it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use jiff::Timestamp;
use rethread_store::backend::Position;
use rethread_store::{BlobId, EntryId};
use serde::{Deserialize, Serialize};

use crate::cache;
use crate::capture::Moment;
use crate::checkpointer::Checkpointer;
use crate::error::{Error, Result};
use crate::known::{Item, Known, split};
use crate::look::Print;
use crate::path::TreePath;
use crate::record::{Baseline, Change, Checkpoint, LeftOut, Source, What};
use crate::root::Root;
use crate::state::State;
use crate::walk::{self, Found, News, Walk};

/// How many changes go into one record.
const MOST_CHANGES: usize = 20_000;
/// From how many changes on the cache is written again; what it misses is only read again.
const STALE: usize = 64;

/// What happened since the capture before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Tools ran; what changed is theirs, though a person's save at that moment cannot be told apart.
    Tools,
    /// No tool ran: what changed, somebody else did.
    Idle,
}

/// What is known of the tree between two captures.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub(crate) known: Known,
    /// The log up to here is taken in.
    pub(crate) position: Position,
    /// Whether a record of this session says what the whole tree was.
    pub(crate) baseline: bool,
    /// How many changes the cache has missed.
    pub(crate) stale: usize,
}

/// A path of a baseline's list.
#[derive(Serialize, Deserialize)]
struct Listed {
    path: TreePath,
    state: State,
}

impl Checkpointer {
    /// Records what changed anywhere beneath the root since the last whole-tree capture. The first one of a session
    /// records what is there.
    ///
    /// What `.gitignore` and `.rethreadignore` name is left out, every `.git` and the store itself too.
    pub async fn tree(&self, moment: Moment, window: Window) -> Result<Checkpoint> {
        self.tree_telling(moment, window, &|_| {}).await
    }

    /// The same, and says how many paths were looked at more closely so far.
    pub async fn tree_telling(
        &self,
        moment: Moment,
        window: Window,
        tell: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Checkpoint> {
        let mut record = self.begin(What::Tree, moment).await?;
        if !self.is_on() {
            return Ok(record);
        }
        let captured = self.capture_tree(&mut record, window, tell).await;
        captured.map(|()| record).inspect_err(|error| self.note_missed(format!("the whole tree: {error}")))
    }

    async fn capture_tree(
        &self,
        record: &mut Checkpoint,
        window: Window,
        tell: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<()> {
        let _hold = self.root()?.share()?;
        let taken = self.inner().tracker.take();
        let mut tracker = match taken {
            Some(tracker) => tracker,
            None => self.load_tracker().await?,
        };
        self.with_log(|log| {
            let later = log.records.iter().filter(|record| record.position >= tracker.position);
            let happened =
                later.filter(|record| self.is_here(record)).filter_map(|record| log.happened(record));
            happened.for_each(|record| tracker.known.learn(&record.changes));
            tracker.position = log.next();
        });
        let source = if window == Window::Tools { Source::Window } else { Source::Outside };
        let mut gathering = Gathering::new(self, source, tracker.baseline);
        tracker.known = gathering.walk(tracker.known, tell).await?;
        tracker.stale += gathering.stale;
        record.changes = gathering.changes.into_values().collect();
        let before =
            std::mem::replace(&mut tracker.known.left_out, gathering.left_out.keys().cloned().collect());
        let new =
            gathering.left_out.into_iter().filter(|(path, _)| !tracker.baseline || !before.contains(path));
        record.left_out = new.map(|(path, reason)| LeftOut { path, reason }).collect();
        if !tracker.baseline {
            record.tree = Some(self.list(&tracker.known).await?);
        }
        self.record_tree(record).await?;
        let first = !std::mem::replace(&mut tracker.baseline, true);
        if first || tracker.stale >= STALE {
            cache::write(self, &tracker);
            tracker.stale = 0;
        }
        self.inner().tracker = Some(tracker);
        Ok(())
    }

    /// Records a capture, in several records if it is very large.
    async fn record_tree(&self, record: &mut Checkpoint) -> Result<()> {
        let all = std::mem::take(&mut record.changes);
        let first = all.iter().take(MOST_CHANGES).cloned().collect();
        *record = self.record(Checkpoint { changes: first, ..record.clone() }).await?;
        for part in all.chunks(MOST_CHANGES).skip(1) {
            let part = part.to_vec();
            let more = Checkpoint {
                changes: part,
                left_out: Vec::new(),
                tree: None,
                missed: Vec::new(),
                ..record.clone()
            };
            self.record(Checkpoint { id: EntryId::generate(), ..more }).await?;
        }
        record.changes = all;
        Ok(())
    }

    /// Stores the list of everything that is known.
    async fn list(&self, known: &Known) -> Result<Baseline> {
        let failed = |error: std::io::Error| Error::io("list", self.root_path())(error);
        let mut list = zstd::stream::Encoder::new(Vec::new(), 1).map_err(failed)?;
        let all = known.all();
        for (path, state) in &all {
            let line = serde_json::to_vec(&Listed { path: path.clone(), state: (*state).clone() });
            list.write_all(&line.unwrap_or_default()).and_then(|()| list.write_all(b"\n")).map_err(failed)?;
        }
        let list = self.contents().put(list.finish().map_err(failed)?).await?;
        Ok(Baseline { list, paths: all.len() as u64, holds: known.holds().into_iter().collect() })
    }

    /// Finds out what is known, from the cache or from the log.
    async fn load_tracker(&self) -> Result<Tracker> {
        let cached = cache::read(self);
        let recorded = self.with_log(|log| {
            log.live().into_iter().rev().find(|record| record.tree.is_some() && self.is_here(record))
        });
        match (cached, recorded) {
            (Some((true, tracker)), Some(_)) if tracker.baseline => Ok(tracker),
            (hint, Some(record)) => self.read_list(&record, hint.map(|(_, tracker)| tracker.known)).await,
            (Some((_, hint)), None) => self.begin_with(hint.known).await,
            (None, None) => Ok(Tracker::default()),
        }
    }

    /// Reads the list of a baseline; what looks as another session knows it need not be read again.
    async fn read_list(&self, record: &Checkpoint, hint: Option<Known>) -> Result<Tracker> {
        let lost = |reason: String| rethread_store::Error::Damaged {
            what: "the list of a whole-tree capture".into(),
            reason,
        };
        let Some(baseline) = &record.tree else { return Ok(Tracker::default()) };
        let packed = self.contents().backend().get_blob(&baseline.list, 0..u64::MAX).await?;
        let packed = packed.ok_or_else(|| lost("it is missing".into()))?;
        let list = zstd::stream::decode_all(&packed[..]).map_err(|error| lost(error.to_string()))?;
        let mut known = Known::default();
        for line in list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Listed { path, state } =
                serde_json::from_slice(line).map_err(|error| lost(error.to_string()))?;
            let (folder, name) = split(&path);
            let mut item = Item::new(name, state, Print::default(), 0);
            if let Some(seen) = hint
                .as_ref()
                .and_then(|hint| find(hint, folder, name))
                .filter(|seen| seen.state.same(&item.state))
            {
                (item.print, item.young) = (seen.print, seen.young);
            }
            known.folders.entry(folder.into()).or_default().push(item);
        }
        let left_out =
            |record: &Checkpoint| record.left_out.iter().map(|left| left.path.clone()).collect::<Vec<_>>();
        known.left_out = self.with_log(|log| log.records.iter().flat_map(left_out).collect());
        Ok(Tracker { known, position: record.position + 1, baseline: true, stale: STALE })
    }

    /// Begins with what another session knows, as far as its contents are still there.
    async fn begin_with(&self, mut known: Known) -> Result<Tracker> {
        let mut missing = BTreeSet::new();
        for blob in known.holds() {
            // Made young: nothing refers to it yet on behalf of this session.
            if !self.contents().backend().refresh_blob(&blob).await? {
                missing.insert(blob);
            }
        }
        known.forget(&missing);
        known.left_out.clear();
        known.folders.values_mut().flatten().for_each(|item| item.open = false);
        Ok(Tracker { known, ..Tracker::default() })
    }
}

fn find<'a>(known: &'a Known, folder: &[u8], name: &[u8]) -> Option<&'a Item> {
    known.folders.get(folder)?.iter().find(|item| *item.name == *name)
}

/// What a walk comes to.
struct Gathering<'a> {
    checkpointer: &'a Checkpointer,
    source: Source,
    /// Whether what is new is a change, or was there before anybody looked.
    baseline: bool,
    began: i64,
    changes: BTreeMap<TreePath, Change>,
    left_out: BTreeMap<TreePath, String>,
    stale: usize,
}

impl<'a> Gathering<'a> {
    fn new(checkpointer: &'a Checkpointer, source: Source, baseline: bool) -> Self {
        let began = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        let (changes, left_out) = (BTreeMap::new(), BTreeMap::new());
        Self { checkpointer, source, baseline, began, changes, left_out, stale: 0 }
    }

    /// Walks the tree, stores what is new, and returns what is known then.
    async fn walk(&mut self, known: Known, tell: &(dyn Fn(u64) + Send + Sync)) -> Result<Known> {
        let (root, settings) = (self.checkpointer.root()?, self.checkpointer.settings());
        let walk = Arc::new(Walk {
            known,
            never: self.never(),
            file_limit: settings.tree_file_limit,
            total_limit: settings.tree_total_limit,
            paths_limit: settings.tree_paths_limit,
            seen: AtomicU64::new(0),
            stored: AtomicU64::new(0),
        });
        let folder = root.folder().try_clone_to_owned().map_err(Error::io("open", root.path()))?;
        let (news, threads) = walk::start(&walk, folder);
        let (mut all, mut failed) = (Vec::new(), None);
        while let Ok(news) = news.recv() {
            match self.store(root, news).await {
                Ok(news) => all.push(news),
                // The walk goes on to its end, since its threads need somebody to talk to.
                Err(error) => failed = failed.or(Some(error)),
            }
            tell(walk.seen.load(std::sync::atomic::Ordering::Relaxed));
        }
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let Ok(walk) = Arc::try_unwrap(walk) else { unreachable!("its threads have ended") };
        let mut known = walk.known;
        all.into_iter().for_each(|news| self.take_in(&mut known, news));
        for folder in std::mem::take(&mut known.vanished) {
            let (parent, name) = split(&folder);
            if !find(&known, parent, name).is_some_and(|item| item.state.is_folder()) {
                self.all_gone(&mut known, &folder);
            }
        }
        Ok(known)
    }

    fn never(&self) -> Vec<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let folders = self.checkpointer.forbidden();
        folders.iter().filter_map(|folder| folder.metadata().ok()).map(|it| (it.dev(), it.ino())).collect()
    }

    /// Stores contents that came with news.
    async fn store(&self, root: &Root, news: News) -> Result<News> {
        let backend = self.checkpointer.contents().backend();
        match news {
            News::Packed(mut packed) => {
                let bytes = std::mem::take(&mut packed.bytes);
                backend.put_blob(&packed.pack, &mut &bytes[..]).await?;
                Ok(News::Packed(packed))
            }
            News::Few(few) => {
                let (found, contents): (Vec<Found>, Vec<Vec<u8>>) = few.into_iter().unzip();
                let hashes = found.iter().filter_map(|found| found.state.file().map(|file| file.hash));
                let blobs: Vec<(BlobId, Bytes)> = hashes.zip(contents.into_iter().map(Bytes::from)).collect();
                backend.put_blobs(&blobs).await?;
                Ok(News::Plain(found))
            }
            News::Plain(mut plain) => {
                let limit = self.checkpointer.settings().tree_file_limit;
                for found in plain.iter_mut().filter(|found| found.state.file().is_some()) {
                    let kept = self
                        .checkpointer
                        .contents()
                        .keep(root, std::slice::from_ref(&found.path), limit)
                        .await?;
                    if let Some(seen) = kept.into_iter().next() {
                        (found.state, found.print) = (seen.state, seen.print.unwrap_or_default());
                    }
                }
                Ok(News::Plain(plain))
            }
            News::Failed(error) => Err(Error::io("list", root.path())(error)),
            other => Ok(other),
        }
    }

    fn take_in(&mut self, known: &mut Known, news: News) {
        match news {
            News::Packed(packed) => packed.found.into_iter().for_each(|found| self.found(known, found)),
            News::Plain(plain) => plain.into_iter().for_each(|found| self.found(known, found)),
            News::Gone(gone) => gone.into_iter().for_each(|path| self.gone(known, path)),
            News::Fresh(fresh) => {
                for (path, print) in fresh {
                    self.stale += 1;
                    let (folder, name) = split(&path);
                    let items = known.folders.get_mut(folder).into_iter().flatten();
                    for item in items.filter(|item| *item.name == *name) {
                        *item = Item::new(name, item.state.clone(), print, self.began);
                    }
                }
            }
            News::LeftOut(left_out) => {
                self.left_out.extend(left_out.into_iter().map(|left| (left.path, left.reason)))
            }
            News::Few(_) | News::Failed(_) => unreachable!("stored and told before"),
        }
    }

    fn found(&mut self, known: &mut Known, found: Found) {
        let Found { path, state, print } = found;
        self.stale += 1;
        let (folder, name) = split(&path);
        let hidden =
            known.left_out.contains(&path) || path.ancestors().any(|folder| known.left_out.contains(&folder));
        let items = known.folders.entry(folder.into()).or_default();
        let new = Item::new(name, state.clone(), print, self.began);
        let before = match items.iter().position(|item| *item.name == *name) {
            Some(at) => Some(std::mem::replace(&mut items[at], new)),
            None => {
                items.push(new);
                None
            }
        };
        if before.as_ref().is_some_and(|before| before.state.is_folder()) && !state.is_folder() {
            self.all_gone(known, &path);
        }
        // What comes to light because a rule changed was there before.
        if before.is_none() && hidden {
            return;
        }
        let (open, before) = before.map_or((false, State::Absent), |before| (before.open, before.state));
        self.change(path, open, before, state);
    }

    fn gone(&mut self, known: &mut Known, path: TreePath) {
        self.stale += 1;
        let (folder, name) = split(&path);
        let Some(items) = known.folders.get_mut(folder) else { return };
        let Some(at) = items.iter().position(|item| *item.name == *name) else { return };
        let item = items.remove(at);
        if item.state.is_folder() {
            self.all_gone(known, &path);
        }
        self.change(path, item.open, item.state, State::Absent);
    }

    /// What was in a folder went with it.
    fn all_gone(&mut self, known: &mut Known, folder: &TreePath) {
        for item in known.folders.remove(folder.as_bytes()).unwrap_or_default() {
            let Some(path) = crate::known::join(folder.as_bytes(), &item.name) else { continue };
            if item.state.is_folder() {
                self.all_gone(known, &path);
            }
            self.change(path, item.open, item.state, State::Absent);
        }
    }

    fn change(&mut self, path: TreePath, open: bool, before: State, after: State) {
        if !self.baseline || before.same(&after) {
            return;
        }
        let source = if open { Source::Named } else { self.source };
        self.changes.insert(path.clone(), Change { path, before: Some(before), after: Some(after), source });
    }
}

//! What a walk comes to: contents stored, changes told apart from what was there before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use jiff::Timestamp;
use rethread_store::BlobId;

use crate::checkpointer::Checkpointer;
use crate::error::{Error, Result};
use crate::known::{Item, Known, find, split};
use crate::path::TreePath;
use crate::record::{Change, Source};
use crate::root::Root;
use crate::state::State;
use crate::walk::{self, Found, News, Walk};

/// What a walk comes to.
pub(crate) struct Gathering<'a> {
    checkpointer: &'a Checkpointer,
    source: Source,
    /// Whether what is new is a change, or was there before anybody looked.
    baseline: bool,
    began: i64,
    pub(crate) changes: BTreeMap<TreePath, Change>,
    pub(crate) left_out: BTreeMap<TreePath, String>,
    pub(crate) stale: usize,
}

impl<'a> Gathering<'a> {
    pub(crate) fn new(checkpointer: &'a Checkpointer, source: Source, baseline: bool) -> Self {
        let began = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        let (changes, left_out) = (BTreeMap::new(), BTreeMap::new());
        Self { checkpointer, source, baseline, began, changes, left_out, stale: 0 }
    }

    /// Walks the tree, stores what is new, and returns what is known then.
    pub(crate) async fn walk(&mut self, known: Known, tell: &(dyn Fn(u64) + Send + Sync)) -> Result<Known> {
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

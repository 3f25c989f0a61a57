//! Every backend keeps the contract, and the suite notices one that does not.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pollster::block_on;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Hints, Key, Known, Listed,
    LogKey, LogName, Position, Put, Rewrite, Space, Target,
};
use rethread_store::{
    BlobId, EntryId, FileBackend, Line, MemoryBackend, OffBackend, Result, SessionId, conformance,
};
use tempfile::TempDir;

#[test]
fn memory_conforms() {
    block_on(conformance::backend(MemoryBackend::default));
}

#[test]
fn files_conform() {
    let roots = Roots::new();
    block_on(conformance::backend(|| FileBackend::new(roots.next())));
}

#[test]
fn files_conform_through_two_handles() {
    let roots = Roots::new();
    block_on(conformance::handles(|| {
        let root = roots.next();
        (FileBackend::new(&root), FileBackend::new(root))
    }));
}

#[test]
fn a_boxed_backend_conforms() {
    let roots = Roots::new();
    block_on(conformance::backend(|| -> Box<dyn Backend> { Box::new(MemoryBackend::default()) }));
    block_on(conformance::backend(|| -> Box<dyn Backend> { Box::new(FileBackend::new(roots.next())) }));
}

#[test]
fn a_shared_backend_conforms() {
    let roots = Roots::new();
    let memory = || -> Arc<dyn Backend> { Arc::new(MemoryBackend::default()) };
    let files = || -> Arc<dyn Backend> { Arc::new(FileBackend::new(roots.next())) };
    block_on(conformance::backend(memory));
    block_on(conformance::backend(files));
    block_on(conformance::handles(|| twice(memory())));
    block_on(conformance::handles(|| twice(files())));
}

#[test]
fn a_slow_backend_conforms() {
    let roots = Roots::new();
    block_on(conformance::backend(|| Altered::new(MemoryBackend::default(), How::Slow)));
    block_on(conformance::backend(|| Altered::new(FileBackend::new(roots.next()), How::Slow)));
}

#[test]
fn a_backend_that_gives_as_little_as_it_may_conforms() {
    block_on(conformance::backend(|| Altered::new(MemoryBackend::default(), How::Sparing)));
}

#[test]
fn pointers_forward_the_methods_that_have_a_default_too() {
    let counted = Arc::new(Altered::new(MemoryBackend::default(), How::Faithful));
    let pointer: Box<dyn Backend> = Box::new(counted.clone());
    let log = LogKey::new("a".parse().unwrap(), LogName::Messages);
    block_on(async {
        pointer.append_to(&log, &"id".parse().unwrap(), 0, &[], Durability::Off).await.unwrap();
        pointer.changed(&log, 0).await.unwrap();
        pointer.find(&log, &"id".parse().unwrap()).await.unwrap();
        pointer.hints();
        pointer.path(&log);
        pointer.refresh_blob(&BlobId::of(b"")).await.unwrap();
        pointer.rewrite(&log, &Known::default()).await.unwrap();
        pointer.settle(&log).await.unwrap();
        pointer.stat(&log.session).await.unwrap();
        pointer.sweep().await.unwrap();
    });
    let methods = [
        "append_to",
        "changed",
        "find",
        "hints",
        "path",
        "refresh_blob",
        "rewrite",
        "settle",
        "stat",
        "sweep",
    ];
    assert_eq!(*counted.calls(), methods.map(|method| (method, 1)).into());
}

#[test]
fn a_backend_that_keeps_nothing_is_turned_away() {
    let message = panic_of(|| block_on(conformance::backend(|| OffBackend)));
    let rule = "a backend that keeps nothing is exempt, and is not run through the suite";
    assert!(message.starts_with(rule), "{message}");
}

#[test]
fn each_fault_is_noticed_and_named_by_its_rule() {
    use How::*;
    let faults = [
        (
            IgnoresExpectations,
            "a put whose expectation does not hold changes nothing and answers what is there",
        ),
        (ChecksThenPuts, "of several puts with the same expectation, one wins"),
        (PutsInTwoSteps, "a reader sees a whole document, before or after a put"),
        (LosesTheLastLine, "append adds its lines in order, at the position it was told"),
        (TurnsBatchesRound, "append adds its lines in order, at the position it was told"),
        (IgnoresPositions, "append at any other position adds nothing and answers where the log ends"),
        (
            ChecksThenAppends,
            "of several appends at the same position, one wins and nothing of the others is added",
        ),
        (
            BoastsOfDurability,
            "an append is as durable as it was asked to be, as far as the backend can reach",
        ),
        (SplitsGroups, "read never gives part of an atomic group"),
        (IgnoresSizes, "read stops once it holds the size it was given"),
        (ForgetsTheBeginning, "nothing is added to a log that begins with another record than it should"),
        (EndsEarly, "a read that says nothing more is there has read to the end"),
        (WithholdsLargeLines, "read gives at least one line where there is one, however large"),
        (MixesLogs, "logs do not see each other"),
        (NeverChanges, "changed never says no where there are records"),
        (FindsTheOldest, "find gives the newest position that holds an entry, or none"),
        (TrustsContent, "content with another hash is an error, and nothing is stored"),
        (IgnoresRanges, "a range of a blob is cut at its end"),
        (ListsBackwards, "list gives names in ascending order, each once, and goes on after a given name"),
        (ListsFromTheStart, "list gives names in ascending order, each once, and goes on after a given name"),
        (AlwaysRemoved, "remove answers whether there was something, and what is removed is gone"),
        (RemovesByPrefix, "removing a session removes its logs and its documents, and no other's"),
        (IgnoresAges, "a stale blob goes only if nobody has put it since, or made it young"),
        (ForgetsToRefresh, "a stale blob goes only if nobody has put it since, or made it young"),
        (ChecksThenCollects, "of a put and a stale removal at once, the put wins"),
    ];
    for (fault, rule) in faults {
        let message =
            panic_of(|| block_on(conformance::backend(|| Altered::new(MemoryBackend::default(), fault))));
        assert!(message.starts_with(rule), "{fault:?}: {message}");
    }
}

#[test]
fn a_handle_that_remembers_documents_is_noticed() {
    let message = panic_of(|| {
        block_on(conformance::handles(|| {
            let (one, other) = twice(Arc::new(MemoryBackend::default()));
            let remember = |backend| Altered::new(backend, How::RemembersDocuments);
            (remember(one), remember(other))
        }))
    });
    let rule = "a version that one handle gave holds for another";
    assert!(message.starts_with(rule), "{message}");
}

/// A folder in which every backend gets a root of its own.
struct Roots {
    folder: TempDir,
    given: AtomicUsize,
}

impl Roots {
    #[expect(clippy::unwrap_used, reason = "a test without a folder cannot run")]
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), given: AtomicUsize::new(0) }
    }

    fn next(&self) -> PathBuf {
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        self.folder.path().join(number.to_string())
    }
}

fn twice<T: ?Sized>(backend: Arc<T>) -> (Arc<T>, Arc<T>) {
    (backend.clone(), backend)
}

/// Returns the message of a panic, or nothing if there was none.
fn panic_of(work: impl FnOnce()) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else {
        return String::new();
    };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// What a wrapper does to the backend behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Faithful,
    Slow,
    /// Gives one record or group per read, and always says that something may have changed.
    Sparing,
    IgnoresExpectations,
    ChecksThenPuts,
    PutsInTwoSteps,
    RemembersDocuments,
    LosesTheLastLine,
    TurnsBatchesRound,
    IgnoresPositions,
    ChecksThenAppends,
    BoastsOfDurability,
    SplitsGroups,
    IgnoresSizes,
    WithholdsLargeLines,
    EndsEarly,
    ForgetsTheBeginning,
    MixesLogs,
    NeverChanges,
    FindsTheOldest,
    TrustsContent,
    IgnoresRanges,
    ListsBackwards,
    ListsFromTheStart,
    AlwaysRemoved,
    RemovesByPrefix,
    IgnoresAges,
    ForgetsToRefresh,
    ChecksThenCollects,
}

/// A backend that stands before another, counts the calls, and may be late or wrong in one way.
#[derive(Debug)]
struct Altered<B> {
    inner: B,
    how: How,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    documents: Mutex<BTreeMap<Key, Option<Document>>>,
    blobs: Mutex<BTreeMap<BlobId, Bytes>>,
}

impl<B: Backend> Altered<B> {
    fn new(inner: B, how: How) -> Self {
        Self { inner, how, calls: Mutex::default(), documents: Mutex::default(), blobs: Mutex::default() }
    }

    fn calls(&self) -> impl std::ops::Deref<Target = BTreeMap<&'static str, usize>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn called(&self, method: &'static str) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry(method).or_default() += 1;
        drop(calls);
        if self.how == How::Slow {
            sleep(Duration::from_micros(200));
        }
    }

    fn log(&self, log: &LogKey) -> LogKey {
        match self.how {
            How::MixesLogs => LogKey::new(log.session.clone(), LogName::Messages),
            _ => log.clone(),
        }
    }

    async fn end(&self, log: &LogKey) -> Result<Position> {
        Ok(self.inner.read(log, From::Last, 1).await?.next)
    }
}

#[async_trait]
impl<B: Backend> Backend for Altered<B> {
    fn capabilities(&self) -> Capabilities {
        self.called("capabilities");
        self.inner.capabilities()
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        self.called("get");
        let found = self.inner.get(key).await?;
        if self.how == How::RemembersDocuments {
            let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(documents.entry(key.clone()).or_insert(found).clone());
        }
        Ok(found)
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        self.called("put");
        match self.how {
            How::IgnoresExpectations => self.inner.put(key, bytes, Expect::Any).await,
            How::ChecksThenPuts => {
                let current = self.inner.get(key).await?;
                let holds = match (&expect, &current) {
                    (Expect::Any, _) | (Expect::Absent, None) => true,
                    (Expect::Version(version), Some(current)) => current.version == *version,
                    _ => false,
                };
                if !holds {
                    return Ok(Put::Conflict(current));
                }
                sleep(Duration::from_millis(1));
                self.inner.put(key, bytes, Expect::Any).await
            }
            How::PutsInTwoSteps if expect == Expect::Any => {
                self.inner.put(key, &bytes[..bytes.len() / 2], Expect::Any).await?;
                sleep(Duration::from_millis(1));
                self.inner.put(key, bytes, Expect::Any).await
            }
            _ => self.inner.put(key, bytes, expect).await,
        }
    }

    async fn append(
        &self,
        log: &LogKey,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        self.called("append");
        let log = &self.log(log);
        let (mut at, mut lines) = (at, lines.to_vec());
        match self.how {
            How::LosesTheLastLine => drop(lines.pop()),
            How::TurnsBatchesRound => lines.reverse(),
            How::IgnoresPositions => at = self.end(log).await?,
            How::ChecksThenAppends if self.end(log).await? == at => {
                sleep(Duration::from_millis(1));
                at = self.end(log).await?;
            }
            _ => {}
        }
        let answer = self.inner.append(log, at, &lines, durability).await?;
        Ok(match answer {
            Append::Done { found, .. } if self.how == How::BoastsOfDurability => {
                Append::Done { durability: Durability::Synced, found }
            }
            answer => answer,
        })
    }

    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        self.called("append_to");
        match self.how {
            How::ForgetsTheBeginning => self.append(log, at, lines, durability).await,
            _ => self.inner.append_to(&self.log(log), first, at, lines, durability).await,
        }
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        self.called("read");
        let max_bytes = if self.how == How::IgnoresSizes { usize::MAX } else { max_bytes };
        let mut chunk = self.inner.read(&self.log(log), from, max_bytes).await?;
        let first = chunk.lines.first().map(|line| (line.stamp().position, line.as_bytes().len()));
        match (self.how, first) {
            (How::Sparing, Some((position, _))) => {
                let left = chunk.lines[0].stamp().left;
                chunk.lines.truncate(left as usize + 1);
                chunk.next = position + left + 1;
                chunk.ends = false;
            }
            (How::SplitsGroups, Some((position, _))) => {
                chunk.lines.truncate(1);
                (chunk.next, chunk.ends) = (position + 1, false);
            }
            (How::WithholdsLargeLines, Some((position, size))) if size > max_bytes => {
                chunk.lines.clear();
                chunk.next = position;
            }
            (How::EndsEarly, Some(_)) => chunk.ends = true,
            _ => {}
        }
        Ok(chunk)
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        self.called("put_blob");
        if self.how != How::TrustsContent {
            return self.inner.put_blob(blob, content).await;
        }
        let mut bytes = Vec::new();
        let _ = content.read_to_end(&mut bytes);
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.insert(*blob, bytes.into());
        Ok(())
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        self.called("get_blob");
        match self.how {
            How::IgnoresRanges => self.inner.get_blob(blob, 0..u64::MAX).await,
            How::TrustsContent => {
                let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
                let cut = |bytes: &Bytes| {
                    let end = (bytes.len() as u64).min(range.end);
                    bytes.slice(range.start.min(end) as usize..end as usize)
                };
                Ok(blobs.get(blob).map(cut))
            }
            _ => self.inner.get_blob(blob, range).await,
        }
    }

    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        self.called("refresh_blob");
        match self.how {
            How::ForgetsToRefresh => Ok(self.inner.get_blob(blob, 0..0).await?.is_some()),
            _ => self.inner.refresh_blob(blob).await,
        }
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        self.called("list");
        let after = after.filter(|_| self.how != How::ListsFromTheStart);
        let mut listed = self.inner.list(space, after, limit).await?;
        if self.how == How::ListsBackwards {
            listed.reverse();
        }
        Ok(listed)
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        self.called("remove");
        match (self.how, target) {
            (How::IgnoresAges, Target::StaleBlob(blob, _)) => {
                return self.inner.remove(&Target::Blob(*blob)).await;
            }
            (How::ChecksThenCollects, Target::StaleBlob(blob, since)) => {
                let listed = self.inner.list(Space::Blobs, None, usize::MAX).await?;
                let stale = |listed: &Listed| listed.name == blob.to_string() && listed.modified <= *since;
                if !listed.iter().any(stale) {
                    return Ok(false);
                }
                sleep(Duration::from_millis(2));
                return self.inner.remove(&Target::Blob(*blob)).await;
            }
            _ => {}
        }
        let there = self.inner.remove(target).await?;
        if let (How::RemovesByPrefix, Target::Session(prefix)) = (self.how, target) {
            for listed in self.inner.list(Space::Sessions, None, usize::MAX).await? {
                if listed.name.starts_with(prefix.as_str()) {
                    self.inner.remove(&Target::Session(listed.name.parse()?)).await?;
                }
            }
        }
        Ok(there || self.how == How::AlwaysRemoved)
    }

    async fn settle(&self, log: &LogKey) -> Result<()> {
        self.called("settle");
        self.inner.settle(&self.log(log)).await
    }

    async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
        self.called("changed");
        Ok(match self.how {
            How::Sparing => true,
            How::NeverChanges => false,
            _ => self.inner.changed(&self.log(log), since).await?,
        })
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        self.called("find");
        if self.how == How::FindsTheOldest {
            let chunk = self.inner.read(log, From::Position(0), usize::MAX).await?;
            let oldest = chunk.lines.iter().find(|line| line.stamp().id == *id);
            return Ok(oldest.map(|line| line.stamp().position));
        }
        self.inner.find(&self.log(log), id).await
    }

    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        self.called("stat");
        self.inner.stat(session).await
    }

    fn path(&self, log: &LogKey) -> Option<PathBuf> {
        self.called("path");
        self.inner.path(log)
    }

    async fn rewrite(&self, log: &LogKey, known: &Known) -> Result<Rewrite> {
        self.called("rewrite");
        self.inner.rewrite(&self.log(log), known).await
    }

    async fn sweep(&self) -> Result<u64> {
        self.called("sweep");
        self.inner.sweep().await
    }

    fn hints(&self) -> Option<Hints> {
        self.called("hints");
        self.inner.hints()
    }
}

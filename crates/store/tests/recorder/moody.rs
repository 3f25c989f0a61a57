//! A backend in memory that can be told to hang or to fail.

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, LogName,
    Position, Put, Space, Target,
};
use rethread_store::{BlobId, Error, Line, MemoryBackend, Result};

/// How appends go.
#[derive(Clone, Debug, Default)]
pub(crate) enum Mood {
    #[default]
    Good,
    /// An append does not return before the mood changes.
    Hangs,
    /// Appends to this log fail.
    Fails(LogName, Error),
    /// Reads fail.
    Blind(Error),
}

#[derive(Debug, Default)]
pub(crate) struct Moody {
    inner: MemoryBackend,
    mood: Mutex<Mood>,
    changed: Condvar,
    appends: AtomicUsize,
}

#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
impl Moody {
    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
        self.changed.notify_all();
    }

    /// How many appends got through.
    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }

    fn feel(&self, log: &LogKey) -> Result<()> {
        let hangs = |mood: &mut Mood| matches!(mood, Mood::Hangs);
        let mood = self.changed.wait_while(self.mood.lock().unwrap(), hangs).unwrap();
        match &*mood {
            Mood::Fails(name, error) if *name == log.name => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

/// What a full disk says.
pub(crate) fn no_space() -> Error {
    Error::NoSpace { action: "append to", path: PathBuf::from("messages.jsonl") }
}

#[async_trait]
impl Backend for Moody {
    fn capabilities(&self) -> Capabilities {
        Capabilities { max_record: 1 << 20, ..self.inner.capabilities() }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        self.inner.get(key).await
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        self.inner.put(key, bytes, expect).await
    }

    async fn append(&self, log: &LogKey, at: Position, lines: &[Line], mode: Durability) -> Result<Append> {
        self.feel(log)?;
        self.appends.fetch_add(1, Ordering::SeqCst);
        self.inner.append(log, at, lines, mode).await
    }

    #[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        let mood = self.mood.lock().unwrap().clone();
        match mood {
            Mood::Blind(error) => Err(error),
            _ => self.inner.read(log, from, max_bytes).await,
        }
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        self.inner.put_blob(blob, content).await
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        self.inner.get_blob(blob, range).await
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        self.inner.list(space, after, limit).await
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        self.inner.remove(target).await
    }
}

//! A backend whose appends hang until they are let go.

use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, Position,
    Put, Space, Target,
};
use rethread_store::{BlobId, EntryId, Line, Result, SessionId};

/// Hangs in `append`, of every session or of one.
#[derive(Debug)]
pub(crate) struct Hanging<B> {
    inner: Arc<B>,
    hangs: Arc<(Mutex<Option<String>>, Condvar)>,
}

impl<B> Clone for Hanging<B> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), hangs: self.hangs.clone() }
    }
}

impl<B> Hanging<B> {
    pub(crate) fn new(inner: B) -> Self {
        Self { inner: Arc::new(inner), hangs: Arc::default() }
    }

    pub(crate) fn hang(&self) {
        self.hang_on("");
    }

    pub(crate) fn hang_on(&self, session: &str) {
        *self.hangs.0.lock().expect("no test panics here") = Some(session.to_owned());
    }

    pub(crate) fn go_on(&self) {
        *self.hangs.0.lock().expect("no test panics here") = None;
        self.hangs.1.notify_all();
    }
}

#[async_trait]
impl<B: Backend> Backend for Hanging<B> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        self.inner.get(key).await
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        self.inner.put(key, bytes, expect).await
    }

    async fn append(
        &self,
        log: &LogKey,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        {
            let hangs = self.hangs.0.lock().expect("no test panics here");
            let stuck = |which: &mut Option<String>| {
                which.as_ref().is_some_and(|which| which.is_empty() || which == log.session.as_str())
            };
            drop(self.hangs.1.wait_while(hangs, stuck).expect("no test panics here"));
        }
        self.inner.append(log, at, lines, durability).await
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        self.inner.read(log, from, max_bytes).await
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

    async fn settle(&self, log: &LogKey) -> Result<()> {
        self.inner.settle(log).await
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        self.inner.find(log, id).await
    }

    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        self.inner.stat(session).await
    }
}

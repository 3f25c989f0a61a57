//! The contract, over the tables.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Begun, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey,
    Position, Put, Space, Target,
};
use rethread_store::{BlobId, EntryId, Line, Result, SessionId};
use rusqlite::Transaction;

use crate::connections::Connections;
use crate::{blobs, documents, listing, logs, wide};

/// Sessions in one SQLite file.
#[derive(Debug)]
pub struct SqliteBackend {
    connections: Connections,
    begun: Begun<i64>,
}

impl SqliteBackend {
    /// Names a file. It is made when something is first written.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { connections: Connections::new(path.into()), begun: Begun::default() }
    }

    /// Returns the file.
    pub fn file(&self) -> &Path {
        self.connections.path()
    }
}

#[async_trait]
impl Backend for SqliteBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "sqlite",
            durability: Durability::Synced,
            across_hosts: false,
            keeps: true,
            max_record: 64 << 20,
            knows_its_own: false,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        Ok(self.connections.read("read", |transaction| documents::get(transaction, key))?.flatten())
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        let put = |transaction: &Transaction<'_>| documents::put(transaction, key, bytes, &expect);
        self.connections.write("put a document into", put)
    }

    async fn append(&self, log: &LogKey, at: Position, lines: &[Line], _: Durability) -> Result<Append> {
        let append =
            |transaction: &Transaction<'_>| logs::append(transaction, &self.begun, log, None, at, lines);
        self.connections.write("append to", append)
    }

    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        _: Durability,
    ) -> Result<Append> {
        let append = |transaction: &Transaction<'_>| {
            logs::append(transaction, &self.begun, log, Some(first), at, lines)
        };
        self.connections.write("append to", append)
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        if let From::Position(position) = from
            && let Some(chunk) = wide::read(&self.connections, log, position, max_bytes)?
        {
            return Ok(chunk);
        }
        let chunk =
            self.connections.read("read", |transaction| logs::read(transaction, log, from, max_bytes))?;
        Ok(chunk.unwrap_or_else(|| {
            let next = if let From::Position(position) = from { position } else { 0 };
            Chunk { next, ..Chunk::default() }
        }))
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        blobs::put(&self.connections, blob, content)
    }

    async fn put_blobs(&self, blobs: &[(BlobId, Bytes)]) -> Result<()> {
        blobs::put_all(&self.connections, blobs)
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        Ok(self.connections.read("read", |transaction| blobs::get(transaction, blob, &range))?.flatten())
    }

    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        self.connections.write("refresh a blob in", |transaction| blobs::refresh(transaction, blob))
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let list = |transaction: &Transaction<'_>| listing::list(transaction, space, after, limit);
        Ok(self.connections.read("list", list)?.unwrap_or_default())
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        let removed = self.connections.write("remove from", |transaction| match target {
            Target::Document(key) => documents::remove(transaction, key),
            Target::Session(session) => logs::remove_session(transaction, session),
            Target::Blob(blob) => blobs::remove(transaction, blob),
            Target::StaleBlob(blob, since) => blobs::remove_before(transaction, blob, *since),
        })?;
        // Also if there was nothing to remove: it says that what was replaced before it should be nowhere any more.
        if let Target::Document(_) | Target::Session(_) = target {
            self.connections.try_to_empty_log();
        }
        Ok(removed)
    }

    async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
        let more = self.connections.read("read", |transaction| logs::has_more(transaction, log, since))?;
        Ok(more.unwrap_or(false))
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        Ok(self.connections.read("search", |transaction| logs::find(transaction, log, id))?.flatten())
    }

    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        Ok(self
            .connections
            .read("read", |transaction| listing::stat(transaction, session.as_str()))?
            .flatten())
    }

    async fn sweep(&self) -> Result<u64> {
        self.connections.write("sweep", blobs::sweep)
    }
}

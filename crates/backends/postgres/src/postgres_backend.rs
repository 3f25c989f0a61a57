//! The contract, over the tables.

use std::io::Read;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Begun, Capabilities, Chunk, Document, Durability, Expect, From, Hints, Key, Listed,
    LogKey, LogName, Position, Put, Space, Target, Unanswered, Version,
};
use rethread_store::{BlobId, EntryId, Error, Line, Result, SessionId};

use crate::connections::{Connections, Time};
use crate::logs::{Batch, Beginning};
use crate::notifier::Notifier;
use crate::settings::Settings;
use crate::{blobs, documents, listener, listing, logs};

/// How often a document that changes while it is looked at is put again.
const ATTEMPTS: usize = 100;

/// Sessions in one PostgreSQL database, in a schema of their own.
#[derive(Debug)]
pub struct PostgresBackend {
    connections: Connections,
    notifier: Notifier,
    settings: Settings,
    unanswered: Unanswered<Batch>,
    begun: Begun<i64>,
}

impl PostgresBackend {
    /// Names a database. Nothing is asked of it yet, and nothing is made until something is written.
    pub fn new(settings: Settings) -> Result<Self> {
        let connections = Connections::new(settings.clone())?;
        let notifier = Notifier::start(settings.clone(), connections.runtime());
        Ok(Self {
            connections,
            notifier,
            settings,
            unanswered: Unanswered::default(),
            begun: Begun::default(),
        })
    }

    /// Adds lines where a log ends; to one that begins with some record, if one is named.
    async fn add(
        &self,
        log: &LogKey,
        first: Option<&EntryId>,
        at: Position,
        lines: &[Line],
    ) -> Result<Append> {
        // One that is tried again keeps its number, whatever became of the server meanwhile.
        let tried = self.unanswered.take(log, at, lines);
        let time = if tried.is_some() { Time::Again } else { Time::First };
        let batch = tried.unwrap_or_else(Batch::new);
        let beginning = Beginning { first, begun: &self.begun };
        let append = |connection, time| logs::append(connection, log, beginning, at, lines, batch, time);
        let appended =
            self.connections.write_since(time, "append to", append).await.inspect_err(|failure| {
                if time == Time::Again || failure.is_uncertain() {
                    self.unanswered.add(log, at, lines, batch);
                }
            })?;
        if log.name == LogName::Messages && !lines.is_empty() && matches!(appended, Append::Done { .. }) {
            self.notifier.tell(&log.session);
        }
        Ok(appended)
    }
}

#[async_trait]
impl Backend for PostgresBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "postgres",
            durability: Durability::Synced,
            across_hosts: true,
            keeps: true,
            max_record: 64 << 20,
            knows_its_own: true,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        let get = |connection| documents::get(connection, key);
        Ok(self.connections.read("read from", get).await?.flatten())
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        // A name that no earlier state had, not even one of a document that was removed in between.
        let version = &Version(uuid::Uuid::new_v4().simple().to_string());
        let expect = &expect;
        let put = |connection, _| documents::put(connection, key, bytes, expect, version);
        for _ in 0..ATTEMPTS {
            if let Some(put) = self.connections.write_again("put a document into", put).await? {
                return Ok(put);
            }
        }
        Err(Error::Contended(key.to_string()))
    }

    async fn append(&self, log: &LogKey, at: Position, lines: &[Line], _: Durability) -> Result<Append> {
        self.add(log, None, at, lines).await
    }

    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        _: Durability,
    ) -> Result<Append> {
        self.add(log, Some(first), at, lines).await
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        let read = |connection| self.connections.near(logs::read(connection, log.clone(), from, max_bytes));
        Ok(self.connections.read("read from", read).await?.unwrap_or_else(|| {
            let next = if let From::Position(position) = from { position } else { 0 };
            Chunk { next, ..Chunk::default() }
        }))
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        blobs::put(&self.connections, blob, content).await
    }

    async fn put_blobs(&self, blobs: &[(BlobId, Bytes)]) -> Result<()> {
        blobs::put_all(&self.connections, blobs).await
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        let range = &range;
        let get = |connection| blobs::get(connection, blob, range);
        Ok(self.connections.read("read from", get).await?.flatten())
    }

    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        let refresh = |connection, _| blobs::refresh(connection, blob);
        self.connections.write_again("refresh a blob in", refresh).await
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let list = |connection| listing::list(connection, space, after, limit);
        Ok(self.connections.read("list", list).await?.unwrap_or_default())
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        // Not twice: the second time there would be nothing, although there had been something.
        let remove = |connection| async move {
            match target {
                Target::Document(key) => documents::remove(connection, key).await,
                Target::Session(session) => logs::remove_session(connection, session).await,
                Target::Blob(blob) => blobs::remove(connection, blob).await,
                Target::StaleBlob(blob, since) => blobs::remove_before(connection, blob, *since).await,
            }
        };
        let removed = self.connections.write("remove from", remove).await?;
        if let (Target::Session(session), true) = (target, removed) {
            self.notifier.tell(session);
        }
        Ok(removed)
    }

    async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
        let more = |connection| logs::has_more(connection, log, since);
        Ok(self.connections.read("read from", more).await?.unwrap_or(false))
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        let find = |connection| logs::find(connection, log, id);
        Ok(self.connections.read("search", find).await?.flatten())
    }

    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        let stat = |connection| listing::stat(connection, session.as_str());
        Ok(self.connections.read("read from", stat).await?.flatten())
    }

    async fn sweep(&self) -> Result<u64> {
        Ok(self.connections.write("sweep", blobs::sweep).await?)
    }

    fn hints(&self) -> Option<Hints> {
        Some(listener::listen(self.settings.clone(), self.connections.runtime()))
    }
}

//! Sessions in memory: for tests, and for agents that need not remember.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;

use crate::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, LogName,
    Position, Put, Space, Target, Version,
};
use crate::error::{Error, Result};
use crate::id::{BlobId, EntryId, SessionId};
use crate::stamp::Line;

/// Sessions that live as long as this value.
#[derive(Debug, Default)]
pub struct MemoryBackend {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    documents: BTreeMap<String, (u64, Timestamp, Bytes)>,
    logs: BTreeMap<LogKey, (u64, Timestamp, Vec<Line>)>,
    blobs: BTreeMap<String, (Timestamp, Bytes)>,
    /// Counts writes, so that no two states of a document or of a log share a version.
    clock: u64,
}

impl MemoryBackend {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "memory",
            durability: Durability::Off,
            across_hosts: false,
            keeps: true,
            max_record: 64 << 20,
            knows_its_own: false,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        Ok(self.state().documents.get(&key.to_string()).map(document))
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        let state = &mut *self.state();
        let current = state.documents.get(&key.to_string()).map(document);
        let holds = match (&expect, &current) {
            (Expect::Any, _) | (Expect::Absent, None) => true,
            (Expect::Version(expected), Some(current)) => current.version == *expected,
            _ => false,
        };
        if !holds {
            return Ok(Put::Conflict(current));
        }
        state.clock += 1;
        state
            .documents
            .insert(key.to_string(), (state.clock, Timestamp::now(), Bytes::copy_from_slice(bytes)));
        Ok(Put::Done(Version(state.clock.to_string())))
    }

    async fn append(&self, log: &LogKey, at: Position, lines: &[Line], _: Durability) -> Result<Append> {
        Ok(self.state().append(log, None, at, lines))
    }

    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        _: Durability,
    ) -> Result<Append> {
        Ok(self.state().append(log, Some(first), at, lines))
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        let state = self.state();
        let lines = state.logs.get(log).map_or(&[][..], |(.., lines)| lines);
        let start = match from {
            From::Position(position) => position,
            From::Last => (lines.len() as Position).saturating_sub(1),
        };
        let mut chunk = Chunk { next: start, ..Chunk::default() };
        let mut size = 0;
        let mut rest = &lines[usize::try_from(start).unwrap_or(usize::MAX).min(lines.len())..];
        while let Some(first) = rest.first() {
            let (unit, later) = rest.split_at((first.stamp().left as usize + 1).min(rest.len()));
            size += unit.iter().map(Line::size).sum::<usize>();
            if size > max_bytes && !chunk.lines.is_empty() {
                break;
            }
            chunk.next += unit.len() as Position;
            chunk.lines.extend_from_slice(unit);
            rest = later;
        }
        chunk.ends = rest.is_empty() && !chunk.lines.is_empty();
        Ok(chunk)
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(Error::io("read the content of", blob.to_string()))?;
        if !blob.fits(&bytes) {
            return Err(Error::WrongBlob(*blob));
        }
        self.state().blobs.insert(blob.to_string(), (Timestamp::now(), bytes.into()));
        Ok(())
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        Ok(self.state().blobs.get(&blob.to_string()).map(|(_, bytes)| {
            let end = range.end.min(bytes.len() as u64);
            bytes.slice(range.start.min(end) as usize..end as usize)
        }))
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let state = self.state();
        let mut listed: BTreeMap<String, Listed> = BTreeMap::new();
        let mut add = |name: &str, change: String, modified: Timestamp| {
            listed.insert(name.to_owned(), Listed { name: name.to_owned(), change, modified });
        };
        match space {
            Space::Sessions => {
                for (key, (_, modified, _)) in &state.documents {
                    if let Some(session) = key.parse::<Key>().ok().as_ref().and_then(Key::owner) {
                        add(session.as_str(), String::new(), *modified);
                    }
                }
                // The message log last: what it says of the session counts.
                for name in LogName::ALL.into_iter().rev() {
                    for (log, (change, modified, _)) in state.logs.iter().filter(|(log, _)| log.name == name)
                    {
                        let change =
                            if name == LogName::Messages { change.to_string() } else { String::new() };
                        add(log.session.as_str(), change, *modified);
                    }
                }
            }
            Space::Documents => {
                for (key, (_, modified, _)) in &state.documents {
                    if key.parse::<Key>().is_ok_and(|key| key.owner().is_none()) {
                        add(key, String::new(), *modified);
                    }
                }
            }
            Space::Blobs => {
                for (blob, (modified, _)) in &state.blobs {
                    add(blob, String::new(), *modified);
                }
            }
        }
        let later = |listed: &Listed| after.is_none_or(|after| listed.name.as_str() > after);
        Ok(listed.into_values().filter(later).take(limit).collect())
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        let state = &mut *self.state();
        Ok(match target {
            Target::Document(key) => state.documents.remove(&key.to_string()).is_some(),
            Target::Blob(blob) => state.blobs.remove(&blob.to_string()).is_some(),
            Target::StaleBlob(blob, since) => {
                let name = blob.to_string();
                let stale = state.blobs.get(&name).is_some_and(|(modified, _)| modified <= since);
                stale && state.blobs.remove(&name).is_some()
            }
            Target::Session(session) => state.remove_session(session),
        })
    }
}

impl State {
    fn append(&mut self, log: &LogKey, first: Option<&EntryId>, at: Position, lines: &[Line]) -> Append {
        let there = self.logs.get(log).map_or(&[][..], |(.., lines)| lines);
        let next = there.len() as Position;
        let is_another = there.first().zip(first).is_some_and(|(line, first)| line.is_another_first(first));
        if next != at || is_another {
            return Append::Moved { next };
        }
        if !lines.is_empty() {
            self.clock += 1;
            let (change, modified, stored) = self.logs.entry(log.clone()).or_default();
            stored.extend_from_slice(lines);
            (*change, *modified) = (self.clock, Timestamp::now());
        }
        Append::Done { durability: Durability::Off, found: Vec::new() }
    }

    fn remove_session(&mut self, session: &SessionId) -> bool {
        let before = self.logs.len() + self.documents.len();
        self.logs.retain(|log, _| log.session != *session);
        let owned = |key: &String| key.parse::<Key>().is_ok_and(|key| key.owner() == Some(session));
        self.documents.retain(|key, _| !owned(key));
        self.logs.len() + self.documents.len() < before
    }
}

fn document((version, _, bytes): &(u64, Timestamp, Bytes)) -> Document {
    Document { version: Version(version.to_string()), bytes: bytes.clone() }
}

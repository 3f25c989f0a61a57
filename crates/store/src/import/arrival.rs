//! A session that is written as a whole: nobody sees it before its last record is in.
//!
//! Its first record, the creation note, says how the log will end ([`Arrival`]). Until that record is there, every
//! fold of the log says that there is no session; the logs beside it are complete before. So an import that is
//! killed leaves nothing that could be taken for a session, and the next import of that id, or `gc`, clears it away.

use bytes::Bytes;
use jiff::Timestamp;

use crate::backend::{Append, Durability, Expect, From, Key, LogKey, LogName, Position, Target};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fold::{Fold, Leaf};
use crate::id::SessionId;
use crate::note::{Arrival, Note};
use crate::stamp::{Kind, Line, Stamp};
use crate::store::Store;

/// How much is written at once.
const BATCH: usize = 1 << 20;
/// How often a locked log is tried again; each try has waited for the lock already.
const TRIES: usize = 250;
/// What the creation note's last member begins with.
const MEMBER: &[u8] = b",\"arrival\":";

/// A record, and what it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) kind: Kind,
    pub(crate) parent: Option<Position>,
    pub(crate) depth: u64,
    pub(crate) entry: Entry,
}

/// A session on its way into a store.
#[derive(Debug)]
pub(crate) struct Arriving {
    store: Store,
    id: SessionId,
    fold: Fold,
    logs: [Outgoing; 3],
    /// The first record as it was written: whose session this is.
    first: Line,
}

/// The end of one of its logs.
#[derive(Debug, Default)]
struct Outgoing {
    next: Position,
    leaf: Leaf,
    lines: Vec<Line>,
    bytes: usize,
}

impl Arriving {
    /// Takes an id, unless there is a session of that id; what an interrupted import left under it is cleared away.
    pub(crate) async fn begin(
        store: &Store,
        id: SessionId,
        created: Placement,
        arrival: &Arrival,
    ) -> Result<Self> {
        store.claim_format().await?;
        let there = store.fold(&id).await?;
        // One whose log is away or cannot be read is there all the same; its metadata remembers it.
        let known = Fold::cached(&*store.inner.backend, &id).await?;
        let known = known.is_some_and(|fold| fold.next > 0 && !fold.purging);
        if (there.next > 0 && there.arrival.is_none()) || (there.next == 0 && known) {
            return Err(Error::SessionExists(id));
        }
        let entry = store.redacted_note(with_arrival(&created.entry, arrival)?);
        let created = Placement { entry, ..created };
        if there.next > 0 {
            clear(store, &id, &there).await?;
        }
        let mut outgoing = Outgoing::default();
        let first = outgoing.place(created);
        let mut fold = Fold::empty(&id);
        fold.apply(&first);
        outgoing.lines.clear();
        outgoing.bytes = 0;
        let log = LogKey::new(id.clone(), LogName::Messages);
        match write(store, &log, 0, std::slice::from_ref(&first)).await? {
            Written::Whole => {}
            Written::Elsewhere => return Err(Error::SessionExists(id)),
        }
        let logs = [outgoing, Outgoing::default(), Outgoing::default()];
        Ok(Self { store: store.clone(), id, fold, logs, first })
    }

    /// Returns what the conversation says so far.
    pub(crate) fn fold(&self) -> &Fold {
        &self.fold
    }

    /// Returns the position that a log's next record will have.
    pub(crate) fn next(&self, log: LogName) -> Position {
        self.logs[log as usize].next
    }

    /// Adds an entry after the last one of its log.
    pub(crate) async fn append(&mut self, log: LogName, entry: Entry) -> Result<()> {
        let Leaf { position, depth } = self.logs[log as usize].leaf;
        self.push(log, Placement { kind: Kind::Entry, parent: position, depth: depth + 1, entry }).await
    }

    /// Adds a note, which leaves the active leaf where it is.
    pub(crate) async fn note(&mut self, log: LogName, entry: Entry) -> Result<()> {
        let Leaf { position, depth } = self.logs[log as usize].leaf;
        self.push(log, Placement { kind: Kind::Note, parent: position, depth, entry }).await
    }

    /// Says that the record which stood here is lost.
    pub(crate) async fn lost(&mut self, log: LogName) -> Result<()> {
        self.note(log, Note::Lost { at: Timestamp::now() }.to_entry()?).await
    }

    /// Adds a record where it belongs.
    pub(crate) async fn push(&mut self, log: LogName, mut placement: Placement) -> Result<()> {
        placement.entry = match (placement.kind, log) {
            (_, LogName::Checkpoints) => placement.entry,
            (Kind::Note, _) => self.store.redacted_note(placement.entry),
            _ => self.store.redacted(placement.entry),
        };
        let (size, limit) =
            (placement.entry.as_bytes().len(), self.store.inner.backend.capabilities().max_record);
        if size > limit {
            return Err(Error::TooLarge { size, limit });
        }
        // What came before goes out first, so that the last record of all is never among it.
        if self.logs[log as usize].bytes >= BATCH {
            self.flush(log).await?;
        }
        let line = self.logs[log as usize].place(placement);
        if log == LogName::Messages {
            self.fold.apply(&line);
        }
        Ok(())
    }

    /// Writes the rest, the conversation's last record after everything else, and with it the session is there.
    pub(crate) async fn finish(mut self) -> Result<()> {
        if let Err(error) = self.finish_writing().await {
            return Err(self.abandon(error).await);
        }
        self.store.inner.writer.forget(&self.id);
        // Only a cache; whoever misses it reads the log.
        let _ = self.cache().await;
        Ok(())
    }

    async fn finish_writing(&mut self) -> Result<()> {
        for log in [LogName::Transcript, LogName::Checkpoints, LogName::Messages] {
            self.flush(log).await?;
        }
        Ok(())
    }

    async fn cache(&mut self) -> Result<()> {
        let backend = &self.store.inner.backend;
        if let Some(listed) = backend.stat(&self.id).await? {
            self.fold.change = listed.change;
            backend.put(&Key::metadata(&self.id), &self.fold.to_document(), Expect::Any).await?;
        }
        Ok(())
    }

    async fn flush(&mut self, name: LogName) -> Result<()> {
        let outgoing = &mut self.logs[name as usize];
        let lines = std::mem::take(&mut outgoing.lines);
        outgoing.bytes = 0;
        let Some(first) = lines.first() else {
            return Ok(());
        };
        let log = LogKey::new(self.id.clone(), name);
        match write(&self.store, &log, first.stamp().position, &lines).await? {
            Written::Whole => Ok(()),
            Written::Elsewhere => Err(Error::Gone(self.id.clone())),
        }
    }

    /// Clears away what was written so far, as well as that is possible, and returns why: nobody sees it either way.
    pub(crate) async fn abandon(self, error: Error) -> Error {
        self.store.inner.writer.forget(&self.id);
        if matches!(error, Error::Gone(_)) {
            // Somebody else took the id over; what is there now is not ours to remove.
            return error;
        }
        let backend = &self.store.inner.backend;
        let log = LogKey::new(self.id.clone(), LogName::Messages);
        let there = backend.read(&log, From::Position(0), 1).await;
        if there.is_ok_and(|chunk| chunk.lines.first() == Some(&self.first)) {
            // Should this fail too, the next import or `gc` does it.
            let _ = backend.remove(&Target::Session(self.id.clone())).await;
        }
        error
    }
}

impl Outgoing {
    fn place(&mut self, placement: Placement) -> Line {
        let Placement { kind, parent, depth, entry } = placement;
        let stamp = Stamp {
            position: self.next,
            parent,
            depth,
            kind,
            id: entry.id().clone(),
            left: 0,
            unsettled: self.lines.len() as u64,
        };
        match kind {
            Kind::Entry => self.leaf = Leaf { position: Some(self.next), depth },
            Kind::Note => self.leaf = Leaf { position: parent, depth },
            Kind::Copy => {}
        }
        let line = Line::new(&entry, stamp);
        self.next += 1;
        self.bytes += line.as_bytes().len();
        self.lines.push(line.clone());
        line
    }
}

/// Clears away what an import left that has not ended.
///
/// It may not be dead, only slow. A record in the place of its next one ends it for certain: if ours is in, its last
/// one never will be; if not, it goes on, and the id is taken.
async fn clear(store: &Store, id: &SessionId, left: &Fold) -> Result<()> {
    // Where an earlier try has said so, nobody adds to it any more, this one included.
    if !left.purging {
        let entry = Note::Purging { at: Timestamp::now() }.to_entry()?;
        let (Leaf { position: parent, depth }, log) = (left.leaf, LogKey::new(id.clone(), LogName::Messages));
        let mut outgoing = Outgoing { next: left.next, ..Outgoing::default() };
        let line = outgoing.place(Placement { kind: Kind::Note, parent, depth, entry });
        match write(store, &log, left.next, &[line]).await? {
            Written::Whole => {}
            Written::Elsewhere => return Err(Error::SessionExists(id.clone())),
        }
    }
    store.inner.backend.remove(&Target::Session(id.clone())).await?;
    store.inner.writer.forget(id);
    Ok(())
}

/// What became of a batch.
enum Written {
    /// All of it is there.
    Whole,
    /// Somebody else's records are.
    Elsewhere,
}

async fn write(store: &Store, log: &LogKey, at: Position, lines: &[Line]) -> Result<Written> {
    let mut tries = 0;
    loop {
        tries += 1;
        match store.inner.backend.append(log, at, lines, Durability::Synced).await {
            Err(Error::Busy { .. }) if tries < TRIES => {}
            Err(error) => return Err(error),
            Ok(Append::Done { .. }) => return Ok(Written::Whole),
            Ok(Append::Moved { .. }) => return Ok(Written::Elsewhere),
            Ok(Append::Part { .. }) => {
                let path = store.inner.backend.path(log).unwrap_or_else(|| log.to_string().into());
                return Err(Error::NoSpace { action: "append to", path });
            }
        }
    }
}

/// Adds to a creation note how its log ends. The note's own bytes stay as they are.
fn with_arrival(created: &Entry, arrival: &Arrival) -> Result<Entry> {
    let body = created.as_bytes();
    let mut bytes = body[..body.len() - 1].to_vec();
    bytes.extend_from_slice(MEMBER);
    serde_json::to_writer(&mut bytes, arrival).map_err(|error| Error::BadEntry(error.to_string()))?;
    bytes.push(b'}');
    let entry = Entry::parse(bytes)?.with_id(created.id().clone());
    match Note::read(entry.as_bytes()) {
        Note::Created { arrival: Some(read), .. } if read == *arrival => Ok(entry),
        _ => Err(Error::BadEntry("the first record does not say how the session began".into())),
    }
}

/// Takes that off again.
pub(crate) fn without_arrival(body: Bytes) -> Bytes {
    if !matches!(Note::read(&body), Note::Created { arrival: Some(_), .. }) {
        return body;
    }
    // No id holds a quote, so the member's beginning stands nowhere within it.
    match memchr::memmem::rfind(&body, MEMBER) {
        Some(end) => [&body[..end], b"}"].concat().into(),
        None => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creation_note_gets_its_bytes_back_after_an_import() {
        let text = r#"{ "at":"2026-01-02T03:04:05Z","note":"created","set":{"name":",\"arrival\":"} }"#;
        let created = Entry::parse(text).unwrap();
        let (at, last) = (Timestamp::now(), "e1".parse().unwrap());
        let arrival = Arrival { at, last, position: Some(7), updated_at: Some(at) };
        let marked = with_arrival(&created, &arrival).unwrap();
        assert_eq!(without_arrival(Bytes::copy_from_slice(marked.as_bytes())), text);
        assert_eq!(without_arrival(text.into()), text);
    }

    #[test]
    fn what_is_not_a_creation_note_cannot_begin_a_session() {
        let arrival =
            Arrival { at: Timestamp::now(), last: "e1".parse().unwrap(), position: None, updated_at: None };
        for text in [r#"{"role":"user"}"#, "{}", r#"{"note":"created","set":{}}"#] {
            assert!(with_arrival(&Entry::parse(text).unwrap(), &arrival).is_err(), "{text}");
        }
    }
}

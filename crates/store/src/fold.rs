//! The state of a session as its log tells it, record by record.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::backend::{Backend, Document, From, Key, LogKey, LogName, Position};
use crate::defect::Defect;
use crate::entry::Entry;
use crate::error::Result;
use crate::id::{EntryId, SessionId};
use crate::lease::Holder;
use crate::metadata::Metadata;
use crate::note::{Arrival, Note, Origin};
use crate::stamp::{Kind, Line, Stamp};
use crate::view::{Message, Role};

const PROMPT_LENGTH: usize = 200;
/// Changes whenever records are folded differently, for instance when a new kind of note is understood.
const VERSION: u32 = 1;
const READ_AHEAD: usize = 1 << 20;

/// The end of a chain: an entry of this log, or an inherited one, which its depth names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leaf {
    /// The entry's position in this log; `None`: the inherited entry of that depth, or nothing at all.
    pub(crate) position: Option<Position>,
    /// How many entries the chain has.
    pub(crate) depth: u64,
}

/// Who may drive, as of some record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fence {
    pub(crate) position: Position,
    pub(crate) nonce: String,
    pub(crate) holder: Holder,
    #[serde(default)]
    pub(crate) epoch: u64,
}

/// Everything that follows from the records before `next`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fold {
    /// How records are folded: a cache made in another way is not believed.
    #[serde(default)]
    pub(crate) version: u32,
    pub(crate) metadata: Metadata,
    pub(crate) next: Position,
    pub(crate) leaf: Leaf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// Where the copies of the inherited history end, once it was materialised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) copied_to: Option<Position>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<Fence>,
    /// Being removed, or still being imported: not a session.
    #[serde(default)]
    pub(crate) purging: bool,
    /// How the log will end, while it is being imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arrival: Option<Arrival>,
    /// The last entry did not say when it was made: the log's own time counts.
    #[serde(default)]
    pub(crate) timeless: bool,
    /// The last record's id, to recognise the log again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<EntryId>,
    /// What the listing called the log when this was folded.
    #[serde(default)]
    pub(crate) change: String,
}

impl Fold {
    /// Returns the fold of no record at all.
    pub(crate) fn empty(session: &SessionId) -> Self {
        Self {
            version: VERSION,
            metadata: Metadata::new(session.clone(), Timestamp::UNIX_EPOCH),
            next: 0,
            leaf: Leaf::default(),
            origin: None,
            copied_to: None,
            fence: None,
            purging: false,
            arrival: None,
            timeless: false,
            last: None,
            change: String::new(),
        }
    }

    /// Reads a session's state: the cached fold and the records since, or all of them. Without a record there is no
    /// session, and `next` is 0.
    pub(crate) async fn load(backend: &dyn Backend, session: &SessionId) -> Result<Self> {
        let cached = Self::cached(backend, session).await?;
        Self::load_from(backend, session, cached).await
    }

    /// Reads a session's state, beginning with one that was true once.
    pub(crate) async fn load_from(
        backend: &dyn Backend,
        session: &SessionId,
        cached: Option<Self>,
    ) -> Result<Self> {
        let log = LogKey::new(session.clone(), LogName::Messages);
        let mut fold = cached.unwrap_or_else(|| Self::empty(session));
        if fold.next > 0 {
            // The cache counts only if the log still has the record that it ends with.
            let chunk = backend.read(&log, From::Position(fold.next - 1), READ_AHEAD).await?;
            let known = chunk.lines.first().is_some_and(|line| {
                line.stamp().position + 1 == fold.next && Some(&line.stamp().id) == fold.last.as_ref()
            });
            if known || Defect::BelieveTheCache.is_on() {
                chunk.lines.iter().skip(1).for_each(|line| fold.apply(line));
                fold.next = chunk.next;
                if chunk.ends {
                    return Ok(fold);
                }
            } else {
                fold = Self::empty(session);
            }
        }
        loop {
            let chunk = backend.read(&log, From::Position(fold.next), READ_AHEAD).await?;
            if chunk.next == fold.next {
                return Ok(fold);
            }
            chunk.lines.iter().for_each(|line| fold.apply(line));
            fold.next = chunk.next;
            if chunk.ends {
                return Ok(fold);
            }
        }
    }

    /// Returns the cached fold, if there is one and it can be read.
    pub(crate) async fn cached(backend: &dyn Backend, session: &SessionId) -> Result<Option<Self>> {
        Self::read(backend, session, &Key::metadata(session)).await
    }

    /// Returns what the last listing learnt of a growing log. Unlike the cached fold it may know of records that never
    /// became durable.
    pub(crate) async fn listed(backend: &dyn Backend, session: &SessionId) -> Result<Option<Self>> {
        Self::read(backend, session, &Key::listed(session)).await
    }

    async fn read(backend: &dyn Backend, session: &SessionId, key: &Key) -> Result<Option<Self>> {
        Ok(backend.get(key).await?.and_then(|document| Self::of_document(&document, session)))
    }

    /// Returns the fold that a document holds, if it can be read and is one of this session.
    pub(crate) fn of_document(document: &Document, session: &SessionId) -> Option<Self> {
        // A document copied from elsewhere says nothing about this session.
        Self::from_bytes(&document.bytes)
            .filter(|fold| fold.metadata.session_id == *session && fold.version == VERSION)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut metadata: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        let check = metadata.get_mut("_fold")?.as_object_mut()?.remove("check")?;
        if check != checksum(&metadata) {
            return None;
        }
        let mut fold = metadata.remove("_fold")?;
        fold.as_object_mut()?.insert("metadata".into(), Value::Object(metadata));
        serde_json::from_value(fold).ok()
    }

    /// Returns the document to cache: the metadata, and beside it what is needed to go on from there.
    pub(crate) fn to_document(&self) -> Vec<u8> {
        let mut metadata = self.metadata.to_map();
        if let Ok(Value::Object(mut fold)) = serde_json::to_value(self) {
            fold.remove("metadata");
            metadata.insert("_fold".into(), Value::Object(fold));
            let check = checksum(&metadata);
            metadata["_fold"]["check"] = check.into();
        }
        let mut bytes = serde_json::to_vec_pretty(&metadata).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Takes the next record in.
    pub(crate) fn apply(&mut self, line: &Line) {
        let stamp = line.stamp();
        self.next = stamp.position + 1;
        self.last = Some(stamp.id.clone());
        match stamp.kind {
            Kind::Entry => {
                self.leaf = Leaf { position: Some(stamp.position), depth: stamp.depth };
                self.metadata.entry_count += 1;
                self.apply_entry(line);
            }
            // They count when they are complete.
            Kind::Copy => {}
            Kind::Note => {
                self.leaf = Leaf { position: stamp.parent, depth: stamp.depth };
                let body = line.body();
                if let (true, Some(at)) = (self.timeless, Note::entry_at(&body)) {
                    self.metadata.updated_at = at;
                    self.timeless = false;
                }
                self.apply_note(stamp.position, Note::read(&body));
            }
        }
        self.metadata.message_count = self.leaf.depth;
        if self.arrival.is_some() {
            self.apply_arrival(stamp);
        }
    }

    /// Whatever the imported notes say on the way, the session is there with its last record and not before.
    fn apply_arrival(&mut self, stamp: &Stamp) {
        let arrived = self.arrival.take_if(|arrival| arrival.ends_with(stamp));
        self.purging = arrived.is_none();
        if let (true, Some(at)) = (self.timeless, arrived.and_then(|arrival| arrival.updated_at)) {
            self.metadata.updated_at = at;
            self.timeless = false;
        }
    }

    fn apply_entry(&mut self, line: &Line) {
        match line.timestamp() {
            Some(at) => {
                self.metadata.updated_at = at;
                self.timeless = false;
            }
            None => self.timeless = true,
        }
        if self.metadata.first_prompt.is_none() {
            self.metadata.first_prompt = prompt_of(&line.entry());
        }
    }

    fn apply_note(&mut self, position: Position, note: Note) {
        match note {
            Note::Created { at, set, origin, arrival } => {
                self.metadata.created_at = at;
                self.metadata.updated_at = at;
                self.metadata.apply(&set);
                self.origin = origin;
                self.arrival = arrival.filter(|_| !Defect::ShowWhatIsArriving.is_on());
            }
            Note::Set { set, .. } => {
                self.metadata.apply(&set);
                if set.contains_key("updated_at") {
                    self.timeless = false;
                }
            }
            Note::Fence { nonce, holder, epoch, .. } => {
                if self.fence.as_ref().is_none_or(|fence| fence.epoch <= epoch) {
                    self.fence = Some(Fence { position, nonce, holder, epoch });
                }
            }
            Note::Trashed { at } => self.metadata.trashed_at = Some(at),
            Note::Restored { .. } => {
                self.metadata.trashed_at = None;
                self.purging = false;
            }
            Note::Purging { .. } => self.purging = true,
            Note::Materialized { end, count, .. } => {
                self.copied_to = end;
                if self.origin.take().is_some() {
                    self.metadata.entry_count = self.metadata.entry_count.saturating_add(count);
                }
            }
            Note::Leaf { .. } | Note::Lost { .. } | Note::Other => {}
        }
    }

    /// Returns whether another fold says the same; when it was cached does not matter.
    pub(crate) fn agrees_with(&self, other: &Fold) -> bool {
        Fold { change: String::new(), ..self.clone() } == Fold { change: String::new(), ..other.clone() }
    }

    /// Returns the metadata, given when the log was last written.
    pub(crate) fn metadata(&self, modified: Option<Timestamp>) -> Metadata {
        let mut metadata = self.metadata.clone();
        if let (true, Some(modified)) = (self.timeless, modified) {
            metadata.updated_at = modified;
        }
        metadata
    }
}

/// What the cache must add up to: an altered one is folded anew rather than believed.
fn checksum(document: &Map<String, Value>) -> String {
    let bytes = serde_json::to_vec(document).unwrap_or_default();
    format!("{:08x}", crc32c::crc32c(&bytes))
}

fn prompt_of(entry: &Entry) -> Option<String> {
    let message = Message::of(entry.as_bytes())?;
    if message.role != Role::User {
        return None;
    }
    let text = message.text();
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(PROMPT_LENGTH).collect())
}

//! One conversation, held by somebody who reads it or adds to it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::backend::{From, LogKey, LogName, Position};
use crate::chain::{Gap, History, Record, Walk, Why};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fold::{Fold, Leaf};
use crate::id::{EntryId, SessionId};
use crate::metadata::Metadata;
use crate::one_line::OneLine;
use crate::stamp::{Flaw, Kind};
use crate::store::Store;
use crate::ticket::{Ack, Ticket};
use crate::writer::{Draft, Lane, Patience, Request};

const READ_AHEAD: usize = 4 << 20;
/// How much of a log is read at once when all of it is wanted.
const WHOLE: usize = 32 << 20;

/// One conversation.
///
/// A handle that was resumed at an entry keeps its own place: its appends follow on from there, whatever others add
/// to the session meanwhile. Any other handle appends to the active leaf.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) store: Store,
    pub(crate) id: SessionId,
    pub(crate) lane: Option<Arc<Lane>>,
    pub(crate) nonce: Option<Arc<str>>,
}

/// Which part of a conversation to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// The newest entries.
    Last(usize),
    /// The entries before one that an earlier page gave.
    Before(EntryId, usize),
    /// The oldest entries.
    First(usize),
    /// The entries after one that an earlier page gave.
    After(EntryId, usize),
}

impl Session {
    pub(crate) fn new(store: Store, id: SessionId) -> Self {
        // One of that name may have been found to be gone, and begun again since.
        store.inner.writer.look_again(&id);
        Self { store, id, lane: None, nonce: None }
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the store that it lives in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Adds an entry. Returns as soon as it is accepted, waiting only while the queue is full.
    pub async fn append(&self, entry: Entry) -> Result<Ticket> {
        self.submit(LogName::Messages, vec![self.draft(entry)?]).await
    }

    /// Adds an entry if the queue has room for it, without ever waiting.
    pub fn try_append(&self, entry: Entry) -> Result<Ticket> {
        let log = self.log(LogName::Messages);
        self.store.inner.writer.try_submit(&log, self.request(vec![self.draft(entry)?]))
    }

    /// Adds an entry and waits on this thread until it is as durable as the store makes it.
    ///
    /// For programs that are not async. Where nobody else is writing the session, this thread writes it itself, which
    /// is quicker than [`append`](Self::append) with a [`wait`](Ticket::wait): no other thread has to be woken.
    pub fn append_and_wait(&self, entry: Entry) -> Result<Ack> {
        let log = self.log(LogName::Messages);
        self.store.inner.writer.submit_and_wait(&log, self.request(vec![self.draft(entry)?]))
    }

    /// Adds entries, each following the one before, all of them or none.
    pub async fn append_all(&self, entries: Vec<Entry>) -> Result<Ticket> {
        let drafts = entries.into_iter().map(|entry| self.draft(entry)).collect::<Result<_>>()?;
        self.submit(LogName::Messages, drafts).await
    }

    /// Adds those entries whose ids the session's own log does not hold yet, all of them or none; the ticket names them.
    ///
    /// So an append whose answer was lost can be repeated, here or in another process, and changes nothing then. The log
    /// is read for its ids when this is first asked of it, and never again as long as it is written from here.
    pub async fn append_new(&self, entries: Vec<Entry>) -> Result<Ticket> {
        let new = |entry| {
            let entry = self.store.redacted(entry);
            self.check_size(&entry).map(|()| Draft::new_entry(&entry))
        };
        let drafts = entries.into_iter().map(new).collect::<Result<_>>()?;
        self.submit(LogName::Messages, drafts).await
    }

    /// Adds an entry and changes metadata, both or neither.
    ///
    /// The change is made again from the newest metadata whenever somebody else was faster.
    pub async fn append_and_save(
        &self,
        entry: Entry,
        change: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<Ticket> {
        self.submit(LogName::Messages, vec![self.draft(entry)?, self.store.redacted_change(Box::new(change))])
            .await
    }

    /// Adds an entry to the transcript: the agent's full message stream, apart from the conversation.
    pub async fn append_transcript(&self, entry: Entry) -> Result<Ticket> {
        self.submit(LogName::Transcript, vec![self.draft(entry)?]).await
    }

    /// Changes metadata and waits until that is durable. Concurrent changes are never lost: each is made from the
    /// state that the one before left, here or in another process.
    pub async fn update(&self, change: impl FnMut(&mut Metadata) + Send + 'static) -> Result<Metadata> {
        self.note(self.store.redacted_change(Box::new(change))).await?;
        self.metadata().await
    }

    /// Makes the conversation what is given: what is new is added, a diverging end becomes a branch of its own, and
    /// metadata is changed in the same step. Nothing is ever taken out of the log.
    pub async fn save(
        &self,
        messages: &[Entry],
        change: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<Ticket> {
        let messages: Vec<Entry> = messages.iter().cloned().map(|entry| self.store.redacted(entry)).collect();
        messages.iter().try_for_each(|entry| self.check_size(entry))?;
        // What waits to be written must not be taken for new and be added twice.
        self.store.inner.writer.settle(&self.log(LogName::Messages)).await?;
        let present = self.messages().await?;
        let same =
            present.entries().zip(&messages).take_while(|(one, other)| one.as_bytes() == other.as_bytes());
        let common = same.count();
        let mut drafts: Vec<Draft> = messages[common..].iter().map(Draft::entry).collect();
        let mut lane = self.lane.clone();
        if common < present.records.len() {
            let leaf = match common.checked_sub(1).map(|last| &present.records[last]) {
                None => Leaf::default(),
                Some(record) if record.session == self.id => {
                    self.store.find(&self.id, record.entry.id()).await?.0
                }
                Some(record) => Leaf { position: None, depth: record.depth },
            };
            if drafts.is_empty() {
                drafts.push(Draft::Leaf(leaf));
            }
            // A handle with its own place moves there; any other follows the active leaf anyway.
            lane = match lane {
                Some(lane) => {
                    lane.set(leaf);
                    Some(lane)
                }
                None => Some(Arc::new(Lane::at(leaf))),
            };
        }
        drafts.push(self.store.redacted_change(Box::new(change)));
        let request = Request { drafts, lane, nonce: self.nonce.clone(), ..Request::default() };
        self.store.request(&self.log(LogName::Messages), request).await
    }

    /// Returns what is known about the session.
    pub async fn metadata(&self) -> Result<Metadata> {
        if !self.store.inner.backend.capabilities().keeps {
            return Ok(Metadata::new(self.id.clone(), jiff::Timestamp::now()));
        }
        self.store.metadata(&self.id).await
    }

    /// Returns the conversation, inherited entries included, up to this handle's place.
    pub async fn messages(&self) -> Result<History> {
        self.newest(usize::MAX).await
    }

    /// Returns the newest entries, and a gap after them if the log's last line was damaged: it may have been one.
    async fn newest(&self, count: usize) -> Result<History> {
        let fold = self.store.fold(&self.id).await?;
        let leaf = self.leaf(&fold);
        let ends_here = leaf == fold.leaf;
        let history = match count {
            usize::MAX if self.is_one_line(&fold, leaf) => self.forward(Leaf::default(), leaf, count).await?,
            _ => None,
        };
        let whole = |history: &History| history.records.len() as u64 == leaf.depth;
        let mut history = match history.filter(whole) {
            Some(history) => history,
            None => self.walk_from(leaf).await?.collect(count).await?,
        };
        // From where its state ends: to find the last record anew, all that was written with it would be read back.
        let end = From::Position(fold.next);
        let end = self.store.inner.backend.read(&self.log(LogName::Messages), end, 1).await?;
        // A line that is merely cut was never acknowledged, or is being written now.
        if ends_here && end.tail.is_some_and(|tail| tail.flaw != Flaw::Cut) {
            let depths = leaf.depth + 1..=leaf.depth + 1;
            history.gaps.push(Gap { session: self.id.clone(), depths, reason: Why::Damaged });
        }
        Ok(history)
    }

    /// Returns the conversation up to an entry, which may stand on any branch. An unknown one is an error.
    pub async fn messages_up_to(&self, entry: &EntryId) -> Result<History> {
        let (leaf, _) = self.store.find(&self.id, entry).await?;
        self.walk_from(leaf).await?.collect(usize::MAX).await
    }

    /// Returns part of the conversation. From the end, only that part is read.
    pub async fn page(&self, page: Page) -> Result<History> {
        match page {
            Page::Last(count) => self.newest(count).await,
            Page::Before(entry, count) => {
                let (leaf, _) = self.store.find(&self.id, &entry).await?;
                let mut walk = self.walk_from(leaf).await?;
                walk.next().await?;
                walk.collect(count).await
            }
            Page::First(count) => self.oldest_after(Leaf::default(), count).await,
            Page::After(entry, count) => {
                let (leaf, _) = self.store.find(&self.id, &entry).await?;
                self.oldest_after(leaf, count).await
            }
        }
    }

    /// Returns entries after a depth, counted from the oldest.
    async fn oldest_after(&self, after: Leaf, count: usize) -> Result<History> {
        let fold = self.store.fold(&self.id).await?;
        let leaf = self.leaf(&fold);
        if self.is_one_line(&fold, leaf) {
            // A lost entry and one of another branch can cancel out in the counts; then it is no single line.
            if let Some(history) = self.forward(after, leaf, count).await? {
                return Ok(history);
            }
        }
        let mut history = self.walk_from(leaf).await?.collect(usize::MAX).await?;
        history.records.retain(|record| record.depth > after.depth);
        history.records.truncate(count);
        Ok(history)
    }

    /// Returns whether nothing was ever branched off: then log order is conversation order.
    fn is_one_line(&self, fold: &Fold, leaf: Leaf) -> bool {
        let own = fold.origin.is_none() && fold.copied_to.is_none();
        own && fold.metadata.entry_count == leaf.depth && leaf == fold.leaf
    }

    /// Reads entries between two places in log order, as long as each follows the one before; `None` if one does not.
    async fn forward(&self, after: Leaf, until: Leaf, count: usize) -> Result<Option<History>> {
        let log = self.log(LogName::Messages);
        let there = usize::try_from(until.depth.saturating_sub(after.depth)).unwrap_or(usize::MAX);
        let mut entries = OneLine::after(after.position, &self.id, count, there);
        let (mut from, mut is_wanted) = (after.position.map_or(0, |position| position + 1), count > 0);
        while is_wanted {
            let size = if count == usize::MAX { WHOLE } else { 64 << 10 };
            let chunk = self.store.inner.backend.read(&log, From::Position(from), size).await?;
            if chunk.next == from {
                break;
            }
            from = chunk.next;
            is_wanted = entries.take(chunk.lines) && !chunk.ends;
        }
        Ok(entries.into_records().map(|records| History { records, ..History::default() }))
    }

    /// Returns every entry of every branch: inherited ones first, then this log's own in the order they came.
    pub async fn all_branches(&self) -> Result<Vec<Branched>> {
        let fold = self.store.fold(&self.id).await?;
        let mut inherited = History::default();
        let copied = fold.copied_to.map(|_| u64::MAX);
        if let Some(depth) = fold.origin.as_ref().map(|origin| origin.depth).or(copied) {
            let leaf = Leaf { position: None, depth };
            inherited = self.walk_from(leaf).await?.collect(usize::MAX).await?;
        }
        let mut all: Vec<Branched> = Vec::new();
        for record in inherited.records {
            let parent = all.last().map(|before: &Branched| before.record.entry.id().clone());
            all.push(Branched { record, parent });
        }
        let mut from = 0;
        let log = self.log(LogName::Messages);
        let mut own: std::collections::HashMap<Position, EntryId> = std::collections::HashMap::new();
        let by_depth: Vec<EntryId> = all.iter().map(|branched| branched.record.entry.id().clone()).collect();
        loop {
            let chunk = self.store.inner.backend.read(&log, From::Position(from), READ_AHEAD).await?;
            if chunk.next == from {
                return Ok(all);
            }
            from = chunk.next;
            for line in chunk.lines {
                let stamp = line.stamp().clone();
                if stamp.kind != Kind::Entry {
                    continue;
                }
                let inherited = || by_depth.get(usize::try_from(stamp.depth).ok()?.checked_sub(2)?).cloned();
                let parent = match stamp.parent {
                    Some(parent) => own.get(&parent).cloned(),
                    None => inherited(),
                };
                own.insert(stamp.position, stamp.id.clone());
                let record = Record {
                    entry: line.entry(),
                    session: self.id.clone(),
                    position: stamp.position,
                    depth: stamp.depth,
                };
                all.push(Branched { record, parent });
            }
        }
    }

    /// Returns the transcript from a position on, and where to go on.
    pub async fn transcript(&self, from: Position) -> Result<(Vec<Entry>, Position)> {
        let log = self.log(LogName::Transcript);
        // As with the conversation: what cannot be written now must not keep anybody from reading.
        let _ = self.store.inner.writer.settle(&log).await;
        let chunk = self.store.inner.backend.read(&log, From::Position(from), READ_AHEAD).await?;
        Ok((chunk.lines.iter().map(|line| line.entry()).collect(), chunk.next))
    }

    /// Returns the transcript's file, where the backend has files: what hooks call `transcript_path`.
    pub fn transcript_path(&self) -> Option<PathBuf> {
        self.store.inner.backend.path(&self.log(LogName::Transcript))
    }

    /// Returns a handle whose next append follows an entry. Nothing is written before that append.
    pub async fn at(&self, entry: &EntryId) -> Result<Session> {
        let (leaf, _) = self.store.find(&self.id, entry).await?;
        Ok(Session { lane: Some(Arc::new(Lane::at(leaf))), ..self.clone() })
    }

    /// Makes an entry the active leaf, so that everybody goes on from there.
    pub async fn select(&self, entry: &EntryId) -> Result<()> {
        let (leaf, _) = self.store.find(&self.id, entry).await?;
        self.note(Draft::Leaf(leaf)).await
    }

    /// Puts the session away, or takes it out again: an archived one is not offered by "latest".
    pub async fn archive(&self, archive: Archive) -> Result<Metadata> {
        self.update(move |metadata| metadata.archived = archive == Archive::Away).await
    }

    /// Waits until everything that readers can see of the conversation is durable.
    pub async fn settle(&self) -> Result<()> {
        self.store.inner.writer.settle(&self.log(LogName::Messages)).await?;
        self.store.settle(&self.log(LogName::Messages)).await
    }

    pub(crate) async fn walk_from(&self, leaf: Leaf) -> Result<Walk> {
        let fold = self.store.fold(&self.id).await?;
        Ok(Walk::new(self.store.inner.backend.clone(), &self.id, fold, leaf))
    }

    /// Returns where this handle's next entry goes.
    pub(crate) fn leaf(&self, fold: &Fold) -> Leaf {
        self.lane.as_ref().map_or(fold.leaf, |lane| lane.get())
    }

    pub(crate) fn log(&self, name: LogName) -> LogKey {
        LogKey::new(self.id.clone(), name)
    }

    pub(crate) async fn submit(&self, name: LogName, drafts: Vec<Draft>) -> Result<Ticket> {
        // A place in the conversation and the right to drive it mean nothing to the other logs.
        let request = match name {
            LogName::Messages => self.request(drafts),
            _ => Request { drafts, ..Request::default() },
        };
        self.store.request(&self.log(name), request).await
    }

    /// Adds a record about the session and waits until it is in, or until there is trouble.
    pub(crate) async fn note(&self, draft: Draft) -> Result<()> {
        let request = Request { patience: Patience::UntilTrouble, ..self.request(vec![draft]) };
        self.store.request(&self.log(LogName::Messages), request).await?.await.map(drop)
    }

    fn request(&self, drafts: Vec<Draft>) -> Request {
        Request { drafts, lane: self.lane.clone(), nonce: self.nonce.clone(), ..Request::default() }
    }

    fn draft(&self, entry: Entry) -> Result<Draft> {
        let entry = self.store.redacted(entry);
        self.check_size(&entry)?;
        Ok(Draft::entry(&entry))
    }

    fn check_size(&self, entry: &Entry) -> Result<()> {
        let (size, limit) = (entry.as_bytes().len(), self.store.inner.backend.capabilities().max_record);
        if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(()) }
    }
}

/// Whether a session is put away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {
    /// Put it away.
    Away,
    /// Take it out again.
    Back,
}

/// An entry of any branch, and the one it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branched {
    /// The entry.
    pub record: Record,
    /// The entry before it; `None` for a root.
    pub parent: Option<EntryId>,
}

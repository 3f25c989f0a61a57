//! What must be known of a log to add to it.

use jiff::Timestamp;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::backend::{Backend, Chunk, Durability, From, LogKey, LogName, Position};
use crate::error::Result;
use crate::fold::{Fold, Leaf};
use crate::id::EntryId;
use crate::note::Note;
use crate::stamp::{Kind, Line};

use super::seen::Seen;

const READ_AHEAD: usize = 1 << 20;

/// The end of a log as this writer last saw it.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) next: Position,
    /// Up to where it is durable, or will be before anything is added.
    pub(crate) settled: Position,
    pub(crate) leaf: Leaf,
    /// The first record's id: a session that was purged and begun again has another.
    pub(crate) birth: Option<EntryId>,
    pub(crate) trashed: bool,
    pub(crate) purging: bool,
    /// When the last record was made, if it is an entry that does not say so itself.
    pub(crate) entry_at: Option<Timestamp>,
    /// The session was found to be gone, so it is looked for before anything is added: another may be in its place.
    pub(crate) gone: bool,
    /// The backend keeps nothing, so a log without a beginning is as good as any.
    pub(crate) unkept: bool,
    /// The session's state, once somebody asked for it; from the first record on where others would have to ask for it.
    pub(crate) fold: Option<Box<Fold>>,
    /// The log was begun here, and every record of it went through this head.
    pub(crate) is_own: bool,
    /// Which entries there are, once somebody asked for that.
    pub(crate) seen: Option<Seen>,
}

impl Head {
    /// Reads the last record: its stamp tells all that a plain append needs.
    pub(crate) async fn load(backend: &dyn Backend, log: &LogKey) -> Result<Self> {
        let chunk = backend.read(log, From::Last, 1).await?;
        let mut head = Self::empty(backend);
        if let Some(line) = chunk.lines.last() {
            head.birth = birth(backend, log).await?;
            head.apply(line);
            if !tells_all(line) {
                head.ensure_fold(backend, log).await?;
            }
        }
        head.next = head.next.max(chunk.next);
        head.settled = head.next;
        Ok(head)
    }

    /// Returns the head of a log that nobody has begun.
    pub(crate) fn unborn(backend: &dyn Backend, log: &LogKey) -> Self {
        // Where looking is cheap it is cheaper to look once, in the end, than to keep it in mind with every record.
        let fold = backend.capabilities().across_hosts.then(|| Box::new(Fold::empty(&log.session)));
        Self { fold, is_own: true, ..Self::empty(backend) }
    }

    /// Returns the session's state, if all of it is known from the records that were written here.
    pub(crate) fn own_fold(&self) -> Option<Fold> {
        self.fold.as_deref().filter(|_| self.is_own).cloned()
    }

    /// Reads every record, in order: lines that are out of place can hide others from a search, but not from this.
    pub(crate) async fn load_whole(backend: &dyn Backend, log: &LogKey) -> Result<Self> {
        let mut head = Self::empty(backend);
        head.catch_up(backend, log).await?;
        Ok(head)
    }

    fn empty(backend: &dyn Backend) -> Self {
        Self {
            next: 0,
            settled: 0,
            leaf: Leaf::default(),
            birth: None,
            trashed: false,
            purging: false,
            entry_at: None,
            gone: false,
            unkept: !backend.capabilities().keeps,
            fold: None,
            is_own: false,
            seen: None,
        }
    }

    /// Notes that all its records are written, as safely as `durability` says.
    pub(crate) fn written(mut self, durability: Durability) -> Self {
        // Where nothing is ever synced, nothing is promised that a hole could break.
        if durability != Durability::Written {
            self.settled = self.next;
        }
        self.confirm_seen();
        self
    }

    fn confirm_seen(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.confirm();
        }
    }

    /// Takes in what others appended since.
    pub(crate) async fn catch_up(&mut self, backend: &dyn Backend, log: &LogKey) -> Result<Vec<Line>> {
        let mut fresh = Vec::new();
        loop {
            let Chunk { lines, next, .. } = backend.read(log, From::Position(self.next), READ_AHEAD).await?;
            if next == self.next {
                // Others made sure of what they found before they added to it, and of theirs when they were done.
                self.settled = self.next;
                self.confirm_seen();
                return Ok(fresh);
            }
            lines.iter().for_each(|line| self.apply(line));
            self.next = next;
            fresh.extend(lines);
        }
    }

    /// Loads the session's state, for those who want to change metadata.
    pub(crate) async fn ensure_fold(&mut self, backend: &dyn Backend, log: &LogKey) -> Result<()> {
        if self.fold.is_none() && log.name == LogName::Messages {
            let mut fold = Fold::load(backend, &log.session).await?;
            // It may have read further than this head had, and past entries that were not looked at.
            if fold.next > self.next {
                self.seen = None;
            }
            self.next = self.next.max(fold.next);
            self.leaf = fold.leaf;
            self.trashed = fold.metadata.trashed_at.is_some();
            self.purging = fold.purging;
            fold.next = self.next;
            self.fold = Some(Box::new(fold));
        }
        Ok(())
    }

    /// Reads which entries there are, once: from then on it is known of every record that comes.
    pub(crate) async fn ensure_seen(&mut self, backend: &dyn Backend, log: &LogKey) -> Result<()> {
        if self.seen.is_some() {
            return Ok(());
        }
        let (mut seen, mut from) = (Seen::default(), 0);
        while from < self.next {
            let Chunk { lines, next, .. } = backend.read(log, From::Position(from), READ_AHEAD).await?;
            if next == from {
                break;
            }
            // What others added meanwhile comes with the next batch, which they were faster than.
            let entries = lines.iter().map(Line::stamp).filter(|stamp| stamp.position < self.next);
            let entries = entries.filter(|stamp| stamp.kind == Kind::Entry);
            entries.for_each(|stamp| seen.compose(&stamp.id));
            from = next;
        }
        seen.confirm();
        self.seen = Some(seen);
        Ok(())
    }

    /// Takes the next record in.
    pub(crate) fn apply(&mut self, line: &Line) {
        let stamp = line.stamp();
        self.next = stamp.position + 1;
        if stamp.position == 0 {
            self.birth = Some(stamp.id.clone());
        }
        match stamp.kind {
            Kind::Entry => {
                self.leaf = Leaf { position: Some(stamp.position), depth: stamp.depth };
                let dated = line.timestamp().is_some();
                self.entry_at = (!dated).then(Timestamp::now);
                if let Some(seen) = &mut self.seen {
                    seen.compose(&stamp.id);
                }
            }
            Kind::Copy => {}
            Kind::Note => {
                self.entry_at = None;
                self.leaf = Leaf { position: stamp.parent, depth: stamp.depth };
                match Note::read(&line.body()) {
                    Note::Trashed { .. } => self.trashed = true,
                    Note::Restored { .. } => (self.trashed, self.purging) = (false, false),
                    Note::Purging { .. } => self.purging = true,
                    _ => {}
                }
            }
        }
        if let Some(fold) = &mut self.fold {
            fold.apply(line);
        }
    }
}

/// Returns the id of a log's first record.
pub(crate) async fn birth(backend: &dyn Backend, log: &LogKey) -> Result<Option<EntryId>> {
    let chunk = backend.read(log, From::Position(0), 1).await?;
    Ok(chunk.lines.first().filter(|line| line.stamp().position == 0).map(|line| line.stamp().id.clone()))
}

/// Returns whether this record, being the last, says all there is to know for the next one.
///
/// A copy does not know the active leaf, and copies go into sessions in the trash too.
fn tells_all(line: &Line) -> bool {
    match line.stamp().kind {
        Kind::Entry => true,
        Kind::Copy => false,
        Kind::Note => {
            !matches!(Note::read(&line.body()), Note::Materialized { .. } | Note::Lost { .. } | Note::Other)
        }
    }
}

/// A handle's own place in the tree: where its next entry goes, whatever others append meanwhile.
#[derive(Debug)]
pub(crate) struct Lane {
    leaf: Mutex<Leaf>,
    /// The first record's id of the log that it is a place in, once something was added there.
    birth: OnceLock<EntryId>,
}

impl Lane {
    pub(crate) fn at(leaf: Leaf) -> Self {
        Self { leaf: Mutex::new(leaf), birth: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Leaf {
        *self.leaf()
    }

    pub(crate) fn set(&self, leaf: Leaf) {
        *self.leaf() = leaf;
    }

    /// Returns whether it can be a place in this log, and not in one that was there under the same name before.
    pub(crate) fn is_in(&self, head: &Head) -> bool {
        let is_another = self.birth.get().zip(head.birth.as_ref()).is_some_and(|(own, birth)| own != birth);
        !is_another && self.get().position.is_none_or(|position| position < head.next)
    }

    /// Something was added there, and the log is the one that begins with this record.
    pub(crate) fn bind(&self, birth: &EntryId) {
        // It stays in the log that it was first used in.
        let _ = self.birth.set(birth.clone());
    }

    fn leaf(&self) -> MutexGuard<'_, Leaf> {
        self.leaf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

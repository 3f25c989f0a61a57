//! A conversation from its leaf back to its root, through the sessions that it was forked from.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::backend::{Backend, From, LogKey, LogName, Position};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fold::{Fold, Leaf};
use crate::id::{EntryId, SessionId};
use crate::note::Note;
use crate::stamp::{Kind, Line};

/// How much is read at once; a window of few records is usually far less.
const READ_AHEAD: usize = 4 << 20;
/// How large a record usually is.
const USUAL: usize = 2 << 10;
/// How many records the first look takes in, and the most that one takes in.
const WINDOW: u64 = 64;
const WIDEST: u64 = 4096;

/// One entry of a conversation, and where it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The entry.
    pub entry: Entry,
    /// The session whose log holds it: this one, or one that it was forked from.
    pub session: SessionId,
    /// Its position there.
    pub position: Position,
    /// Its number in the conversation, from 1.
    pub depth: u64,
}

/// A conversation, or part of one, oldest entry first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The entries.
    pub records: Vec<Record>,
    /// What is missing among them; empty when the conversation is whole.
    pub gaps: Vec<Gap>,
}

impl History {
    /// Returns the entries alone.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.records.iter().map(|record| &record.entry)
    }
}

/// Entries of a conversation that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The session whose log should hold them.
    pub session: SessionId,
    /// Their numbers in the conversation.
    pub depths: RangeInclusive<u64>,
    /// Why they cannot be read.
    pub reason: Why,
}

/// Why entries cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Their session is not there any more.
    SessionMissing,
    /// Their records are damaged.
    Damaged,
    /// Their records were lost before a repair, which left a note in their place.
    Lost,
    /// Another entry stands where the fork began.
    Replaced,
    /// The forks form a circle.
    Cycle,
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (from, to, session) = (self.depths.start(), self.depths.end(), &self.session);
        let which =
            if from == to { format!("entry {from} is") } else { format!("entries {from} to {to} are") };
        let why = match self.reason {
            Why::SessionMissing => "is not there",
            Why::Damaged => "is damaged there",
            Why::Lost => "lost it before it was repaired",
            Why::Replaced => "has another entry there",
            Why::Cycle => "is a fork of itself",
        };
        write!(f, "{which} missing: session {session} {why}")
    }
}

/// Walks a conversation backwards, one entry at a time, reading no more than it must.
#[derive(Debug)]
pub(crate) struct Walk {
    backend: Arc<dyn Backend>,
    place: Option<Place>,
    visited: HashSet<SessionId>,
    pub(crate) gaps: Vec<Gap>,
}

/// Where the walk is: an entry to be read next.
#[derive(Debug)]
struct Place {
    log: LogKey,
    fold: Fold,
    leaf: Leaf,
    window: Window,
    /// The id the entry must have, where a fork recorded one.
    expected: Option<EntryId>,
    /// Entries deeper than this are passed by: the fork branched off before them.
    ceiling: u64,
}

impl Walk {
    /// Starts at a leaf of a session.
    pub(crate) fn new(backend: Arc<dyn Backend>, session: &SessionId, fold: Fold, leaf: Leaf) -> Self {
        let place = (leaf.depth > 0).then(|| Place::new(session, fold, leaf, leaf.depth));
        Self { backend, place, visited: HashSet::from([session.clone()]), gaps: Vec::new() }
    }

    /// Returns the next older entry; `None` at the root.
    pub(crate) async fn next(&mut self) -> Result<Option<Record>> {
        while let Some(mut place) = self.place.take() {
            let Some(position) = place.leaf.position else {
                self.place = self.ancestor(place).await?;
                continue;
            };
            let line = place.window.get(&*self.backend, &place.log, position).await?;
            let lost = line.as_ref().is_some_and(is_lost);
            let line = line.filter(|line| line.stamp().kind != Kind::Note);
            if let Some(expected) = place.expected.take()
                && line.as_ref().is_some_and(|line| line.stamp().id != expected)
            {
                self.gap(&place.log.session, 1..=place.ceiling, Why::Replaced);
                return Ok(None);
            }
            let Some(line) = line else {
                let reason = if lost { Why::Lost } else { Why::Damaged };
                self.place = self.past_damage(place, position, reason).await?;
                continue;
            };
            let stamp = line.stamp();
            let (depth, id) = (stamp.depth, stamp.id.clone());
            place.leaf = Leaf { position: stamp.parent, depth: depth.saturating_sub(1) };
            let session = place.log.session.clone();
            let wanted = depth <= place.ceiling;
            if depth > 1 {
                self.place = Some(place);
            }
            if wanted {
                let entry = Entry::trusted(line.body(), id);
                return Ok(Some(Record { entry, session, position, depth }));
            }
        }
        Ok(None)
    }

    /// Goes on in the inherited history, whose entry of a certain depth comes next.
    async fn ancestor(&mut self, place: Place) -> Result<Option<Place>> {
        let Place { log, fold, leaf, window, ceiling, .. } = place;
        let depth = leaf.depth.min(ceiling);
        if depth == 0 {
            return Ok(None);
        }
        if let Some(end) = fold.copied_to {
            let leaf = Leaf { position: Some(end), depth };
            let fold = Fold { copied_to: None, origin: None, ..fold };
            return Ok(Some(Place { log, fold, leaf, window, expected: None, ceiling: depth }));
        }
        let Some(origin) = fold.origin else {
            self.gap(&log.session, 1..=depth, Why::Damaged);
            return Ok(None);
        };
        if !self.visited.insert(origin.session.clone()) {
            self.gap(&origin.session, 1..=depth, Why::Cycle);
            return Ok(None);
        }
        let fold = Fold::load(&*self.backend, &origin.session).await?;
        if fold.next == 0 {
            self.gap(&origin.session, 1..=depth, Why::SessionMissing);
            return Ok(None);
        }
        let leaf = Leaf { position: Some(origin.position), depth: origin.depth };
        let mut place = Place::new(&origin.session, fold, leaf, depth);
        place.expected = Some(origin.entry);
        Ok(Some(place))
    }

    /// Steps over a record that cannot be read, to the nearest one before it that must be on the way.
    async fn past_damage(
        &mut self,
        mut place: Place,
        position: Position,
        reason: Why,
    ) -> Result<Option<Place>> {
        let depth = place.leaf.depth;
        let session = place.log.session.clone();
        if let Some(leaf) = self.only_way(&place.log, position, depth).await? {
            self.gap(&session, leaf.depth + 1..=depth.min(place.ceiling), reason);
            place.leaf = leaf;
            return Ok(Some(place));
        }
        let inherited =
            place.fold.origin.as_ref().map_or(0, |origin| origin.depth).min(depth.saturating_sub(1));
        self.gap(&session, inherited + 1..=depth.min(place.ceiling), reason);
        place.leaf = Leaf { position: None, depth: inherited };
        Ok((inherited > 0).then_some(place))
    }

    /// Returns the deepest entry before a position that every way there must have come by: the only one of its depth.
    ///
    /// Where there were branches, the nearest entry may be of another one; a wider gap is better than a wrong history.
    async fn only_way(&self, log: &LogKey, position: Position, depth: u64) -> Result<Option<Leaf>> {
        let mut by_depth: BTreeMap<u64, (Position, usize)> = BTreeMap::new();
        let mut from = 0;
        while from < position {
            let chunk = self.backend.read(log, From::Position(from), READ_AHEAD).await?;
            if chunk.next == from {
                break;
            }
            from = chunk.next;
            for stamp in chunk.lines.iter().map(Line::stamp) {
                if stamp.kind != Kind::Note && stamp.position < position && stamp.depth < depth {
                    by_depth.entry(stamp.depth).or_insert((stamp.position, 0)).1 += 1;
                }
            }
        }
        let only = by_depth.into_iter().rev().find(|(_, (_, count))| *count == 1);
        Ok(only.map(|(depth, (position, _))| Leaf { position: Some(position), depth }))
    }

    fn gap(&mut self, session: &SessionId, depths: RangeInclusive<u64>, reason: Why) {
        if !depths.is_empty() {
            self.gaps.push(Gap { session: session.clone(), depths, reason });
        }
    }

    /// Collects entries from here back, at most `limit` of them, oldest first.
    pub(crate) async fn collect(mut self, limit: usize) -> Result<History> {
        let mut records = Vec::new();
        while records.len() < limit {
            match self.next().await? {
                Some(record) => records.push(record),
                None => break,
            }
        }
        records.reverse();
        self.gaps.reverse();
        Ok(History { records, gaps: self.gaps })
    }
}

impl Place {
    fn new(session: &SessionId, fold: Fold, leaf: Leaf, ceiling: u64) -> Self {
        let log = LogKey::new(session.clone(), LogName::Messages);
        Self { log, fold, leaf, window: Window::default(), expected: None, ceiling }
    }
}

/// The records around the one that was asked for last.
#[derive(Debug, Default)]
struct Window {
    first: Position,
    next: Position,
    lines: Vec<Line>,
    width: u64,
}

impl Window {
    async fn get(&mut self, backend: &dyn Backend, log: &LogKey, position: Position) -> Result<Option<Line>> {
        if !(self.first..self.next).contains(&position) {
            self.load(backend, log, position).await?;
        }
        let found = self.lines.binary_search_by_key(&position, |line| line.stamp().position);
        Ok(found.ok().map(|index| self.lines[index].clone()))
    }

    async fn load(&mut self, backend: &dyn Backend, log: &LogKey, position: Position) -> Result<()> {
        let size: usize = self.lines.iter().map(Line::size).sum();
        self.width = match self.width {
            0 => WINDOW,
            // Large entries: a window of few is enough, and one of many would hold most of the session.
            width if size > READ_AHEAD => (width / 2).max(1),
            width => (width * 2).min(WIDEST),
        };
        self.first = (position + 1).saturating_sub(self.width);
        self.next = self.first;
        self.lines.clear();
        while self.next <= position {
            // About as much as is wanted: an entry far back must not cost what lies behind it.
            let left = (position + 1 - self.next) as usize;
            let chunk = backend.read(log, From::Position(self.next), READ_AHEAD.min(left * USUAL)).await?;
            if chunk.next == self.next {
                break;
            }
            self.next = chunk.next;
            self.lines.extend(chunk.lines.into_iter().filter(|line| line.stamp().position <= position));
        }
        self.next = position + 1;
        Ok(())
    }
}

fn is_lost(line: &Line) -> bool {
    line.stamp().kind == Kind::Note && matches!(Note::read(&line.body()), Note::Lost { .. })
}

/// Finds an entry in a session and in what it inherits, and returns it as the end of a chain.
pub(crate) async fn find(
    backend: &Arc<dyn Backend>,
    session: &SessionId,
    id: &EntryId,
) -> Result<(Leaf, Record)> {
    let missing = || Error::EntryNotFound { session: session.clone(), entry: id.clone() };
    let log = LogKey::new(session.clone(), LogName::Messages);
    if let Some(position) = backend.find(&log, id).await? {
        let chunk = backend.read(&log, From::Position(position), 1).await?;
        let line =
            chunk.lines.into_iter().find(|line| line.stamp().position == position).ok_or_else(missing)?;
        let (kind, depth) = (line.stamp().kind, line.stamp().depth);
        let leaf = match kind {
            Kind::Entry => Leaf { position: Some(position), depth },
            Kind::Copy => Leaf { position: None, depth },
            Kind::Note => return Err(missing()),
        };
        return Ok((leaf, Record { entry: line.entry(), session: session.clone(), position, depth }));
    }
    // Not before: it takes a look at the whole log, and most of what is looked for is there.
    let fold = Fold::load(&**backend, session).await?;
    let Some(origin) = &fold.origin else {
        return Err(missing());
    };
    // Only what is really inherited counts: the parent's later entries and other branches are not ours.
    let leaf = Leaf { position: None, depth: origin.depth };
    let mut walk = Walk::new(backend.clone(), session, fold, leaf);
    while let Some(record) = walk.next().await? {
        if record.entry.id() == id {
            return Ok((Leaf { position: None, depth: record.depth }, record));
        }
    }
    Err(missing())
}

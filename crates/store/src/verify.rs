//! Looking at every byte of a session: what is whole, what is not, and where.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::backend::{Chunk, Damage, From, Key, LogKey, LogName, Position};
use crate::chain::{Gap, Walk};
use crate::error::{Error, Result};
use crate::fold::{Fold, Leaf};
use crate::id::{BlobId, EntryId, SessionId};
use crate::note::Note;
use crate::stamp::{Flaw, Kind, Line};
use crate::store::Store;

const READ_AHEAD: usize = 1 << 20;

/// What was found in a session.
#[derive(Clone, Debug)]
pub struct Report {
    /// The session.
    pub session: SessionId,
    /// How many records its logs hold.
    pub records: u64,
    /// How many were lost before and are known to be: a repair left a note in their place.
    pub lost: u64,
    /// Ids that more than one entry has: such an id names the newest of them.
    pub repeated: Vec<EntryId>,
    /// What is wrong now.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Returns whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Something wrong in a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// Bytes of a log that are no record, or records that are missing.
    Damage(LogName, Damage),
    /// A record follows one that is not there, or not before it.
    Parent {
        /// The log.
        log: LogName,
        /// The record.
        position: Position,
        /// What it says it follows.
        parent: Option<Position>,
    },
    /// The history that it inherits cannot be read.
    Inherited(Gap),
    /// The log is another session's.
    Foreign(String),
    /// The cached metadata is not what the log says; it is made again when needed.
    Metadata,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Damage(_, damage) => damage.fmt(f),
            Problem::Parent { log, position, parent } => {
                let parent = parent.map_or("an inherited entry".into(), |parent| format!("record {parent}"));
                write!(f, "{}: record {position} follows {parent}, which is not there", log.as_str())
            }
            Problem::Inherited(gap) => gap.fmt(f),
            Problem::Foreign(session) => write!(f, "the log is that of session {session}"),
            Problem::Metadata => f.write_str("the cached metadata is not what the log says"),
        }
    }
}

impl Store {
    /// Reads every byte of a session and says what is wrong. Changes nothing.
    pub async fn verify(&self, id: &SessionId) -> Result<Report> {
        self.check_format().await?;
        let (report, _) = self.verify_with_contents(id).await?;
        Ok(report)
    }

    /// The same, with what is needed to compare two states of a session.
    pub(crate) async fn verify_with_contents(&self, id: &SessionId) -> Result<(Report, Contents)> {
        // Only what could not be written is missing then, and `health` tells of that.
        let _ = self.inner.writer.settle(&LogKey::new(id.clone(), LogName::Messages)).await;
        self.check_erased(id).await?;
        let mut check = Check::new(id);
        for name in LogName::ALL {
            self.verify_log(&LogKey::new(id.clone(), name), &mut check).await?;
        }
        self.verify_metadata(id, &mut check).await?;
        if check.report.records == 0 && check.report.problems.is_empty() {
            return Err(Error::SessionNotFound(id.clone()));
        }
        self.verify_inherited(id, &mut check).await?;
        Ok((check.report, check.contents))
    }

    async fn verify_log(&self, log: &LogKey, check: &mut Check) -> Result<()> {
        let backend = &*self.inner.backend;
        let mut from = 0;
        check.begin();
        loop {
            let Chunk { lines, damage, next, tail, .. } =
                backend.read(log, From::Position(from), READ_AHEAD).await?;
            lines.iter().for_each(|line| check.record(log.name, line));
            check.report.problems.extend(damage.into_iter().map(|damage| Problem::Damage(log.name, damage)));
            if next == from {
                if let Some(tail) = tail
                    && self.is_torn(log, from, &tail).await
                {
                    check.report.problems.push(Problem::Damage(log.name, tail));
                }
                return Ok(());
            }
            from = next;
        }
    }

    /// A bad end may be a write under way. Whoever is writing has the lock; once it was free, what is still there is
    /// torn.
    async fn is_torn(&self, log: &LogKey, from: Position, tail: &Damage) -> bool {
        let _ = self.inner.backend.settle(log).await;
        let again = self.inner.backend.read(log, From::Position(from), READ_AHEAD).await;
        again.is_ok_and(|chunk| chunk.tail.as_ref() == Some(tail))
    }

    async fn verify_inherited(&self, id: &SessionId, check: &mut Check) -> Result<()> {
        let Some(origin) = check.fold.origin.clone() else {
            return Ok(());
        };
        let leaf = Leaf { position: None, depth: origin.depth };
        let history =
            Walk::new(self.inner.backend.clone(), id, check.fold.clone(), leaf).collect(usize::MAX).await?;
        check.report.problems.extend(history.gaps.into_iter().map(Problem::Inherited));
        Ok(())
    }

    async fn verify_metadata(&self, id: &SessionId, check: &mut Check) -> Result<()> {
        let backend = &*self.inner.backend;
        let there = backend.get(&Key::metadata(id)).await?.is_some();
        let cached = Fold::cached(backend, id).await?;
        if let Some(known) = cached.as_ref().filter(|cached| cached.next > check.fold.next) {
            // The log had more when it was last folded.
            let (file, lost) = ("messages.jsonl".to_owned(), check.fold.next..known.next);
            let damage = Damage { file, offset: 0, length: 0, flaw: Flaw::Missing, lost };
            check.report.problems.push(Problem::Damage(LogName::Messages, damage));
            return Ok(());
        }
        let right = match &cached {
            None => !there,
            Some(cached) if cached.next == check.fold.next => check.fold.agrees_with(cached),
            Some(cached) => self.agrees_so_far(id, cached).await?,
        };
        if !right {
            check.report.problems.push(Problem::Metadata);
        }
        Ok(())
    }

    /// Checks a cache that is merely older by folding up to where it reaches.
    async fn agrees_so_far(&self, id: &SessionId, cached: &Fold) -> Result<bool> {
        let log = LogKey::new(id.clone(), LogName::Messages);
        let mut fold = Fold::empty(id);
        while fold.next < cached.next {
            let chunk = self.inner.backend.read(&log, From::Position(fold.next), READ_AHEAD).await?;
            if chunk.next == fold.next {
                return Ok(false);
            }
            chunk
                .lines
                .iter()
                .take_while(|line| line.stamp().position < cached.next)
                .for_each(|line| fold.apply(line));
            fold.next = chunk.next.min(cached.next);
        }
        Ok(fold.agrees_with(cached))
    }

    /// Returns every session there is, the trash included.
    pub async fn ids(&self) -> Result<Vec<SessionId>> {
        self.ids_with_prefix("", usize::MAX).await
    }
}

/// What every readable record was: to prove that a repair lost none.
pub(crate) type Contents = HashMap<(LogName, Position), BlobId>;

/// A session under examination.
struct Check {
    report: Report,
    contents: Contents,
    fold: Fold,
    depths: HashMap<Position, u64>,
    notes: HashSet<Position>,
    ids: HashMap<EntryId, Position>,
}

impl Check {
    fn new(id: &SessionId) -> Self {
        Self {
            report: Report {
                session: id.clone(),
                records: 0,
                lost: 0,
                repeated: Vec::new(),
                problems: Vec::new(),
            },
            contents: HashMap::new(),
            fold: Fold::empty(id),
            depths: HashMap::new(),
            notes: HashSet::new(),
            ids: HashMap::new(),
        }
    }

    fn begin(&mut self) {
        self.depths.clear();
        self.notes.clear();
        self.ids.clear();
    }

    fn record(&mut self, log: LogName, line: &Line) {
        let stamp = line.stamp();
        let position = stamp.position;
        self.report.records += 1;
        self.contents.insert((log, position), BlobId::of(&line.body()));
        let follows = |parent: Position, depth: u64| match self.depths.get(&parent) {
            Some(found) => *found == depth,
            // One that cannot be read is damage, and reported as that.
            None => parent < position && !self.notes.contains(&parent),
        };
        let placed = match (stamp.kind, stamp.parent) {
            (Kind::Note, Some(parent)) => follows(parent, stamp.depth),
            (_, Some(parent)) => stamp.depth > 0 && follows(parent, stamp.depth - 1),
            (Kind::Note, None) => true,
            // Without a parent it is a root, or follows an inherited entry.
            (Kind::Entry, None) => {
                stamp.depth == 1 || self.inherited_depth() >= stamp.depth.saturating_sub(1)
            }
            (Kind::Copy, None) => stamp.depth == 1,
        };
        if !placed {
            self.report.problems.push(Problem::Parent { log, position, parent: stamp.parent });
        }
        if stamp.kind != Kind::Note {
            self.depths.insert(position, stamp.depth);
        }
        if stamp.kind == Kind::Entry && self.ids.insert(stamp.id.clone(), position).is_some() {
            self.report.repeated.push(stamp.id.clone());
        }
        if stamp.kind == Kind::Note {
            match Note::read(&line.body()) {
                // An import may have given it another id.
                Note::Created { set, arrival: None, .. } if position == 0 => {
                    self.notes.insert(position);
                    let of = set.get("session_id").and_then(|id| id.as_str());
                    if let Some(other) = of.filter(|of| *of != self.report.session.as_str()) {
                        self.report.problems.push(Problem::Foreign(other.to_owned()));
                    }
                }
                Note::Lost { .. } => self.report.lost += 1,
                _ => drop(self.notes.insert(position)),
            }
        }
        if log == LogName::Messages {
            self.fold.apply(line);
        }
    }

    fn inherited_depth(&self) -> u64 {
        let copies = self.fold.copied_to.and_then(|end| self.depths.get(&end).copied());
        copies.or(self.fold.origin.as_ref().map(|origin| origin.depth)).unwrap_or(0)
    }
}

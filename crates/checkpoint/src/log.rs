//! A session's log of checkpoints, read once and then followed.

use std::collections::HashMap;
use std::sync::Arc;

use rethread_store::backend::{Backend, From, LogKey, LogName, Position};
use rethread_store::{EntryId, SessionId};

use crate::error::Result;
use crate::record::{Checkpoint, Ended, Outcome, Retire};

const READ_AHEAD: usize = 4 << 20;

/// A session's log of checkpoints, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Log {
    next: Position,
    /// Every record, in order.
    pub(crate) records: Vec<Checkpoint>,
    /// What could not be read between them, in words.
    pub(crate) damage: Vec<String>,
    /// How each rewind ended.
    ended: HashMap<EntryId, Ended>,
    /// Rewinds that have not, by their place among the records: asked for before every capture.
    unended: Vec<usize>,
    /// What retention gave up.
    retired: Option<Retire>,
}

/// Part of a log, from where it was known to end.
#[derive(Debug)]
pub(crate) struct News {
    from: Position,
    next: Position,
    records: Vec<Checkpoint>,
    damage: Vec<String>,
}

impl News {
    /// Reads what came since a position.
    pub(crate) async fn since(
        from: Position,
        backend: &Arc<dyn Backend>,
        session: &SessionId,
    ) -> Result<Self> {
        let key = LogKey::new(session.clone(), LogName::Checkpoints);
        let mut news = Self { from, next: from, records: Vec::new(), damage: Vec::new() };
        if from > 0 && !backend.changed(&key, from).await? {
            return Ok(news);
        }
        loop {
            let chunk = backend.read(&key, From::Position(news.next), READ_AHEAD).await?;
            news.damage.extend(chunk.damage.iter().map(ToString::to_string));
            let records =
                chunk.lines.iter().map(|line| Checkpoint::read(&line.entry(), line.stamp().position));
            news.records.extend(records);
            if chunk.next == news.next {
                return Ok(news);
            }
            news.next = chunk.next;
        }
    }
}

impl Log {
    /// Reads a whole log.
    pub(crate) async fn read(backend: &Arc<dyn Backend>, session: &SessionId) -> Result<Self> {
        let mut log = Self::default();
        log.take_in(News::since(0, backend, session).await?);
        Ok(log)
    }

    /// Takes in what came since the last time; what somebody else took in meanwhile is not taken twice.
    pub(crate) fn take_in(&mut self, news: News) {
        if news.from == self.next {
            self.next = news.next;
            self.damage.extend(news.damage);
            news.records.into_iter().for_each(|record| self.add(record));
        }
    }

    fn add(&mut self, record: Checkpoint) {
        if let Some(ended) = &record.ended {
            // The first word counts: a rewind ends once.
            self.ended.entry(ended.receipt.clone()).or_insert_with(|| ended.clone());
            self.unended.retain(|at| self.records[*at].id != ended.receipt);
        }
        if let Some(retire) = &record.retire
            && self.retired.as_ref().is_none_or(|known| known.before < retire.before)
        {
            self.retired = Some(retire.clone());
        }
        // What a fork took over was its parent's to finish.
        if record.rewind.is_some() && record.inherited.is_none() && !self.ended.contains_key(&record.id) {
            self.unended.push(self.records.len());
        }
        self.records.push(record);
    }

    pub(crate) fn next(&self) -> Position {
        self.next
    }

    /// Returns the rewinds that nobody has finished or taken back.
    pub(crate) fn unended(&self) -> impl Iterator<Item = &Checkpoint> {
        self.unended.iter().map(|at| &self.records[*at])
    }

    /// Returns what counts: without what retention gave up, and without rewinds that did not happen.
    pub(crate) fn live(&self) -> Vec<Checkpoint> {
        let kept = |record: &&Checkpoint| !self.is_given_up(record);
        let mut live: Vec<Checkpoint> =
            self.records.iter().filter(kept).filter_map(|record| self.happened(record)).collect();
        // What a fork took over from its parent came before anything of its own.
        live.sort_by_key(|record| record.inherited.is_none());
        let mut seen = std::collections::HashSet::new();
        live.retain(|record| record.inherited.is_none() || seen.insert(record.id.clone()));
        live
    }

    /// Returns the captures that retention gave up.
    pub(crate) fn given_up(&self) -> impl Iterator<Item = &Checkpoint> {
        self.records.iter().filter(|record| record.is_capture() && self.is_given_up(record))
    }

    fn is_given_up(&self, record: &Checkpoint) -> bool {
        let retired =
            |retire: &Retire| record.position < retire.before && !retire.keep.contains(&record.position);
        self.retired.as_ref().is_some_and(retired)
    }

    /// Returns what of a record came to pass.
    pub(crate) fn happened(&self, record: &Checkpoint) -> Option<Checkpoint> {
        if record.rewind.is_none() {
            return Some(record.clone());
        }
        let ended = self.ended.get(&record.id).filter(|ended| ended.outcome == Outcome::Done)?;
        let mut record = record.clone();
        record.changes.retain(|change| !ended.left.contains(&change.path));
        Some(record)
    }
}

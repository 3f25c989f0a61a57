//! Every log's queue, and which of them has work now.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::queue::{Failing, Job, Queue};
use crate::backend::LogKey;
use crate::error::Error;
use crate::health::{Event, Trouble};
use crate::id::SessionId;

/// How long written records may stay unsynced.
pub(super) const SYNC_WITHIN: Duration = Duration::from_millis(900);
/// How soon a log is looked at again whose time has come while somebody is writing it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How many logs are remembered when nothing happens on them.
const MAX_IDLE: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) queues: HashMap<LogKey, Queue>,
    pub(super) ready: VecDeque<LogKey>,
    /// Logs that are parked or not synced: the only ones a clock matters to.
    pub(super) watched: HashSet<LogKey>,
    pub(super) bytes: usize,
    pub(super) threads: usize,
    pub(super) idle_threads: usize,
    /// One more looks for work without sleeping.
    pub(super) awake: bool,
    /// No more operations are accepted.
    pub(super) closing: bool,
    /// Threads end when they have nothing to do.
    pub(super) ending: bool,
    pub(super) subscribers: Vec<async_channel::Sender<Event>>,
    /// Sessions whose cached metadata is older than their log.
    pub(super) touched: HashSet<SessionId>,
}

impl State {
    /// Puts a log into the line of those with work, unless it is owned, parked or there already.
    pub(super) fn make_ready(&mut self, log: &LogKey) {
        if let Some(queue) = self.queues.get_mut(log)
            && queue.wants_a_thread()
        {
            queue.listed = true;
            self.ready.push_back(log.clone());
        }
    }

    pub(super) fn next_job(&mut self) -> Option<(LogKey, Job)> {
        self.wake_parked();
        let ending = self.ending;
        let overdue = |queue: &Queue| queue.unsynced.is_some() && (ending || queue.is_overdue());
        // First what has waited long enough for its sync; a log that has work gets it with its next batch.
        let due = |log: &&LogKey| {
            let free = |queue: &Queue| !queue.owned && !queue.has_work() && queue.parked_until.is_none();
            self.queues.get(log).is_some_and(|queue| free(queue) && overdue(queue))
        };
        if let Some(log) = self.watched.iter().find(due).cloned() {
            self.queues.get_mut(&log)?.owned = true;
            return Some((log, Job::Sync));
        }
        let log = self.ready.pop_front()?;
        let queue = self.queues.get_mut(&log)?;
        queue.listed = false;
        Some((log, queue.take_job()))
    }

    pub(super) fn wake_parked(&mut self) {
        let now = Instant::now();
        let due = |queue: &Queue| queue.parked_until.is_some_and(|until| until <= now) && !queue.owned;
        let due = |log: &&LogKey| self.queues.get(log).is_some_and(due);
        let logs: Vec<LogKey> = self.watched.iter().filter(due).cloned().collect();
        for log in logs {
            if let Some(queue) = self.queues.get_mut(&log) {
                queue.parked_until = None;
            }
            self.make_ready(&log);
        }
    }

    pub(super) fn next_alarm(&self) -> Option<Instant> {
        let later = Instant::now() + LOOK_AGAIN;
        let alarm = |queue: &Queue| {
            let sync = queue.unsynced.map(|since| since + SYNC_WITHIN);
            // Whoever owns it may be no thread of the pool, and not come back to look at the clock.
            if queue.owned { sync.map(|at| at.max(later)) } else { queue.parked_until.or(sync) }
        };
        self.watched.iter().filter_map(|log| self.queues.get(log).and_then(alarm)).min()
    }

    pub(super) fn watch(&mut self, log: &LogKey) {
        let timed = |queue: &Queue| queue.parked_until.is_some() || queue.unsynced.is_some();
        if self.queues.get(log).is_some_and(timed) {
            self.watched.insert(log.clone());
        } else {
            self.watched.remove(log);
        }
    }

    pub(super) fn recovered(&mut self, log: &LogKey) {
        let Some(queue) = self.queues.get_mut(log) else {
            return;
        };
        if queue.failing.take().is_some_and(|failing| failing.announced) {
            self.tell(Event::Recovered(log.clone()));
        }
    }

    pub(super) fn failed(&mut self, log: &LogKey, error: Error) {
        let Some(queue) = self.queues.get_mut(log) else {
            return;
        };
        let first = queue.note_failure(error);
        let Some(failing) = queue.trouble().cloned() else {
            return;
        };
        // Who waits for a call to return learns now that it cannot; other records stay.
        queue.tell_impatient(&failing.error);
        if first {
            let Some(queue) = self.queues.get(log) else { return };
            let trouble = trouble(log, &failing, queue);
            self.tell(Event::Failing(trouble));
        }
    }

    /// Counts again what waits for a log that nobody owns.
    pub(super) fn recount(&mut self, log: &LogKey) {
        let Some(queue) = self.queues.get_mut(log) else {
            return;
        };
        let stuck = queue.stuck.iter().flat_map(|batch| &batch.operations);
        let held = stuck.chain(&queue.waiting).filter(|operation| !operation.is_barrier());
        let (records, bytes) =
            held.fold((0, 0), |(records, bytes), operation| (records + 1, bytes + operation.size));
        self.bytes = self.bytes - queue.bytes + bytes;
        (queue.records, queue.bytes) = (records, bytes);
    }

    pub(super) fn forget_idle(&mut self) {
        if self.queues.len() > MAX_IDLE {
            self.queues.retain(|_, queue| !queue.is_idle());
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.subscribers.retain(|subscriber| subscriber.try_send(event.clone()).is_ok());
    }
}

pub(super) fn trouble(log: &LogKey, failing: &Failing, queue: &Queue) -> Trouble {
    Trouble {
        log: log.clone(),
        since: failing.since,
        error: failing.error.clone(),
        attempts: failing.attempts,
        queued: queue.records,
    }
}

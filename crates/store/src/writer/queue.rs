//! The operations that wait for one log, and what is known of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::compose::Composed;
use super::head::Head;
use super::operation::Operation;
use super::state::SYNC_WITHIN;
use super::worker::Unsynced;
use crate::defect::Defect;
use crate::error::Error;

/// How soon a locked log is tried again: somebody else's batch takes about as long.
const LOCK_PAUSE: Duration = Duration::from_millis(3);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The same where others have the lock: whoever tries seldom never meets it between two of a crowd.
const LONGEST_LOCK_PAUSE: Duration = Duration::from_millis(100);
/// How much is written at once. More gains little, and whoever opens the log reads its last write back.
pub(super) const MAX_BATCH: usize = 1 << 20;
/// How long a log may be locked before that counts as trouble.
const LOCK_GRACE: Duration = Duration::from_secs(2);

/// A log's queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) waiting: VecDeque<Operation>,
    /// A batch whose write failed and that is tried again, just as it was composed.
    pub(crate) stuck: Option<Batch>,
    pub(crate) head: Option<Head>,
    /// How many records and bytes wait or are being written.
    pub(crate) records: usize,
    pub(crate) bytes: usize,
    /// A thread owns the log now.
    pub(crate) owned: bool,
    /// It stands in the list of ready logs.
    pub(crate) listed: bool,
    /// When it may be tried again.
    pub(crate) parked_until: Option<Instant>,
    /// Since when something is written and not synced.
    pub(crate) unsynced: Option<Instant>,
    pub(crate) failing: Option<Failing>,
}

/// Operations with the lines they became.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) operations: Vec<Operation>,
    /// `None`: compose it anew, nothing of it was written.
    pub(crate) composed: Option<Composed>,
}

/// What is wrong with a log.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    pub(crate) since: Timestamp,
    pub(crate) begun: Instant,
    pub(crate) error: Error,
    pub(crate) attempts: u32,
    /// Somebody was told.
    pub(crate) announced: bool,
}

impl Queue {
    /// Returns whether there is something to do now.
    pub(crate) fn has_work(&self) -> bool {
        !self.waiting.is_empty() || self.stuck.is_some()
    }

    /// Returns whether a thread should take it on, and none has or will.
    pub(crate) fn wants_a_thread(&self) -> bool {
        self.has_work() && !self.owned && !self.listed && self.parked_until.is_none()
    }

    /// Returns whether nothing at all is going on.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_work() && !self.owned && self.unsynced.is_none()
    }

    /// Notes a failed try. Returns whether it is one that people should hear of, for the first time.
    pub(crate) fn note_failure(&mut self, error: Error) -> bool {
        let begun = Instant::now();
        let failing = self.failing.get_or_insert_with(|| Failing {
            since: Timestamp::now(),
            begun,
            error: error.clone(),
            attempts: 0,
            announced: false,
        });
        failing.attempts += 1;
        let locked = matches!(error, Error::Busy { .. } | Error::Contended(_));
        failing.error = error;
        let pause = match locked {
            true if failing.begun.elapsed() < LOCK_GRACE => LOCK_PAUSE,
            true => LONGEST_LOCK_PAUSE,
            false => (LOCK_PAUSE * 2u32.saturating_pow(failing.attempts.min(12))).min(LONGEST_PAUSE),
        };
        self.parked_until = Some(Instant::now() + pause);
        let serious = !locked || failing.begun.elapsed() >= LOCK_GRACE;
        let first = serious && !failing.announced;
        failing.announced |= serious;
        first
    }

    /// Returns what is wrong, if people should know.
    pub(crate) fn trouble(&self) -> Option<&Failing> {
        self.failing.as_ref().filter(|failing| failing.announced)
    }
}

/// What a thread does for a log that it owns.
#[expect(clippy::large_enum_variant, reason = "one is made for each batch, and most carry a head")]
#[derive(Debug)]
pub(super) enum Job {
    Write { head: Option<Head>, batch: Batch, unsynced: Unsynced },
    Sync,
}

impl Queue {
    /// Takes the log, and what is to be done for it.
    pub(super) fn take_job(&mut self) -> Job {
        self.owned = true;
        let batch =
            self.stuck.take().unwrap_or_else(|| Batch { operations: self.take_waiting(), composed: None });
        let unsynced = match self.unsynced {
            None => Unsynced::Nothing,
            Some(_) if self.is_overdue() => Unsynced::Overdue,
            Some(_) => Unsynced::Something,
        };
        Job::Write { head: self.head.take(), batch, unsynced }
    }

    /// Returns whether what is written has waited for its sync long enough.
    pub(super) fn is_overdue(&self) -> bool {
        self.unsynced.is_some_and(|since| since.elapsed() >= SYNC_WITHIN)
    }

    /// Takes what waits, up to a size.
    pub(super) fn take_waiting(&mut self) -> Vec<Operation> {
        let (mut operations, mut size) = (Vec::with_capacity(self.waiting.len()), 0);
        while let Some(operation) = self.waiting.pop_front() {
            size += operation.size;
            operations.push(operation);
            if size >= MAX_BATCH || Defect::WriteOneByOne.is_on() {
                break;
            }
        }
        operations
    }
}

impl Batch {
    /// Tells those who do not outlast trouble. What may have been written stays, to be written again just so.
    fn tell_impatient(&mut self, error: &Error) {
        match &mut self.composed {
            None => self.operations = without_impatient(std::mem::take(&mut self.operations), error),
            Some(_) => {
                let impatient = self.operations.iter_mut().filter(|operation| operation.is_impatient());
                impatient.for_each(|operation| {
                    operation.tell(Err(error.clone()));
                });
            }
        }
    }
}

impl Queue {
    /// Tells those who do not outlast trouble that there is some.
    pub(crate) fn tell_impatient(&mut self, error: &Error) {
        self.waiting = without_impatient(std::mem::take(&mut self.waiting), error);
        if let Some(batch) = &mut self.stuck {
            batch.tell_impatient(error);
            if batch.operations.is_empty() {
                self.stuck = None;
            }
        }
    }
}

fn without_impatient<Q: IntoIterator<Item = Operation> + FromIterator<Operation>>(
    queue: Q,
    error: &Error,
) -> Q {
    let keep = |operation: Operation| {
        if operation.is_impatient() {
            operation.fail(error);
            return None;
        }
        Some(operation)
    };
    queue.into_iter().filter_map(keep).collect()
}

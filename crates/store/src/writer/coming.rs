//! Those who come back to a log with their next records, once they were told of the last ones.

use super::operation::Operation;
use super::pool::Shared;
use super::queue::{MAX_BATCH, Queue};
use crate::backend::LogKey;

/// How many of them are taken out of the queue at once: whoever does that is in the way of those who put them there.
const AT_ONCE: usize = 8;

/// Those who come back while a batch is made, and are to be in it: one sync for all of them costs as much as one for the
/// first.
pub(super) struct Coming<'a> {
    shared: &'a Shared,
    log: &'a LogKey,
    /// Everybody is there when so many operations were accepted; 0 if nobody is expected.
    awaited: usize,
    /// How many bytes have come.
    size: usize,
}

impl<'a> Coming<'a> {
    pub(super) fn new(shared: &'a Shared, log: &'a LogKey, awaited: usize) -> Self {
        Self { shared, log, awaited, size: 0 }
    }

    /// Waits a moment for some of them; none if nobody else comes.
    pub(super) fn next(&mut self) -> Vec<Operation> {
        if self.awaited == 0 || self.size >= MAX_BATCH {
            return Vec::new();
        }
        let enough = self.awaited.min(self.shared.accepted() + AT_ONCE);
        let accepted = self.shared.wait_for(enough);
        if accepted < enough || accepted >= self.awaited {
            self.awaited = 0;
        }
        let mut state = self.shared.state();
        let late = state.queues.get_mut(self.log).map(Queue::take_waiting).unwrap_or_default();
        self.size += late.iter().map(|operation| operation.size).sum::<usize>();
        late
    }
}

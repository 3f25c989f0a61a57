//! A conversation as its log has it, in which each entry has to follow the one before.

use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::backend::Position;
use crate::chain::Record;
use crate::id::SessionId;
use crate::stamp::{Kind, Line};

/// From how many entries on it pays to put them in line on a thread of its own, while others are read.
const MANY: usize = 16 << 10;
/// For how many entries room is made before they are seen.
const MOST: usize = 1 << 20;

/// Entries of which each follows the one before, while they are read.
pub(crate) enum OneLine {
    Here(Entries),
    Apart(SyncSender<Vec<Line>>, JoinHandle<Entries>),
}

/// What has been put in line so far.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    session: SessionId,
    before: Option<Position>,
    count: usize,
    records: Vec<Record>,
    is_broken: bool,
}

impl OneLine {
    /// Begins behind an entry, or with the first. No more than `count` are taken, of as many as are `expected`.
    pub(crate) fn after(
        before: Option<Position>,
        session: &SessionId,
        count: usize,
        expected: usize,
    ) -> Self {
        let expected = expected.min(count);
        let entries =
            Entries { session: session.clone(), before, count, records: Vec::new(), is_broken: false };
        let begin = move |mut entries: Entries| {
            entries.records.reserve(expected.min(MOST));
            entries
        };
        if expected >= MANY {
            let (send, receive) = sync_channel(1);
            let entries = entries.clone();
            let work = move || {
                let mut entries = begin(entries);
                while receive.recv().is_ok_and(|lines| entries.take(lines)) {}
                entries
            };
            if let Ok(thread) = Builder::new().spawn(work) {
                return Self::Apart(send, thread);
            }
        }
        Self::Here(begin(entries))
    }

    /// Adds the entries among some lines. Returns whether any more are wanted, as far as is known by now.
    pub(crate) fn take(&mut self, lines: Vec<Line>) -> bool {
        match self {
            Self::Here(entries) => entries.take(lines),
            Self::Apart(send, _) => send.send(lines).is_ok(),
        }
    }

    /// Returns the entries; `None` if one does not follow the one before.
    pub(crate) fn into_records(self) -> Option<Vec<Record>> {
        let entries = match self {
            Self::Here(entries) => entries,
            Self::Apart(send, thread) => {
                drop(send);
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            }
        };
        (!entries.is_broken).then_some(entries.records)
    }
}

impl Entries {
    fn take(&mut self, lines: Vec<Line>) -> bool {
        for line in lines {
            let (kind, depth, position) = (line.stamp().kind, line.stamp().depth, line.stamp().position);
            if kind != Kind::Entry || self.records.len() == self.count {
                continue;
            }
            if line.stamp().parent != self.before {
                self.is_broken = true;
                return false;
            }
            self.before = Some(position);
            let session = self.session.clone();
            self.records.push(Record { entry: line.into_entry(), session, position, depth });
        }
        self.records.len() < self.count
    }
}

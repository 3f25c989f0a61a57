//! What a recorder's callers and its worker share.

use std::task::Context;
use std::time::{Duration, Instant};

use super::backlog::{Attention, Backlog, Reply};
use super::faults::Faults;
use super::finish::Finish;
use super::recording::Recording;
use super::save::{Later, Save};
use crate::backend::{LogKey, LogName};
use crate::entry::Entry;
use crate::error::Result;
use crate::id::SessionId;
use crate::session::Session;

/// Whether the worker may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The recorder is in use.
    NotYet,
    /// Once the store has got everything.
    HandOver,
    /// Whatever still waits.
    Now,
}

/// What a recorder's callers and its worker share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) messages: Backlog,
    transcript: Backlog,
    later: Option<Later>,
    pub(super) faults: Faults,
    pub(super) ending: Ending,
}

impl State {
    pub(super) fn new(session: &SessionId) -> Self {
        let backlog = |name| Backlog::new(LogKey::new(session.clone(), name));
        Self {
            messages: backlog(LogName::Messages),
            transcript: backlog(LogName::Transcript),
            later: None,
            faults: Faults::default(),
            ending: Ending::NotYet,
        }
    }

    pub(super) fn accept(
        &mut self,
        log: LogName,
        entry: Entry,
        session: &Session,
        recording: &Recording,
    ) -> Result<Attention> {
        let backlog = match log {
            LogName::Messages => &mut self.messages,
            _ => &mut self.transcript,
        };
        backlog.drain(session, &mut self.faults);
        backlog.accept(entry, session, recording)
    }

    /// Saves once no newer list has come for a while.
    pub(super) fn save_later(&mut self, save: Save, quiet: Duration) {
        match &mut self.later {
            Some(later) => later.replace(save, quiet),
            None => self.later = Some(Later::new(save, quiet)),
        }
    }

    /// Saves what waits for a quiet moment now, after everything that came before.
    pub(super) fn release_save(&mut self) {
        if let Some(later) = self.later.take() {
            self.messages.push_save(later.save);
        }
    }

    /// Writes down how the loop ended, after everything that came before.
    pub(super) fn finish(&mut self, finish: Finish) {
        self.release_save();
        self.messages.push_finish(finish);
    }

    /// Asks to be told when everything so far is durable.
    pub(super) fn barriers(&mut self) -> Vec<Reply> {
        self.release_save();
        let backlogs = [&mut self.messages, &mut self.transcript];
        backlogs.into_iter().filter_map(Backlog::push_barrier).collect()
    }

    /// Passes on what the store takes. Returns whether it might take more at once.
    pub(super) fn drain(&mut self, session: &Session) -> bool {
        let messages = self.messages.drain(session, &mut self.faults);
        self.transcript.drain(session, &mut self.faults) || messages
    }

    /// Takes in what the store has finished. Returns whether there was anything.
    pub(super) fn harvest(&mut self, context: &mut Context<'_>) -> bool {
        let messages = self.messages.harvest(context, &mut self.faults);
        self.transcript.harvest(context, &mut self.faults) || messages
    }

    /// Does what the clock says.
    pub(super) fn tick(&mut self, now: Instant) {
        self.messages.retry_barrier(now, &mut self.faults);
        self.transcript.retry_barrier(now, &mut self.faults);
        // One save at a time: until that is through, newer lists go on replacing each other.
        if self.later.as_ref().is_some_and(|later| later.due <= now) && !self.messages.has_save() {
            self.release_save();
        }
    }

    /// Returns when to look again if nothing happens before.
    pub(super) fn alarm(&self, now: Instant) -> Option<Instant> {
        let later = self.later.as_ref().filter(|_| !self.messages.has_save()).map(|later| later.due);
        [self.messages.alarm(now), self.transcript.alarm(now), later].into_iter().flatten().min()
    }

    /// Returns whether the worker has nothing left to do for a recorder that is gone.
    pub(super) fn may_end(&self) -> bool {
        match self.ending {
            Ending::NotYet => false,
            Ending::HandOver => {
                self.later.is_none() && self.messages.is_handed_over() && self.transcript.is_handed_over()
            }
            Ending::Now => true,
        }
    }

    /// Returns how much is not in the logs yet.
    pub(super) fn waiting(&self) -> usize {
        self.messages.waiting() + self.transcript.waiting() + usize::from(self.later.is_some())
    }
}

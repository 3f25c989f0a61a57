//! Whether writes get through, and what happened to those that did not at once.

use jiff::Timestamp;

use crate::backend::{Damage, LogKey};
use crate::error::Error;

/// How the writers are doing.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The logs that cannot be written now; empty when all is well.
    pub failing: Vec<Trouble>,
    /// Records that were given up and whose tickets nobody held, until `flush` or `close` has returned their error.
    pub lost: Vec<(LogKey, Error)>,
    /// Records that wait to be written, in all logs.
    pub queued: usize,
    /// How many bytes they have.
    pub queued_bytes: usize,
}

impl Health {
    /// Returns whether every log can be written and nothing was lost.
    pub fn is_ok(&self) -> bool {
        self.failing.is_empty() && self.lost.is_empty()
    }
}

/// A log that cannot be written. Nothing is lost: its records are kept and tried again.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// Which log.
    pub log: LogKey,
    /// Since when.
    pub since: Timestamp,
    /// What the last try said.
    pub error: Error,
    /// How often it was tried.
    pub attempts: u32,
    /// How many records wait.
    pub queued: usize,
}

/// Something a person may want to know of, as it happens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A log can no longer be written.
    Failing(Trouble),
    /// It can be written again.
    Recovered(LogKey),
    /// Damage was found at the end of a log; a copy is in the quarantine, and the log goes on after it.
    SetAside(LogKey, Damage),
    /// Records of a log were given up.
    Abandoned(LogKey, Error),
}

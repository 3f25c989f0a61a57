//! Who drives a session now. Placeholder for compile order.
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process that holds something: a lock or a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Since when.
    pub since: Timestamp,
    /// What it does, for people.
    pub what: String,
}

impl Holder {
    /// Returns this process as a holder, from now on.
    pub fn this_process(what: &str) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            host,
            pid: std::process::id(),
            since: Timestamp::now(),
            what: what.to_owned(),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {} since {}", self.pid, self.host, self.since)
    }
}

//! What of a session is damaged.

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, FaultKind};

/// What of a session cannot be read, or only with luck. Only who has read all of it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Damage {
    /// In how many places.
    pub places: u64,
    /// Where the first of them is.
    pub first_offset: u64,
    /// What is wrong there, in words.
    pub reason: String,
    /// Nothing at all can be read.
    pub is_total: bool,
}

impl Damage {
    /// Returns what faults amount to, if any of them is damage.
    pub fn of<'a>(faults: impl IntoIterator<Item = &'a Fault>) -> Option<Self> {
        let damaged: Vec<&Fault> = faults.into_iter().filter(|fault| fault.kind.is_damage()).collect();
        let first = damaged.first()?;
        // What is true of the whole file stands among its lines.
        let is_whole = |fault: &&&Fault| matches!(fault.kind, FaultKind::Empty | FaultKind::NothingReadable);
        let total = damaged.iter().find(is_whole);
        Some(Self {
            places: damaged.len() as u64,
            first_offset: first.offset,
            reason: total.unwrap_or(first).kind.to_string(),
            is_total: total.is_some(),
        })
    }
}

//! What only who reads a whole session knows: how many messages it has, and what is damaged.

use std::path::PathBuf;

use crate::damage::Damage;
use crate::transcript::Transcript;

/// How many messages a session's active conversation had when its file was so long, and what of it was damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The session's file.
    pub path: PathBuf,
    /// How long it was.
    pub size: u64,
    /// How many messages it had.
    pub messages: u64,
    /// What of it was damaged.
    pub damage: Option<Damage>,
}

impl Count {
    /// Counts the messages of a transcript, and what is damaged.
    pub fn of(transcript: &Transcript) -> Self {
        Self {
            path: transcript.path().to_owned(),
            size: transcript.length(),
            messages: transcript.active().message_count(),
            damage: Damage::of(&transcript.faults()),
        }
    }
}

//! How many messages a session has.

use std::path::PathBuf;

use crate::transcript::Transcript;

/// How many messages a session's active conversation had when its file was so long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The session's file.
    pub path: PathBuf,
    /// How long it was.
    pub size: u64,
    /// How many messages it had.
    pub messages: u64,
}

impl Count {
    /// Counts the messages of a transcript.
    pub fn of(transcript: &Transcript) -> Self {
        Self {
            path: transcript.path().to_owned(),
            size: transcript.length(),
            messages: transcript.active().message_count(),
        }
    }
}

//! What can go wrong, by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why transcripts could not be read, or not be changed as asked.
///
/// A damaged transcript is no error: what is readable is read, and the rest is a [`Fault`](crate::Fault).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such session.
    #[error("no session {0}")]
    SessionNotFound(String),

    /// The transcript has no such entry.
    #[error("{} has no entry {entry}", path.display())]
    EntryNotFound {
        /// The transcript.
        path: PathBuf,
        /// The entry that is not there.
        entry: String,
    },

    /// There is nothing in the transcript that could be resumed.
    #[error("{} holds no conversation", .0.display())]
    NothingToResume(PathBuf),

    /// A session of this id is there already.
    #[error("session {0} exists already")]
    SessionExists(String),

    /// A process of Claude Code is at work on the session.
    #[error("session {session} is in use by process {pid}")]
    InUse {
        /// The session.
        session: String,
        /// The process.
        pid: u32,
    },

    /// The session has more here than what was to be put in its place.
    #[error("session {0} has more here than was handed over")]
    Ahead(String),

    /// The session went on both here and where it was to come from.
    #[error("session {session} went on both here and there: {} is another file", path.display())]
    Apart {
        /// The session.
        session: String,
        /// The first of its files that differs.
        path: PathBuf,
    },

    /// The text is no name that Claude Code would take.
    #[error("{text:?} is no {what}: {rule}")]
    BadName {
        /// What it should have been.
        what: &'static str,
        /// What was given.
        text: String,
        /// The rule it breaks.
        rule: &'static str,
    },

    /// The file is another one than it was, or became shorter, while it was read.
    #[error("{} was replaced while it was read", .0.display())]
    Replaced(PathBuf),

    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
}

impl Error {
    /// Returns a function that gives an I/O error its place: `map_err(Error::io("read", path))`.
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, path: path.as_ref().to_owned(), source: Arc::new(source) }
    }
}

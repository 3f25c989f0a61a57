//! What can go wrong, by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{LogKey, Position};
use crate::id::{BlobId, EntryId, SessionId};
use crate::lease::Holder;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the store could not do what it was asked.
///
/// It is `Clone`, because one failed sync is the answer to many tickets.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such session.
    #[error("no session {0}")]
    SessionNotFound(SessionId),

    /// A session of this id is there already, possibly in the trash.
    #[error("session {0} exists already")]
    SessionExists(SessionId),

    /// The session is in the trash; restore it first.
    #[error("session {0} is in the trash")]
    Trashed(SessionId),

    /// The session was purged while it was in use.
    #[error("session {0} was purged")]
    Gone(SessionId),

    /// The session's key was erased, so that nobody can read it any more; `purge` and `gc` clear away what is left.
    #[error("session {0} was erased")]
    Erased(SessionId),

    /// The session holds no such entry.
    #[error("session {session} has no entry {entry}")]
    EntryNotFound {
        /// The session that was searched, with everything it inherits.
        session: SessionId,
        /// The entry that is not there.
        entry: EntryId,
    },

    /// No session fits "the latest one here".
    #[error("no session to continue in {}", .0.display())]
    NothingToContinue(PathBuf),

    /// Another process drives this session.
    #[error("session {session} is driven by {holder}")]
    Held {
        /// The session.
        session: SessionId,
        /// Who drives it.
        holder: Box<Holder>,
    },

    /// Somebody took this session over; its former driver may not write any more.
    #[error("session {session} was taken over by {holder}")]
    Fenced {
        /// The session.
        session: SessionId,
        /// Who drives it now.
        holder: Box<Holder>,
    },

    /// Another process holds the lock of this session's files.
    #[error("{what} is locked by {holder}")]
    Busy {
        /// What is locked: a session, or the whole store.
        what: String,
        /// What the lock file says of its holder.
        holder: String,
        /// How long this call waited.
        waited: Duration,
    },

    /// The queue has no room; wait, or use the waiting call.
    #[error("the write queue of {0} is full")]
    Full(LogKey),

    /// The store was closed.
    #[error("the store is closed")]
    Closed,

    /// Closing gave up on these records; they may or may not be on disk.
    #[error("{records} records of {log} were not durable when the store closed")]
    Abandoned {
        /// The log they belong to.
        log: LogKey,
        /// How many.
        records: usize,
    },

    /// An entry exceeds what the store takes.
    #[error("entry of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// The entry's size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },

    /// The bytes are not one JSON object on one line.
    #[error("not an entry: {0}")]
    BadEntry(String),

    /// The text is not an id, a URL, or whatever it was given as.
    #[error("{text:?} is no {what}: {rule}")]
    BadName {
        /// What it should have been.
        what: &'static str,
        /// What was given.
        text: String,
        /// The rule it breaks.
        rule: &'static str,
    },

    /// A file to import is not what it should be.
    #[error("cannot import {}: {reason}", path.display())]
    BadImport {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// Two stores hold sessions of this id that are not the same any more, or never were.
    #[error("session {session} went on differently in the other store, from record {position} on")]
    Diverged {
        /// The session.
        session: SessionId,
        /// The first record that is known to differ.
        position: Position,
    },

    /// The store was written by a newer version of this program.
    #[error("the store has format {found}, this program knows up to {known}")]
    NewerFormat {
        /// What the store says.
        found: String,
        /// The newest format this program reads.
        known: u32,
    },

    /// Stored bytes are not what was written.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// Which document, blob or record.
        what: String,
        /// What is wrong.
        reason: String,
    },

    /// What is stored is encrypted, or is not, and the key does not fit.
    #[error("{0}")]
    Key(&'static str),

    /// Content does not match the id it was stored under.
    #[error("content is not that of blob {0}")]
    WrongBlob(BlobId),

    /// The document changed in between, more often than it was worth trying again.
    #[error("{0} is changed by others faster than it can be updated")]
    Contended(String),

    /// The record at this position cannot be a parent.
    #[error("{log} has no record {position}")]
    UnknownParent {
        /// The log.
        log: LogKey,
        /// The position that was named.
        position: Position,
    },

    /// A chain of forks leads back to itself.
    #[error("the forks of session {0} form a circle")]
    Cycle(SessionId),

    /// The disk, or the quota, is full.
    #[error("no space left to {action} {}", path.display())]
    NoSpace {
        /// What was attempted.
        action: &'static str,
        /// Where.
        path: PathBuf,
    },

    /// The file system is read-only.
    #[error("cannot {action} {}: the file system is read-only", path.display())]
    ReadOnly {
        /// What was attempted.
        action: &'static str,
        /// Where.
        path: PathBuf,
    },

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

    /// A backend that is not made of files failed.
    #[error("{backend} cannot {action}")]
    Backend {
        /// Which backend.
        backend: &'static str,
        /// What was attempted.
        action: &'static str,
        /// Why.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Returns a function that gives an I/O error its place: `map_err(Error::io("append to", path))`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |source| {
            let path = path.as_ref().to_owned();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    Error::NoSpace { action, path }
                }
                io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { action, path },
                _ => Error::Io { action, path, source: Arc::new(source) },
            }
        }
    }

    /// Returns whether the same call may succeed later without anybody changing it:
    /// the writer keeps such a batch and tries again.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Error::Busy { .. }
                | Error::NoSpace { .. }
                | Error::ReadOnly { .. }
                | Error::Io { .. }
                | Error::Backend { .. }
                | Error::Contended(_)
        )
    }
}

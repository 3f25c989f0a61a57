//! What can go wrong between files and their checkpoints.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rethread_store::{EntryId, SessionId};

use crate::path::TreePath;

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Nothing was changed in the tree, unless the variant says otherwise.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] rethread_store::Error),

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

    /// A path that no checkpoint may hold.
    #[error("{path:?} {rule}")]
    BadPath {
        /// What was given.
        path: PathBuf,
        /// The rule it breaks.
        rule: &'static str,
    },

    /// There is neither a checkpoint nor a message of this name.
    #[error("session {session} has no checkpoint {point}")]
    NoSuchPoint {
        /// The session.
        session: SessionId,
        /// What was named.
        point: EntryId,
    },

    /// The session has no such receipt, or the rewind that it names was never finished.
    #[error("session {session} has no receipt {receipt}")]
    NoSuchReceipt {
        /// The session.
        session: SessionId,
        /// What was named.
        receipt: EntryId,
    },

    /// A checkpoint with this id is there already.
    #[error("checkpoint {0} is there already")]
    Taken(EntryId),

    /// Checkpoints are switched off, or the store keeps nothing.
    #[error("checkpoints are switched off")]
    Off,

    /// The plan is not good enough to be applied: it has conflicts, or paths whose state nobody knows.
    #[error("{} in the way of this rewind, {first} first", in_the_way(*count))]
    InTheWay {
        /// How many.
        count: usize,
        /// One of them.
        first: TreePath,
    },

    /// The tree or the history changed since the plan was made.
    #[error("something changed since this was planned{}", at.as_ref().map(|path| format!(": {path}")).unwrap_or_default())]
    Changed {
        /// Where, if that is known.
        at: Option<TreePath>,
    },

    /// A path was named to be forced or left out, and the plan has no such path.
    #[error("the plan has no path {0}")]
    NotInPlan(TreePath),

    /// Content that the rewind needs is not in the store, or is damaged there.
    #[error("the content of {path} cannot be had: {reason}")]
    NoContent {
        /// Whose content.
        path: TreePath,
        /// Why.
        reason: String,
    },

    /// Another process rewinds beneath this root, or captures for very long.
    #[error("{} is in use by another rewind or capture", root.display())]
    Busy {
        /// The root.
        root: PathBuf,
    },

    /// A rewind beneath this root was interrupted, and this store does not have the session that it is of.
    #[error(
        "a rewind beneath {} was interrupted: receipt {receipt} of session {session} in {store}",
        root.display()
    )]
    Unfinished {
        /// The root, which holds the mark `.rethread-rewind`.
        root: PathBuf,
        /// The rewind's receipt.
        receipt: EntryId,
        /// Whose checkpoints have to be opened there to finish it.
        session: SessionId,
        /// The store that has that session.
        store: String,
    },

    /// What was restored does not read back as it should. Every path is as the receipt's record says, but this one.
    #[error("{path} was restored and reads back differently")]
    Unverified {
        /// Which path.
        path: TreePath,
    },
}

fn in_the_way(count: usize) -> String {
    if count == 1 { "1 path is".into() } else { format!("{count} paths are") }
}

impl Error {
    /// Returns a function that gives an I/O error its place: `map_err(Error::io("open", path))`.
    pub fn io<E: Into<io::Error>>(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(E) -> Error {
        move |source| Error::Io { action, path: path.as_ref().to_owned(), source: Arc::new(source.into()) }
    }
}

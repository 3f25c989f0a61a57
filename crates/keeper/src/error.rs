//! Why a keeper could not start or go on, by what the caller can do about it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a keeper could not start, or not do what it was asked over its socket.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Somebody else listens there already.
    #[error("{0} is taken")]
    AddressTaken(SocketAddr),

    /// Another keeper runs on this home.
    #[error("a keeper runs already, as process {pid}")]
    RunsAlready {
        /// The process.
        pid: u32,
    },

    /// The address can be reached from other machines, and nothing protects the way.
    #[error("{0} is no loopback address, and this keeper has no TLS")]
    NotLoopback(SocketAddr),

    /// The directory of an allowed root is not there.
    #[error("the allowed root {} is no directory", .0.display())]
    NoSuchRoot(PathBuf),

    /// No keeper runs on this home.
    #[error("no keeper runs")]
    NotRunning,

    /// The keeper said no.
    #[error("{}", .0.detail.as_deref().unwrap_or(&.0.title))]
    Refused(Arc<crate::Problem>),

    /// The keeper said something that is no answer.
    #[error("the keeper's answer makes no sense")]
    BadAnswer,

    /// The store refused.
    #[error(transparent)]
    Store(#[from] rethread_store::Error),

    /// Claude Code's folder could not be read.
    #[error(transparent)]
    Transcripts(#[from] rethread_transcripts::Error),

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

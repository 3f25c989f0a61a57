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

    /// Another one runs on this home.
    #[error("a {what} runs already, as process {pid}")]
    RunsAlready {
        /// What runs.
        what: &'static str,
        /// The process.
        pid: u32,
    },

    /// The address can be reached from other machines, and nothing protects the way.
    #[error("{0} is no loopback address, and there is no TLS")]
    NotLoopback(SocketAddr),

    /// The address can be reached from other machines, and nobody said by which name.
    #[error("{0} is no loopback address, and no name is allowed to call it by")]
    NoHostName(SocketAddr),

    /// A certificate or its key is of no use.
    #[error("{} is of no use for TLS: {why}", path.display())]
    BadTls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },

    /// The directory of an allowed root is not there.
    #[error("the allowed root {} is no directory", .0.display())]
    NoSuchRoot(PathBuf),

    /// The home's path leaves no room for a socket's name.
    #[error("{} is too long for a socket: a system takes about 100 bytes", .0.display())]
    PathTooLong(PathBuf),

    /// No keeper runs on this home.
    #[error("no keeper runs")]
    NotRunning,

    /// The keeper said no.
    #[error("{}", .0.detail.as_deref().unwrap_or(&.0.title))]
    Refused(Arc<crate::Problem>),

    /// The keeper said something that is no answer.
    #[error("the keeper's answer makes no sense")]
    BadAnswer,

    /// That is no address of a keeper which a token may be sent to.
    #[error("{url} is no address of a keeper: {why}")]
    BadKeeperUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },

    /// There is no token to come in with.
    #[error("cannot read the keeper's token {}", path.display())]
    NoToken {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },

    /// Nobody answers at a keeper's address.
    #[error("no keeper answers at {url}")]
    Unreachable {
        /// The address.
        url: String,
    },

    /// Somebody answers there who is no keeper.
    #[error("what answers at {url} is no keeper")]
    NotAKeeper {
        /// The address.
        url: String,
    },

    /// The keeper does not know the token.
    #[error("the keeper at {url} does not know the token in {}", path.display())]
    WrongToken {
        /// The keeper's address.
        url: String,
        /// Where the token is from.
        path: PathBuf,
    },

    /// The keeper speaks another version of the API.
    #[error("the keeper at {url} speaks {theirs} of the API, and this program speaks version {}", crate::API)]
    OtherVersion {
        /// The keeper's address.
        url: String,
        /// What it speaks: `version 2`, or `another version` if it does not say.
        theirs: String,
    },

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

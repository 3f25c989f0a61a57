//! Why a session could not go from one home to the other.

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a session could not go from one home to the other.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] rethread_store::Error),

    /// Claude Code's folder could not be read, or not be written.
    #[error(transparent)]
    Transcripts(#[from] rethread_transcripts::Error),

    /// Both homes went on by themselves: neither conversation is the beginning of the other.
    #[error(
        "session {session} went on by itself here and in the store: they have {common} entries in common"
    )]
    Apart {
        /// The session.
        session: String,
        /// How many entries both begin with.
        common: usize,
    },
}

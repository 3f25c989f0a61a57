//! What a place says of its own accord.

use crate::id::SessionId;

/// What may have changed. Only a hint: it may come late, twice, for nothing, or never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The messages of this session.
    Session(SessionId),
    /// Anything: hints may have been missed until now.
    Everything,
}

/// Hints as they come; there are no more once the backend is gone.
pub type Hints = async_channel::Receiver<Hint>;

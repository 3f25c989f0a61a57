//! What went wrong while measuring: whatever it is, a person reads it and nobody catches it.

/// The result of anything that can go wrong here.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

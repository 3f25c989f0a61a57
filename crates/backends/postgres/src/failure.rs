//! What PostgreSQL says, as what the caller can do about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rethread_store::Error;
use tokio_postgres::error::{Severity, SqlState};

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server refused: nothing was changed.
    Refused(Error),
    /// The connection ended, and with it what the server may have said.
    Lost(Error),
    /// The server said nothing for too long.
    Late(Error),
}

impl Failure {
    pub(crate) fn new(action: &'static str, place: &str, error: tokio_postgres::Error) -> Self {
        let refused = error.as_db_error().is_some_and(|said| said.parsed_severity() == Some(Severity::Error));
        let error = at(action, place, error);
        if refused { Failure::Refused(error) } else { Failure::Lost(error) }
    }

    pub(crate) fn late(action: &'static str, place: &str, patience: Duration) -> Self {
        Failure::Late(backend(action, Silence { place: place.to_owned(), patience }))
    }

    /// Returns whether the server may still do what it was asked.
    pub(crate) fn is_uncertain(&self) -> bool {
        !matches!(self, Failure::Refused(_))
    }
}

/// What failed before the server was asked changed nothing.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let (Failure::Refused(error) | Failure::Lost(error) | Failure::Late(error)) = failure;
        error
    }
}

/// Gives an error of the server, or of the way to it, its place.
pub(crate) fn at(action: &'static str, place: &str, error: tokio_postgres::Error) -> Error {
    let code = error.code();
    if code == Some(&SqlState::DISK_FULL) {
        return Error::NoSpace { action, path: place.into() };
    }
    let contended = [
        &SqlState::T_R_SERIALIZATION_FAILURE,
        &SqlState::T_R_DEADLOCK_DETECTED,
        &SqlState::LOCK_NOT_AVAILABLE,
    ];
    if code.is_some_and(|code| contended.contains(&code)) {
        return Error::Contended(place.to_owned());
    }
    if code.is_some_and(|code| [&SqlState::DATA_CORRUPTED, &SqlState::INDEX_CORRUPTED].contains(&code)) {
        return Error::Damaged { what: place.to_owned(), reason: error.to_string() };
    }
    backend(action, Trouble { place: place.to_owned(), error })
}

pub(crate) fn backend(action: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Backend { backend: "postgres", action, source: Arc::new(source) }
}

/// Where it was, with what was said there as its cause.
#[derive(Debug)]
struct Trouble {
    place: String,
    error: tokio_postgres::Error,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl std::error::Error for Trouble {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.error.as_db_error() {
            Some(said) => Some(said),
            None => Some(&self.error),
        }
    }
}

/// No answer at all.
#[derive(Debug, thiserror::Error)]
#[error("{place} gave no answer within {patience:?}")]
struct Silence {
    place: String,
    patience: Duration,
}

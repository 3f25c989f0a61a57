//! What went wrong behind the loop's back.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::store::Store;

/// What went wrong: losses, which stay, and what is tried again.
#[derive(Debug, Default)]
pub(super) struct Faults {
    first: Option<Error>,
    lost: u64,
    passing: Option<Error>,
}

impl Faults {
    /// Counts a loss. The first one is kept: later ones are usually its consequence.
    pub(super) fn lose(&mut self, error: &Error) {
        self.lost += 1;
        self.first.get_or_insert_with(|| error.clone());
    }

    /// Notes what must be tried again.
    pub(super) fn suffer(&mut self, error: Error) {
        self.passing = Some(error);
    }

    /// Forgets what had to be tried again: it got through, or nobody wants it any more.
    pub(super) fn recover(&mut self) {
        self.passing = None;
    }

    pub(super) fn first(&self) -> Option<Error> {
        self.first.clone()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn known(&self) -> Option<Error> {
        self.first().or_else(|| self.passing.clone())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{what} after {waited:?}")]
struct Late {
    what: String,
    waited: Duration,
}

/// Says that the store was neither done nor failed in time.
pub(super) fn late(store: &Store, what: String, waited: Duration) -> Error {
    Error::Backend {
        backend: store.backend().capabilities().scheme,
        action: "do everything in time",
        source: Arc::new(Late { what, waited }),
    }
}

//! Writes without an answer: nobody knows what became of them until they are sent again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::bucket::Expected;

/// Writes without an answer.
#[derive(Debug, Default)]
pub(crate) struct Limbo(Mutex<Vec<(String, Pending)>>);

/// A write without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) expected: Expected,
    pub(crate) bytes: Bytes,
}

impl Limbo {
    pub(crate) fn add(&self, key: &str, pending: Pending) {
        self.all().push((key.to_owned(), pending));
    }

    pub(crate) fn first(&self, key: &str) -> Option<Pending> {
        self.all().iter().find(|(name, _)| name == key).map(|(_, pending)| pending.clone())
    }

    pub(crate) fn remove(&self, key: &str, pending: &Pending) {
        self.all().retain(|(name, other)| name != key || other != pending);
    }

    fn all(&self) -> MutexGuard<'_, Vec<(String, Pending)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

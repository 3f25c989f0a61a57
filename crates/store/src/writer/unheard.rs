//! Failures that nobody was told of: kept for whoever asks next.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::LogKey;
use crate::defect::Defect;
use crate::error::{Error, Result};

/// How many are kept: the first ones tell the story.
const MOST: usize = 64;

/// Failures whose tickets were dropped unread.
#[derive(Debug, Default)]
pub(crate) struct Unheard(Mutex<Vec<(LogKey, Error)>>);

impl Unheard {
    /// Keeps a failure.
    pub(crate) fn keep(&self, log: &LogKey, error: Error) {
        let mut list = self.list();
        if list.len() < MOST && !Defect::ForgetTheUnheard.is_on() {
            list.push((log.clone(), error));
        }
    }

    /// Returns the first failure and forgets them all: it has been said now.
    pub(crate) fn take(&self) -> Result<()> {
        std::mem::take(&mut *self.list()).into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Returns what is kept.
    pub(crate) fn all(&self) -> Vec<(LogKey, Error)> {
        self.list().clone()
    }

    fn list(&self) -> MutexGuard<'_, Vec<(LogKey, Error)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What a place calls its logs, by the records that they begin with.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::LogKey;
use crate::id::EntryId;

/// How many logs are remembered. Whoever appends to more of them in turn looks at how they begin again.
const KEPT: usize = 1024;

/// What a place calls its logs, by the records that they begin with: for backends that never call two logs the same, so that
/// [`append_to`](super::Backend::append_to) need not look at how a log begins each time.
#[derive(Debug)]
pub struct Begun<T>(Mutex<HashMap<LogKey, (EntryId, T)>>);

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Copy> Begun<T> {
    /// Returns what the log is called that begins with this record, if that is known.
    pub fn get(&self, log: &LogKey, first: &EntryId) -> Option<T> {
        self.all().get(log).filter(|(known, _)| known == first).map(|(_, called)| *called)
    }

    /// Remembers it.
    pub fn keep(&self, log: &LogKey, first: &EntryId, called: T) {
        let mut all = self.all();
        // Which of them are wanted again is not known; all can be looked at anew.
        if all.len() >= KEPT && !all.contains_key(log) {
            all.clear();
        }
        all.insert(log.clone(), (first.clone(), called));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<LogKey, (EntryId, T)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

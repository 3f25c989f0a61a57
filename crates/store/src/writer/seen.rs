//! Which entries a log holds, for those who must not add one twice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::id::EntryId;

/// Enough of a hash that no two ids share it, and a third of what the ids themselves would take.
type Hash = [u8; 16];

/// The ids of a log's entries.
///
/// Copies share what is certain. What is merely composed is each copy's own: a batch that somebody else was faster than
/// leaves nothing behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    certain: Arc<Mutex<HashSet<Hash>>>,
    composed: HashSet<Hash>,
}

impl Seen {
    pub(crate) fn holds(&self, id: &EntryId) -> bool {
        let hash = hash(id);
        self.composed.contains(&hash) || self.certain().contains(&hash)
    }

    /// Takes note of an entry that may come to nothing yet.
    pub(crate) fn compose(&mut self, id: &EntryId) {
        self.composed.insert(hash(id));
    }

    /// Notes that everything composed is in the log.
    pub(crate) fn confirm(&mut self) {
        if !self.composed.is_empty() {
            let composed = std::mem::take(&mut self.composed);
            self.certain().extend(composed);
        }
    }

    fn certain(&self) -> MutexGuard<'_, HashSet<Hash>> {
        self.certain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(id: &EntryId) -> Hash {
    let whole: [u8; 32] = Sha256::digest(id.as_str()).into();
    std::array::from_fn(|at| whole[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_composed_in_vain_is_not_taken_for_there() {
        let id: EntryId = "u-1".parse().unwrap();
        let before = Seen::default();
        let mut vain = before.clone();
        vain.compose(&id);
        assert!(vain.holds(&id) && !before.holds(&id));
        vain.confirm();
        assert!(before.holds(&id), "what is certain is certain for all copies");
    }
}

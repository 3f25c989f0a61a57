//! Requests of other keepers that are over, and that nobody speaks of any more.

use std::collections::HashMap;

use crate::attention::Attention;

/// How many are remembered: those that were over longest ago are forgotten first.
const MOST: usize = 1024;

/// Requests whose end was told. Whoever drives their session next may speak of them again, and the one after it, too: each
/// of them found them unanswered. Nobody is told a second time.
#[derive(Debug, Default)]
pub(super) struct Over(HashMap<String, Attention>);

impl Over {
    /// Remembers a request.
    pub(super) fn keep(&mut self, attention: Attention) {
        if self.0.len() >= MOST {
            let oldest = self.0.values().min_by_key(|it| it.decided_at).map(|it| it.shown.id.clone());
            oldest.and_then(|id| self.0.remove(&id));
        }
        self.0.insert(attention.shown.id.clone(), attention);
    }

    /// Returns a request that is spoken of again.
    pub(super) fn take(&mut self, id: &str) -> Option<Attention> {
        self.0.remove(id)
    }

    /// Returns whether the end of a request was told.
    pub(super) fn holds(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }
}

//! Ids that came lately, as many as are of use.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// How many are remembered. What comes a second time does so within a few of them.
pub(crate) const MOST: usize = 4_096;

/// Ids that came lately.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    ids: HashSet<Arc<str>>,
    /// The order they came in.
    order: VecDeque<Arc<str>>,
}

impl Recent {
    pub(crate) fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Takes note of an id; returns whether it is new. The oldest one is forgotten for it.
    pub(crate) fn add(&mut self, id: &str) -> bool {
        let id: Arc<str> = id.into();
        if !self.ids.insert(Arc::clone(&id)) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

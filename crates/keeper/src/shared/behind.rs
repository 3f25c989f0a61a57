//! Sessions whose last words did not get through to the store.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Sessions of which the store does not have all that was said here.
#[derive(Debug, Default)]
pub(crate) struct Behind(Mutex<BTreeSet<String>>);

impl Behind {
    pub(crate) fn set(&self, session: &str, is_behind: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_behind {
            all.insert(session.to_owned());
        } else {
            all.remove(session);
        }
    }

    pub(crate) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

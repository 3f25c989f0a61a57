//! Lines that this keeper writes into a transcript from the store: everybody has been told them already.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Up to where the transcripts of sessions hold what was told before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silences(Arc<Mutex<HashMap<String, u64>>>);

/// Nothing of a transcript is told as long as this is held.
pub(crate) struct Silence {
    all: Silences,
    session: String,
    end: Option<u64>,
}

impl Silences {
    pub(crate) fn begin(&self, session: &str) -> Silence {
        self.all().insert(session.to_owned(), u64::MAX);
        Silence { all: self.clone(), session: session.to_owned(), end: None }
    }

    /// Returns from where on lines of a session are news.
    pub(crate) fn of(&self, session: &str) -> u64 {
        self.all().get(session).copied().unwrap_or(0)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Silence {
    /// Lines behind the present end of the transcript are news again.
    pub(crate) fn until_end_of(mut self, transcript: &Path) {
        self.end = std::fs::metadata(transcript).ok().map(|file| file.len());
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        match self.end {
            Some(end) => self.all.all().insert(self.session.clone(), end),
            None => self.all.all().remove(&self.session),
        };
    }
}

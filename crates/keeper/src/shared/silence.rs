//! Lines that this keeper writes into a transcript from the store: everybody has been told them already.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Up to where the transcripts of sessions hold what was told before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silences(Arc<All>);

#[derive(Debug, Default)]
struct All {
    ends: Mutex<HashMap<String, u64>>,
    /// How often any of them changed.
    changes: AtomicU64,
}

/// Nothing of a transcript is told as long as this is held.
pub(crate) struct Silence {
    all: Silences,
    session: String,
    end: Option<u64>,
}

impl Silences {
    pub(crate) fn begin(&self, session: &str) -> Silence {
        self.set(session, Some(u64::MAX));
        Silence { all: self.clone(), session: session.to_owned(), end: None }
    }

    /// Returns from where on lines of a session are news.
    pub(crate) fn of(&self, session: &str) -> u64 {
        self.all().get(session).copied().unwrap_or(0)
    }

    /// Returns how often any silence began or ended: what [`of`](Self::of) said before that may not hold any more.
    pub(crate) fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    fn set(&self, session: &str, end: Option<u64>) {
        let mut all = self.all();
        match end {
            Some(end) => all.insert(session.to_owned(), end),
            None => all.remove(session),
        };
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.ends.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.all.set(&self.session, self.end);
    }
}

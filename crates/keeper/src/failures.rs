//! How often somebody failed to come in lately: guessing gets slow, and whoever knows the token never notices.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many failures within this time are answered at once; others are told to wait.
const ALLOWED: usize = 20;
const WITHIN: Duration = Duration::from_secs(60);

/// Failures of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<VecDeque<Instant>>);

/// How often each kind of failure was, lately.
#[derive(Debug, Default)]
pub(crate) struct FailuresOfAKind(Mutex<HashMap<String, Failures>>);

impl FailuresOfAKind {
    /// Takes note of a failure; returns how long to wait if there were too many of its kind. There are only as many kinds
    /// as whoever asks this knows.
    pub(crate) fn another(&self, kind: &str) -> Option<Duration> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.entry(kind.to_owned()).or_default().another()
    }
}

impl Failures {
    /// Takes note of a failure; returns how long to wait if there were too many.
    pub(crate) fn another(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while times.front().is_some_and(|first| now.duration_since(*first) >= WITHIN) {
            times.pop_front();
        }
        if times.len() < ALLOWED {
            times.push_back(now);
            return None;
        }
        times.front().map(|first| WITHIN.saturating_sub(now.duration_since(*first)))
    }
}

//! What is remembered of logs: each tail as it was last seen, and parts, which never change.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rethread_store::SessionId;
use rethread_store::backend::{LogKey, Unanswered};

use crate::layout;
use crate::piece::Piece;
use crate::tail::Tail;

/// How long a reader that is in the middle of a log goes on with what it has seen.
const LATELY: Duration = Duration::from_secs(1);
/// How many tails are remembered.
const TAILS: usize = 512;
/// How many bytes of them.
const TAILS_BYTES: usize = 256 << 20;
/// How many bytes of parts are remembered.
const BYTES: usize = 48 << 20;

/// What is remembered of logs.
#[derive(Debug)]
pub(crate) struct Known {
    /// What this writer is called: no other ever was.
    writer: String,
    turns: Mutex<HashMap<LogKey, Turn>>,
    tails: Mutex<HashMap<LogKey, Seen>>,
    parts: Mutex<VecDeque<(String, Arc<Piece>)>>,
    /// What was appended, perhaps.
    pub(crate) unanswered: Unanswered<()>,
}

/// Who has it may append.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// A tail, as it was when somebody last looked.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) tail: Arc<Tail>,
    pub(crate) etag: String,
    at: Instant,
}

impl Seen {
    pub(crate) fn now(tail: Tail, etag: String) -> Self {
        Self { tail: Arc::new(tail), etag, at: Instant::now() }
    }

    pub(crate) fn again(self) -> Self {
        Self { at: Instant::now(), ..self }
    }

    pub(crate) fn is_recent(&self) -> bool {
        self.at.elapsed() < LATELY
    }
}

impl Default for Known {
    fn default() -> Self {
        let writer = layout::fresh();
        Self {
            writer,
            turns: Mutex::default(),
            tails: Mutex::default(),
            parts: Mutex::default(),
            unanswered: Unanswered::default(),
        }
    }
}

impl Known {
    pub(crate) fn writer(&self) -> &str {
        &self.writer
    }

    /// Returns what those who append to a log take turns by.
    pub(crate) fn turn(&self, log: &LogKey) -> Turn {
        let mut turns = lock(&self.turns);
        if turns.len() >= TAILS && !turns.contains_key(log) {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        turns.entry(log.clone()).or_default().clone()
    }

    pub(crate) fn tail(&self, log: &LogKey) -> Option<Seen> {
        lock(&self.tails).get(log).cloned()
    }

    pub(crate) fn keep_tail(&self, log: &LogKey, seen: Seen) {
        let mut tails = lock(&self.tails);
        if tails.len() >= TAILS && !tails.contains_key(log) {
            let oldest = tails.iter().min_by_key(|(_, seen)| seen.at).map(|(log, _)| log.clone());
            oldest.map(|log| tails.remove(&log));
        }
        tails.insert(log.clone(), seen);
        let mut size: usize = tails.values().map(|seen| seen.tail.piece().bytes().len()).sum();
        while size > TAILS_BYTES && tails.len() > 1 {
            let others = tails.iter().filter(|(other, _)| *other != log);
            let oldest = others.min_by_key(|(_, seen)| seen.at).map(|(other, _)| other.clone());
            size -= oldest
                .and_then(|oldest| tails.remove(&oldest))
                .map_or(0, |seen| seen.tail.piece().bytes().len());
        }
    }

    pub(crate) fn forget(&self, log: &LogKey) {
        lock(&self.tails).remove(log);
    }

    pub(crate) fn forget_session(&self, session: &SessionId) {
        lock(&self.tails).retain(|log, _| log.session != *session);
    }

    pub(crate) fn part(&self, key: &str) -> Option<Arc<Piece>> {
        let mut parts = lock(&self.parts);
        let found = parts.iter().position(|(name, _)| name == key)?;
        let entry = parts.remove(found)?;
        let piece = entry.1.clone();
        parts.push_back(entry);
        Some(piece)
    }

    pub(crate) fn keep_part(&self, key: &str, piece: Arc<Piece>) {
        let mut parts = lock(&self.parts);
        parts.retain(|(name, _)| name != key);
        parts.push_back((key.to_owned(), piece));
        let size = |parts: &VecDeque<(String, Arc<Piece>)>| {
            parts.iter().map(|(_, piece)| piece.bytes().len()).sum::<usize>()
        };
        while parts.len() > 1 && size(&parts) > BYTES {
            parts.pop_front();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

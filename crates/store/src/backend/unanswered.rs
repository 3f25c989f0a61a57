//! Appends that ended without an answer, for backends that know their own again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Backend, From, LogKey, Position};
use crate::error::Result;
use crate::stamp::Line;

/// How many are remembered for one log. Whoever gave up never asks again, and there is one writer to a log, seldom two.
const KEPT: usize = 8;

const READ_AHEAD: usize = 1 << 20;

/// Appends that ended without an answer, and by what each would be known.
///
/// Only what failed is remembered: of two appends that are the same to the byte, both through one handle, one wins.
#[derive(Debug)]
pub struct Unanswered<T>(Mutex<Vec<Tried<T>>>);

#[derive(Debug)]
struct Tried<T> {
    log: LogKey,
    at: Position,
    lines: Vec<Line>,
    known_by: T,
}

impl<T> Default for Unanswered<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Unanswered<T> {
    /// Remembers an append that may be there or not.
    pub fn add(&self, log: &LogKey, at: Position, lines: &[Line], known_by: T) {
        let mut all = self.all();
        if all.iter().filter(|tried| tried.log == *log).count() >= KEPT
            && let Some(oldest) = all.iter().position(|tried| tried.log == *log)
        {
            all.remove(oldest);
        }
        all.push(Tried { log: log.clone(), at, lines: lines.to_vec(), known_by });
    }

    /// Returns by what this very append would be known, if it was tried before; whoever tries it again has it now.
    pub fn take(&self, log: &LogKey, at: Position, lines: &[Line]) -> Option<T> {
        let mut all = self.all();
        let same = |tried: &Tried<T>| tried.at == at && tried.log == *log && tried.lines == lines;
        let found = all.iter().position(same)?;
        Some(all.remove(found).known_by)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Tried<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a log holds these very lines from a position on, whoever added them.
pub async fn holds(backend: &dyn Backend, log: &LogKey, at: Position, lines: &[Line]) -> Result<bool> {
    let (mut from, mut rest) = (at, lines);
    while !rest.is_empty() {
        let there = backend.read(log, From::Position(from), READ_AHEAD).await?;
        let count = there.lines.len().min(rest.len());
        if count == 0 || there.lines[..count] != rest[..count] {
            return Ok(false);
        }
        (from, rest) = (there.next, &rest[count..]);
    }
    Ok(true)
}

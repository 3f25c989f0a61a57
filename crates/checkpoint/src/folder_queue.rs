//! The folders that a walk has still to look at, shared by its threads.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::ignored::Ignored;

/// A folder to be looked at.
pub(crate) struct Task {
    pub(crate) path: Vec<u8>,
    pub(crate) parent: Arc<OwnedFd>,
    pub(crate) ignored: Option<Arc<Ignored>>,
}

/// Folders that wait, and how many are being looked at.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<(Vec<Task>, usize)>,
    changed: Condvar,
}

impl Queue {
    pub(crate) fn push(&self, tasks: Vec<Task>) {
        if !tasks.is_empty() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.0.extend(tasks);
            self.changed.notify_all();
        }
    }

    /// Returns the next folder; nothing once all of them were looked at.
    pub(crate) fn next(&self) -> Option<Task> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(task) = waiting.0.pop() {
                waiting.1 += 1;
                return Some(task);
            }
            if waiting.1 == 0 {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn done(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.1 -= 1;
        if waiting.1 == 0 {
            self.changed.notify_all();
        }
    }
}

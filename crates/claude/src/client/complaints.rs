//! What the CLI complains about.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncRead;

use crate::lines::{Line, Lines};
use crate::stderr_callback::StderrCallback;

/// How much is kept to be told with an error.
const KEPT_LINES: usize = 20;
/// How much of a line.
const KEPT_CHARACTERS: usize = 500;
/// How long a line may be.
const LONGEST: usize = 1 << 20;

/// The last complaints, and who is told of all of them.
#[derive(Clone, Debug)]
pub(super) struct Complaints {
    last: Arc<Mutex<VecDeque<String>>>,
    callback: Option<StderrCallback>,
}

impl Complaints {
    pub(super) fn new(callback: Option<StderrCallback>) -> Self {
        Self { last: Arc::default(), callback }
    }

    /// Takes a line.
    pub(super) fn add(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if let Some(callback) = &self.callback {
            callback.call(line);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == KEPT_LINES {
            last.pop_front();
        }
        last.push_back(line.chars().take(KEPT_CHARACTERS).collect());
    }

    /// Takes lines until there are no more.
    pub(super) async fn read(self, input: impl AsyncRead + Unpin) {
        let mut lines = Lines::new(input, LONGEST);
        loop {
            match lines.next().await {
                Ok(Line::Whole(line) | Line::Torn(line)) => self.add(&line),
                Ok(Line::TooLong) => self.add(b"(a very long line)"),
                Ok(Line::End) | Err(_) => return,
            }
        }
    }

    /// Returns the last complaints.
    pub(super) fn told(&self) -> String {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

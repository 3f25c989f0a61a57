//! Asks something of the CLI, and waits for the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::board::Board;
use super::complaints::Complaints;
use super::outbox::Outbox;
use crate::error::{Error, Result};

/// Makes requests of the CLI, each under a number of its own.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    board: Arc<Board>,
    outbox: Outbox,
    complaints: Complaints,
    asked: Arc<AtomicU64>,
}

impl Asker {
    pub(super) fn new(board: Arc<Board>, outbox: Outbox, complaints: Complaints) -> Self {
        Self { board, outbox, complaints, asked: Arc::new(AtomicU64::new(1)) }
    }

    /// Asks, and waits for the answer for as long as is said.
    pub(super) async fn ask(&self, request: &'static str, body: Value, limit: Duration) -> Result<Value> {
        let id = format!("host-{}", self.asked.fetch_add(1, Ordering::Relaxed));
        let forgotten = Forgotten { board: &self.board, id: &id };
        let answer = self.board.expect(&id, request);
        let line = json!({ "type": "control_request", "request_id": id, "request": body });
        // A CLI that does not listen any more has ended or is about to, which is the answer then.
        let answered = async { (self.outbox.send(&line).await, answer.await).1 };
        let answer = tokio::time::timeout(limit, answered).await;
        drop(forgotten);
        let timed_out = |_| Error::TimedOut { request, limit, complaints: self.complaints.told() };
        answer.map_err(timed_out)?.unwrap_or(Err(Error::NotConnected))
    }
}

/// Waits for an answer no longer when it is dropped, so that a request which was given up leaves nothing behind.
struct Forgotten<'a> {
    board: &'a Board,
    id: &'a str,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.board.forget(self.id);
    }
}

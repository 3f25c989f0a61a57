//! The way to the CLI: whole lines, in order, whatever becomes of those who send them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::error::{Error, Result};

/// How many lines may wait before whoever sends has to.
const SLOTS: usize = 64;
/// How many bytes of answers may wait before no more requests are read. It is a lot, since an agent that asks before it
/// listens would never come to listen then.
const ANSWERS: usize = 4 << 20;

enum Outgoing {
    Line(Vec<u8>, Option<OwnedSemaphorePermit>),
    Close,
}

/// Takes lines for the CLI. A line that was taken is written as a whole, even if its sender is gone by then.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    sender: mpsc::UnboundedSender<Outgoing>,
    slots: Arc<Semaphore>,
    /// How many bytes of answers wait to be written.
    answers: watch::Sender<usize>,
    is_closed: Arc<AtomicBool>,
}

/// Room for one line.
#[derive(Debug)]
pub(super) struct Slot(OwnedSemaphorePermit);

impl Outbox {
    /// Writes from now on, in a task of its own, what is sent.
    pub(super) fn new(input: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, outgoing) = mpsc::unbounded_channel();
        let answers = watch::Sender::new(0);
        tokio::spawn(write(input, outgoing, answers.clone()));
        let is_closed = Arc::default();
        Self { sender, slots: Arc::new(Semaphore::new(SLOTS)), answers, is_closed }
    }

    /// Waits until there is room for a line.
    pub(super) async fn slot(&self) -> Slot {
        match Arc::clone(&self.slots).acquire_owned().await {
            Ok(permit) => Slot(permit),
            Err(_) => unreachable!("nobody closes the semaphore"),
        }
    }

    /// Sends a line.
    pub(super) fn send_in(&self, slot: Slot, line: &Value) -> Result<()> {
        self.put(line, Some(slot.0)).map(drop)
    }

    /// Sends a line, as soon as there is room for it. If the future is dropped, it was sent or it was not.
    pub(super) async fn send(&self, line: &Value) -> Result<()> {
        self.send_in(self.slot().await, line)
    }

    /// Sends the answer to a request of the CLI's, or a prompt that has waited for its turn.
    pub(super) fn answer(&self, line: &Value) -> Result<()> {
        let length = self.put(line, None)?;
        self.answers.send_modify(|waiting| *waiting += length);
        Ok(())
    }

    /// Waits while an agent that asks and does not listen leaves too many answers here.
    pub(super) async fn room_for_answers(&self) {
        // The sender is this outbox's own, and so there is always one.
        drop(
            self.answers.subscribe().wait_for(|waiting| *waiting < ANSWERS || self.sender.is_closed()).await,
        );
    }

    /// Tells the CLI that no more will come.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // It is closed already if nobody listens.
        drop(self.sender.send(Outgoing::Close));
    }

    /// Returns whether the CLI was told that no more will come.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Passes a line on, and returns its length.
    fn put(&self, line: &Value, slot: Option<OwnedSemaphorePermit>) -> Result<usize> {
        let line = format!("{line}\n").into_bytes();
        let length = line.len();
        self.sender.send(Outgoing::Line(line, slot)).map_err(|_| Error::NotConnected)?;
        Ok(length)
    }
}

async fn write(
    input: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::UnboundedReceiver<Outgoing>,
    answers: watch::Sender<usize>,
) {
    write_all(input, &mut outgoing, &answers).await;
    // Nobody waits for what is not written any more.
    drop(outgoing);
    answers.send_replace(0);
}

async fn write_all(
    mut input: impl AsyncWrite + Unpin,
    outgoing: &mut mpsc::UnboundedReceiver<Outgoing>,
    answers: &watch::Sender<usize>,
) {
    while let Some(Outgoing::Line(line, slot)) = outgoing.recv().await {
        // A CLI that does not listen any more has ended or is about to, which whoever reads will find out.
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            return;
        }
        if slot.is_none() {
            answers.send_modify(|waiting| *waiting = waiting.saturating_sub(line.len()));
        }
    }
    drop(input.shutdown().await);
}

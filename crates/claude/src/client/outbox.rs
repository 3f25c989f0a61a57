//! The way to the CLI: whole lines, in order, whatever becomes of those who send them.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::error::{Error, Result};

/// How many lines may wait before whoever sends has to.
const SLOTS: usize = 64;

enum Outgoing {
    Line(Vec<u8>, Option<OwnedSemaphorePermit>),
    Close,
}

/// Takes lines for the CLI. A line that was taken is written as a whole, even if its sender is gone by then.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    sender: mpsc::UnboundedSender<Outgoing>,
    slots: Arc<Semaphore>,
}

impl Outbox {
    /// Writes from now on, in a task of its own, what is sent.
    pub(super) fn new(input: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, outgoing) = mpsc::unbounded_channel();
        tokio::spawn(write(input, outgoing));
        Self { sender, slots: Arc::new(Semaphore::new(SLOTS)) }
    }

    /// Sends a line, as soon as there is room for it. If the future is dropped, it was sent or it was not.
    pub(super) async fn send(&self, line: &Value) -> Result<()> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| Error::NotConnected)?;
        self.put(line, Some(slot))
    }

    /// Sends the answer to a request of the CLI's. There are never more of them than requests.
    pub(super) fn answer(&self, line: &Value) -> Result<()> {
        self.put(line, None)
    }

    /// Tells the CLI that no more will come.
    pub(super) fn close(&self) {
        // It is closed already if nobody listens.
        drop(self.sender.send(Outgoing::Close));
    }

    fn put(&self, line: &Value, slot: Option<OwnedSemaphorePermit>) -> Result<()> {
        let line = format!("{line}\n").into_bytes();
        self.sender.send(Outgoing::Line(line, slot)).map_err(|_| Error::NotConnected)
    }
}

async fn write(mut input: impl AsyncWrite + Unpin, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
    while let Some(Outgoing::Line(line, _slot)) = outgoing.recv().await {
        // A CLI that does not listen any more has ended or is about to, which whoever reads will find out.
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
    drop(input.shutdown().await);
}

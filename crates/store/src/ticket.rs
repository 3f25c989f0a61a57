//! The promise that an append hands out.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::backend::{Durability, LogKey, Position};
use crate::error::{Error, Result};
use crate::id::EntryId;
use crate::writer::Unheard;

/// What an append will have become. Await it, or [`wait`](Ticket::wait), to know that the entry is as durable as the
/// store was asked to make it; drop it to fire and forget: an error still shows in `health`, `flush` and `close`.
///
/// It stays open as long as the store keeps trying, for instance while the disk is full.
#[derive(Debug)]
#[must_use = "an append is durable only when its ticket says so; drop it explicitly to fire and forget"]
pub struct Ticket {
    /// Taken by whoever reads the answer.
    receiver: Option<oneshot::Receiver<Result<Ack>>>,
    log: LogKey,
    unheard: Arc<Unheard>,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Where each record of the append stands, in order.
    pub records: Vec<Placed>,
    /// How durable they are.
    pub durability: Durability,
}

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The record's id.
    pub id: EntryId,
    /// Its position in its log.
    pub position: Position,
}

impl Ticket {
    pub(crate) fn new(log: &LogKey, unheard: &Arc<Unheard>) -> (oneshot::Sender<Result<Ack>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self { receiver: Some(receiver), log: log.clone(), unheard: unheard.clone() })
    }

    /// Waits on this thread until the append is done.
    pub fn wait(mut self) -> Result<Ack> {
        let answer = self.receiver.take().map(|receiver| receiver.recv());
        answer.and_then(Result::ok).unwrap_or(Err(Error::Closed))
    }

    /// Waits for some time; `None` if it is not done by then, and the ticket can be waited for again.
    pub fn wait_for(&self, patience: Duration) -> Option<Result<Ack>> {
        match self.receiver.as_ref()?.recv_timeout(patience) {
            Ok(done) => Some(done),
            Err(oneshot::RecvTimeoutError::Timeout) => None,
            Err(oneshot::RecvTimeoutError::Disconnected) => Some(Err(Error::Closed)),
        }
    }
}

impl Drop for Ticket {
    /// A failure that had arrived and was never read is not forgotten: `health`, `flush` and `close` tell of it.
    fn drop(&mut self) {
        if let Some(receiver) = self.receiver.take()
            && let Ok(Err(error)) = receiver.try_recv()
        {
            self.unheard.keep(&self.log, error);
        }
    }
}

impl IntoFuture for Ticket {
    type Output = Result<Ack>;
    type IntoFuture = Acknowledged;

    fn into_future(mut self) -> Acknowledged {
        Acknowledged(self.receiver.take().map(IntoFuture::into_future))
    }
}

/// A ticket that is awaited.
#[derive(Debug)]
#[must_use = "it does nothing unless it is awaited"]
pub struct Acknowledged(Option<oneshot::AsyncReceiver<Result<Ack>>>);

impl Future for Acknowledged {
    type Output = Result<Ack>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Ack>> {
        let Some(receiver) = &mut self.0 else { return Poll::Ready(Err(Error::Closed)) };
        Pin::new(receiver).poll(context).map(|answer| answer.unwrap_or(Err(Error::Closed)))
    }
}

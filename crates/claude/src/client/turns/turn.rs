//! One prompt that somebody waits for the answer of.

use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::queue::{Item, Queue};

/// A turn's number. A UUID does not tell turns apart: the same prompt may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnId(pub(super) u64);

/// A prompt, and what was said in answer to it so far.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) uuid: String,
    queue: Queue,
    waker: Option<Waker>,
    /// The prompt, as long as it was not sent.
    pub(super) held: Option<Value>,
    /// Whether the CLI has said that it has the prompt.
    pub(super) is_known: bool,
    /// Whether the CLI has said that it begins to answer it.
    pub(super) has_begun: bool,
    /// Whether nobody reads the answer any more.
    pub(super) is_abandoned: bool,
    pub(super) is_done: bool,
}

impl Turn {
    /// Returns a turn that begins with what was said already.
    pub(super) fn new(id: TurnId, uuid: &str, queue: Queue) -> Self {
        Self {
            id,
            uuid: uuid.to_owned(),
            queue,
            waker: None,
            held: None,
            is_known: false,
            has_begun: false,
            is_abandoned: false,
            is_done: false,
        }
    }

    /// Returns how much waits to be read.
    pub(super) fn bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Adds a message, if anybody reads it.
    pub(super) fn put(&mut self, item: Item) {
        if !self.is_abandoned {
            self.queue.push(item);
            self.wake();
        }
    }

    /// Ends the turn, with a last message if there is one.
    pub(super) fn finish(&mut self, last: Option<Item>) {
        self.is_done = true;
        last.into_iter().for_each(|item| self.put(item));
        self.wake();
    }

    /// Takes the next message.
    pub(super) fn take(&mut self, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let item = self.queue.pop();
        if item.is_none() && !self.is_done {
            self.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(item)
    }

    /// Lets go of what was said, and of what will be.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
        self.queue.clear();
    }

    fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

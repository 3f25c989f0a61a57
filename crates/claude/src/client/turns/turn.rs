//! One prompt that somebody waits for the answer of.

use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::queue::{Item, Queue};

/// A turn's number. A UUID does not tell turns apart: the same prompt may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnId(pub(super) u64);

/// Who is told what is said in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    /// The stream that was given out for it.
    Stream,
    /// Nobody any more: that stream was dropped.
    Nobody,
    /// Those who follow what is loose.
    Followers,
}

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
    pub(super) listener: Listener,
    pub(super) is_done: bool,
}

impl Turn {
    /// Returns a turn that begins with what was said already.
    pub(super) fn new(id: TurnId, uuid: &str, listener: Listener, queue: Queue) -> Self {
        Self {
            id,
            uuid: uuid.to_owned(),
            queue,
            waker: None,
            held: None,
            is_known: false,
            has_begun: false,
            listener,
            is_done: false,
        }
    }

    /// Returns how much waits to be read.
    pub(super) fn bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Returns whether what is said now belongs to it, and to nobody else.
    pub(super) fn is_being_answered(&self) -> bool {
        self.listener != Listener::Followers && (self.has_begun || !self.is_known)
    }

    /// Returns whether nothing is left to be done with it.
    pub(super) fn is_over(&self) -> bool {
        self.is_done && self.listener != Listener::Stream
    }

    /// Adds a message, if its stream is there to take it.
    pub(super) fn put(&mut self, item: Item) {
        if self.listener == Listener::Stream {
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
        self.listener = Listener::Nobody;
        self.queue.clear();
    }

    fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

//! What is said between turns, and who takes it.

use std::task::{Context, Poll, Waker};

use super::queue::{Item, Queue};
use crate::frame::FrameKind;
use crate::message::{Message, ResultMessage};

/// The number of somebody who takes what is loose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FollowerId(u64);

/// Messages that belong to no turn. Of those who follow them, each message goes to one.
#[derive(Debug, Default)]
pub(super) struct Loose {
    queue: Queue,
    followers: Vec<(FollowerId, Option<Waker>)>,
    /// How many followers there were.
    followed: u64,
    /// Whether nobody will begin to follow.
    is_closing: bool,
}

impl Loose {
    /// Returns how much waits to be read.
    pub(super) fn bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Returns whether anybody takes it.
    pub(super) fn is_followed(&self) -> bool {
        !self.followers.is_empty()
    }

    /// Adds a message, if anybody may still read it.
    pub(super) fn put(&mut self, item: Item) {
        // How the CLI failed to begin is told with its end, even if nobody listens.
        let is_result = item.as_ref().is_ok_and(|frame| frame.kind() == FrameKind::Result);
        if !self.is_closing || self.is_followed() || is_result {
            self.queue.push(item);
            self.wake_all();
        }
    }

    /// Adds a message that is told to whoever comes.
    pub(super) fn put_last(&mut self, item: Item) {
        self.queue.push(item);
        self.wake_all();
    }

    /// Gives what there is to a turn, unless somebody follows.
    pub(super) fn give(&mut self) -> Queue {
        if self.is_followed() { Queue::default() } else { std::mem::take(&mut self.queue) }
    }

    /// Adds somebody who takes what is loose.
    pub(super) fn follow(&mut self) -> FollowerId {
        let id = FollowerId(self.followed);
        self.followed += 1;
        self.followers.push((id, None));
        id
    }

    /// Lets somebody go who took what is loose.
    pub(super) fn leave(&mut self, id: FollowerId) {
        self.followers.retain(|(known, _)| *known != id);
        // One that was woken and left has taken nothing: it is another's now.
        self.wake_all();
        if self.is_closing {
            self.close();
        }
    }

    /// Drops what there is, and what will be, if nobody takes it.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        if !self.is_followed() {
            self.queue.clear();
        }
    }

    /// Takes the next message. When it is over and there is none, there will be none.
    pub(super) fn take(
        &mut self,
        id: FollowerId,
        is_over: bool,
        context: &mut Context<'_>,
    ) -> Poll<Option<Item>> {
        let item = self.queue.pop();
        if item.is_none() && !is_over {
            // Each follower has one place, so that one who comes again and again leaves nothing behind.
            if let Some((_, waker)) = self.followers.iter_mut().find(|(known, _)| *known == id) {
                *waker = Some(context.waker().clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(item)
    }

    /// Has everybody look again.
    pub(super) fn wake_all(&mut self) {
        self.followers.iter_mut().filter_map(|(_, waker)| waker.take()).for_each(Waker::wake);
    }

    /// Returns the results among what is loose: nobody asked for them.
    pub(super) fn results(&self) -> Vec<ResultMessage> {
        let messages = self.queue.iter().flatten().filter_map(|frame| frame.message().ok());
        let results = messages.filter_map(|message| match message {
            Message::Result(result) => Some(result),
            _ => None,
        });
        results.collect()
    }
}

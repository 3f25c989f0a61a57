//! The messages of a turn, and those between turns.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::board::Board;
use super::turns::{FollowerId, TurnId};
use crate::error::Result;
use crate::frame::Frame;
use crate::message::Message;

/// The messages that answer a prompt, up to its result.
///
/// An error is an item like any other: a line that could not be read, for example. Only the end of the CLI ends the
/// stream before the result. Dropping the stream drops what is still to come of the turn; the turn itself goes on, unless
/// it is [interrupted](crate::ClaudeClient::interrupt).
#[derive(Debug)]
#[must_use = "the answer is only there for who reads it"]
pub struct ResponseStream {
    board: Arc<Board>,
    turn: TurnId,
    uuid: String,
}

impl ResponseStream {
    pub(super) fn new(board: &Arc<Board>, turn: TurnId, uuid: &str) -> Self {
        Self { board: Arc::clone(board), turn, uuid: uuid.to_owned() }
    }

    /// Returns the UUID of the prompt that is answered.
    pub fn prompt_uuid(&self) -> &str {
        &self.uuid
    }

    /// Waits for the next message.
    pub async fn next_message(&mut self) -> Option<Result<Message>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Waits for the next message, and returns it as it came.
    pub async fn next_frame(&mut self) -> Option<Result<Frame>> {
        std::future::poll_fn(|context| self.board.take(self.turn, context)).await
    }
}

impl Stream for ResponseStream {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.board.take(self.turn, context).map(read)
    }
}

impl Drop for ResponseStream {
    fn drop(&mut self) {
        self.board.leave(self.turn);
    }
}

/// Everything that the CLI says outside of the turns that somebody waits for, to its end. Of several such streams each
/// message goes to one.
#[derive(Debug)]
#[must_use = "messages are only there for who reads them"]
pub struct MessageStream {
    board: Arc<Board>,
    follower: FollowerId,
}

impl MessageStream {
    pub(super) fn new(board: &Arc<Board>) -> Self {
        Self { board: Arc::clone(board), follower: board.follow() }
    }

    /// Waits for the next message.
    pub async fn next_message(&mut self) -> Option<Result<Message>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Waits for the next message, and returns it as it came.
    pub async fn next_frame(&mut self) -> Option<Result<Frame>> {
        std::future::poll_fn(|context| self.board.take_loose(self.follower, context)).await
    }
}

impl MessageStream {
    /// Returns whether the CLI has said that it is still at work, be it in the background.
    pub(crate) fn is_at_work(&self) -> bool {
        self.board.is_at_work()
    }
}

impl Stream for MessageStream {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.board.take_loose(self.follower, context).map(read)
    }
}

impl Drop for MessageStream {
    fn drop(&mut self) {
        self.board.unfollow(self.follower);
    }
}

fn read(item: Option<Result<Frame>>) -> Option<Result<Message>> {
    item.map(|frame| frame.and_then(|frame| frame.message()))
}

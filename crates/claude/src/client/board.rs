//! Where what the CLI says meets those who wait for it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use super::turns::{FollowerId, Item, TurnId, Turns};
use crate::error::{Error, Result};
use crate::message::ResultMessage;

/// By how much the limit may be exceeded to reach the answer that somebody waits for.
const STRETCH: usize = 16;

/// Messages and answers on their way from the CLI to the host.
#[derive(Debug)]
pub(super) struct Board {
    state: Mutex<State>,
    /// Told when the reader may go on.
    room: Notify,
    /// Told when it is over.
    over: Notify,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    turns: Turns,
    /// Whether the client is gone, so that nobody has to be waited for.
    is_left: bool,
    pending: HashMap<String, Pending>,
}

/// A request of the host's that was not answered yet.
#[derive(Debug)]
struct Pending {
    request: &'static str,
    answer: oneshot::Sender<Result<Value>>,
}

impl Board {
    pub(super) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), room: Notify::new(), over: Notify::new(), limit }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for more messages, or somebody waits for what may come after them.
    pub(super) async fn room(&self) {
        loop {
            {
                let mut state = self.state();
                let waiting = state.turns.waiting();
                let stretch = if state.pending.is_empty() { 1 } else { STRETCH };
                if waiting < self.limit.saturating_mul(stretch)
                    || state.turns.end().is_some()
                    || state.is_left
                {
                    return;
                }
                for (_, Pending { request, answer }) in state.pending.drain() {
                    // Who asked may be gone.
                    drop(answer.send(Err(Error::Congested { request, waiting })));
                }
            }
            self.room.notified().await;
        }
    }

    /// Passes a message on, and returns the prompts that may be sent now. What there is no room for when the client is gone
    /// goes to nobody.
    pub(super) fn deliver(&self, item: Item) -> Vec<Value> {
        let mut state = self.state();
        if state.is_left && state.turns.waiting() >= self.limit {
            return Vec::new();
        }
        state.turns.take_in(item)
    }

    /// Says that nobody will begin to take what is loose.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.turns.close();
        self.make_room(&state);
    }

    /// Says that the client is gone. Streams that it gave out still get what there is room for.
    pub(super) fn leave_all(&self) {
        let mut state = self.state();
        state.turns.close();
        state.is_left = true;
        self.room.notify_one();
    }

    /// Opens a turn for a prompt, and returns the prompt if it may be sent now.
    pub(super) fn open(&self, uuid: &str, prompt: Value) -> (TurnId, Option<Value>) {
        self.state().turns.open(uuid, prompt)
    }

    /// Takes note of a prompt whose answer goes to whoever follows. It is sent at once.
    pub(super) fn note(&self, uuid: &str) {
        self.state().turns.note(uuid);
    }

    /// Ends a turn whose prompt was taken back, and returns the prompt that may be sent now.
    pub(super) fn cancel(&self, uuid: &str) -> Option<Value> {
        self.state().turns.cancel(uuid)
    }

    /// Takes back a prompt that was not sent yet, and returns whether there was one.
    pub(super) fn cancel_held(&self, uuid: &str) -> bool {
        let mut state = self.state();
        let is_held = state.turns.is_held(uuid);
        if is_held {
            // It was held since another is not answered yet, and so all others still are.
            drop(state.turns.cancel(uuid));
        }
        is_held
    }

    /// Takes the next message of a turn.
    pub(super) fn take(&self, turn: TurnId, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut state = self.state();
        let item = state.turns.take(turn, context);
        self.make_room(&state);
        item
    }

    /// Takes the next message that belongs to no turn.
    pub(super) fn take_loose(&self, id: FollowerId, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut state = self.state();
        let item = state.turns.take_loose(id, context);
        self.make_room(&state);
        item
    }

    /// Lets go of a turn. What is still to come of it goes to nobody.
    pub(super) fn leave(&self, turn: TurnId) {
        let mut state = self.state();
        state.turns.leave(turn);
        self.make_room(&state);
    }

    /// Adds somebody who takes what is loose.
    pub(super) fn follow(&self) -> FollowerId {
        self.state().turns.follow()
    }

    /// Lets somebody go who took what is loose.
    pub(super) fn unfollow(&self, id: FollowerId) {
        let mut state = self.state();
        state.turns.unfollow(id);
        self.make_room(&state);
    }

    /// Returns whether the CLI has said that it is still at work, be it in the background.
    pub(super) fn is_at_work(&self) -> bool {
        self.state().turns.is_at_work()
    }

    fn make_room(&self, state: &State) {
        if state.turns.waiting() < self.limit {
            self.room.notify_one();
        }
    }

    /// Waits for the answer to a request.
    pub(super) fn expect(&self, id: &str, request: &'static str) -> oneshot::Receiver<Result<Value>> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(end) = state.turns.end() {
            // Who asked holds the other end.
            drop(answer.send(Err(end.clone())));
        } else {
            state.pending.insert(id.to_owned(), Pending { request, answer });
            self.room.notify_one();
        }
        receiver
    }

    /// Waits no longer.
    pub(super) fn forget(&self, id: &str) {
        self.state().pending.remove(id);
    }

    /// Passes an answer on. One that nobody waits for is an echo of our own, or too late.
    pub(super) fn answer(&self, id: &str, answer: impl FnOnce(&'static str) -> Result<Value>) {
        let pending = self.state().pending.remove(id);
        if let Some(Pending { request, answer: sender }) = pending {
            drop(sender.send(answer(request)));
        }
    }

    /// Returns what results said that nobody asked for: why the CLI could not even begin.
    pub(super) fn unasked_results(&self) -> Vec<ResultMessage> {
        self.state().turns.unasked_results()
    }

    /// Tells everybody that nothing more will come.
    pub(super) fn finish(&self, end: &Error) {
        let mut state = self.state();
        if state.turns.end().is_some() {
            return;
        }
        state.turns.finish(end);
        for (_, Pending { answer, .. }) in state.pending.drain() {
            drop(answer.send(Err(end.clone())));
        }
        self.room.notify_one();
        self.over.notify_waiters();
    }

    /// Waits until it is over, and returns why.
    pub(super) async fn ended(&self) -> Error {
        loop {
            // Waits from here on, so that an end between the look and the wait is not missed.
            let over = self.over.notified();
            if let Some(end) = self.end() {
                return end;
            }
            over.await;
        }
    }

    /// Returns why it is over, if it is.
    pub(super) fn end(&self) -> Option<Error> {
        self.state().turns.end().cloned()
    }
}

//! What a session is asked: one turn after the other, and those that wait.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde_json::json;
use tracing::Instrument as _;

use super::driver::{Current, Driver};
use super::turn::{Mode, Turn};
use crate::TRACES;
use crate::keeper::Keeper;
use crate::problem::{Problem, with_causes};

/// How many prompts may wait.
const QUEUE: usize = 100;
/// How long an agent may take to hear that it is interrupted again.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

impl Driver {
    /// Takes a prompt: sends it now, or has it wait. From then on it is in the transcript or waits, whatever happens to
    /// the keeper.
    pub(crate) async fn send(
        self: &Arc<Self>,
        keeper: &Arc<Keeper>,
        turn: Turn,
        mode: Mode,
    ) -> Result<(), Problem> {
        let uuid = turn.client_message_id.clone();
        // The keeper that took it may be gone, and the answer with it.
        if !self.is_running() && keeper.has_message(&self.session, &uuid).await {
            return Ok(());
        }
        let waits = {
            let mut state = self.state();
            if state.taken.has(&uuid) {
                return Ok(());
            }
            let waits = state.current.is_some() || !state.queue.is_empty();
            if waits {
                if mode == Mode::Start && state.current.is_some() {
                    return Err(Problem::conflict("busy", "a turn runs already")
                        .hint("wait for its end, interrupt it, or use `mode: queue`")
                        .retryable());
                }
                if state.queue.len() >= QUEUE {
                    return Err(Problem::conflict("queue-full", "too many prompts wait").retryable());
                }
            } else {
                state.current = Some(Current { message: uuid.clone(), is_given: false });
                (state.used, state.has_failed) = (Instant::now(), false);
            }
            state.taken.add(&uuid);
            waits
        };
        let written = keeper.prompts.add(&self.session, &turn).map_err(|error| Problem::failed(&error));
        let begun = match written {
            Ok(()) if waits => {
                self.state().queue.push_back(turn);
                self.tell_queue(keeper);
                self.resume(keeper);
                return Ok(());
            }
            Ok(()) => self.begin_turn(keeper, &turn).await,
            Err(problem) => Err(problem),
        };
        if let Err(problem) = &begun {
            let current = self.current(&uuid);
            match current {
                // Everybody was told that it began.
                Some(Current { is_given: true, .. }) => self.fail(keeper, why(problem)),
                Some(_) if self.state().is_interrupting(&uuid) => self.fail(keeper, why(problem)),
                Some(_) => self.state().current = None,
                None => {}
            }
            self.state().taken.forget(&uuid);
            keeper.prompts.remove(&self.session, &uuid);
            self.refresh_state(keeper);
            self.go_on(keeper);
        }
        begun
    }

    /// Goes on with what waits.
    pub(crate) fn resume(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        let was_held = std::mem::take(&mut self.state().is_held);
        if was_held {
            self.tell_queue(keeper);
        }
        self.go_on(keeper);
    }

    async fn begin_turn(self: &Arc<Self>, keeper: &Arc<Keeper>, turn: &Turn) -> Result<(), Problem> {
        let (session, message) = (&*self.session, &*turn.client_message_id);
        let span = tracing::info_span!(target: TRACES, "begin_turn", session, message);
        self.give(keeper, turn).instrument(span).await
    }

    /// Gives the agent a prompt, and starts it if it does not run.
    async fn give(self: &Arc<Self>, keeper: &Arc<Keeper>, turn: &Turn) -> Result<(), Problem> {
        let client = loop {
            let client = self.client(keeper).await?;
            let mut state = self.state();
            // One that ended just now never gets it.
            if !state.ending && state.client.as_ref().is_some_and(|own| Arc::ptr_eq(own, &client)) {
                // Somebody thought better of it while the agent started.
                if state.is_interrupting(&turn.client_message_id) {
                    return Err(Problem::conflict("interrupted", "the turn was interrupted before it began"));
                }
                state.current = Some(Current { message: turn.client_message_id.clone(), is_given: true });
                break client;
            }
        };
        self.refresh_state(keeper);
        keeper.hub.publish(&self.session, "turn.started", json!({ "message": turn.client_message_id }));
        client.send(turn.prompt()).await.map_err(|error| {
            let code = "agent-failed";
            Problem::new(StatusCode::BAD_GATEWAY, code).detail(with_causes(&error)).retryable()
        })?;
        Ok(())
    }

    /// Begins the turn of the prompt that has waited longest, if there is one and no turn runs.
    pub(super) fn go_on(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        let next = {
            let mut state = self.state();
            let is_free = state.current.is_none() && !state.is_held;
            let next = if is_free { state.queue.pop_front() } else { None };
            let Some(next) = next else { return };
            state.current = Some(Current { message: next.client_message_id.clone(), is_given: false });
            next
        };
        self.refresh_state(keeper);
        self.tell_queue(keeper);
        // Not here: what the agent says must go on being heard.
        tokio::spawn(Arc::clone(self).begin_next(Arc::clone(keeper), next));
    }

    /// Boxed, because a turn's end begins the next one.
    fn begin_next(
        self: Arc<Self>,
        keeper: Arc<Keeper>,
        next: Turn,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if let Err(problem) = self.begin_turn(&keeper, &next).await {
                if self.current(&next.client_message_id).is_some() {
                    self.fail(&keeper, why(&problem));
                }
                self.refresh_state(&keeper);
                // None waits for ever: each is answered, or fails by itself.
                self.go_on(&keeper);
            }
        })
    }

    /// Returns the turn of a message, unless its end was noticed and perhaps another one has begun.
    fn current(&self, message: &str) -> Option<Current> {
        self.state().current.clone().filter(|current| current.message == message)
    }

    /// Says that the turn came to nothing.
    pub(super) fn fail(&self, keeper: &Keeper, why: &str) {
        let mut state = self.state();
        let Some(current) = state.current.take() else { return };
        let interrupted = state.is_interrupting(&current.message);
        if interrupted {
            state.interrupting = None;
        }
        state.has_failed = !interrupted;
        let kind = if interrupted { "turn.interrupted" } else { "turn.failed" };
        let data = json!({ "message": current.message, "errors": [why] });
        keeper.hub.publish(&self.session, kind, data);
        drop(state);
        self.settle(keeper, &current.message);
    }

    /// Forgets a prompt whose turn has ended. What ends with the keeper may never have been written: the next one looks.
    pub(super) fn settle(&self, keeper: &Keeper, message: &str) {
        if !*keeper.ending.borrow() {
            keeper.prompts.remove(&self.session, message);
        }
    }

    /// Takes back a prompt that waits.
    pub(crate) fn unqueue(&self, keeper: &Keeper, message: &str) -> bool {
        let mut state = self.state();
        let before = state.queue.len();
        state.queue.retain(|turn| turn.client_message_id != message);
        let was = state.queue.len() < before;
        drop(state);
        if was {
            keeper.prompts.remove(&self.session, message);
            self.tell_queue(keeper);
        }
        was
    }

    pub(super) fn tell_queue(&self, keeper: &Keeper) {
        let (items, held) = self.queue();
        keeper.hub.publish(&self.session, "queue.changed", json!({ "items": items, "held": held }));
    }

    /// Ends the turn that runs.
    pub(crate) async fn interrupt(&self) -> Result<bool, Problem> {
        let client = {
            let mut state = self.state();
            let Some(interrupted) = state.interruptible() else { return Ok(false) };
            state.interrupting = Some(interrupted);
            state.client.clone()
        };
        if let Some(client) = client {
            client.interrupt().await.map_err(|error| Problem::failed(&error))?;
        }
        Ok(true)
    }

    /// Interrupts a prompt once more that is answered all the same. An interruption ends what the agent does when it hears
    /// of it, and that may be a turn of its own that the prompt waits for, or nothing yet.
    pub(super) fn interrupt_what_goes_on(self: &Arc<Self>) {
        let Some(message) = self.state().unwanted().map(str::to_owned) else { return };
        let own = Arc::clone(self);
        // Not here: what the agent says must go on being heard.
        tokio::spawn(async move {
            let client = {
                let state = own.state();
                // By now the prompt may have ended, and nobody meant the one after it.
                if state.is_interrupting(&message) { state.client.clone() } else { None }
            };
            let Some(client) = client else { return };
            // One that cannot be told has ended, and the turn with it; one that does not listen is not waited for here, since
            // whoever ends it needs the client.
            match tokio::time::timeout(HEARD_WITHIN, client.interrupt()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the agent was not interrupted again"),
                Err(_) => tracing::warn!("the agent did not hear that it was interrupted again"),
            }
        });
    }
}

fn why(problem: &Problem) -> &str {
    problem.detail.as_deref().unwrap_or(&problem.title)
}

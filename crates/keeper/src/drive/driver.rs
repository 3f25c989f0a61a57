//! One session that is driven: its queue, and what it does.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::http::StatusCode;
use rethread_claude::ClaudeClient;
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use tracing::Instrument as _;

use super::begin::Begin;
use super::partial::Partial;
use super::process::Process;
use super::taken::Taken;
use super::turn::{Mode, Turn};
use crate::TRACES;
use crate::capture::Captures;
use crate::card::{Home, SessionState};
use crate::hub::Wake;
use crate::item::MessageItem;
use crate::keeper::Keeper;
use crate::merge::{Arrival, Merge, Told};
use crate::problem::Problem;

/// How many prompts may wait.
const QUEUE: usize = 100;

/// A session that is driven.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(super) session: Arc<str>,
    state: Mutex<State>,
    /// Held while the agent is started or ended: there is never a second one.
    pub(super) process: AsyncMutex<Process>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) begin: Begin,
    pub(super) merge: Merge,
    pub(super) partial: Partial,
    pub(super) queue: VecDeque<Turn>,
    pub(super) current: Option<Current>,
    taken: Taken,
    pub(super) interrupting: bool,
    pub(super) has_failed: bool,
    /// The process of the agent, and the one that guards it.
    pub(super) pids: Vec<u32>,
    pub(super) used: Instant,
    pub(super) client: Option<Arc<ClaudeClient>>,
    pub(super) captures: Option<Arc<Captures>>,
    /// The agent was told to end, and has not yet.
    pub(super) ending: bool,
    /// Nobody is to drive the session with this any more.
    pub(super) is_over: bool,
    /// Where the transcript ended when the agent was started.
    pub(super) from: u64,
}

/// The prompt that is being answered.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub(super) message: String,
    /// The agent has it: when the agent ends, so does the turn. Until then it is for the next one.
    pub(super) is_given: bool,
}

impl Driver {
    pub(crate) fn new(begin: Begin) -> Self {
        let session = begin.session.as_str().into();
        let state = State {
            begin,
            merge: Merge::default(),
            partial: Partial::default(),
            queue: VecDeque::new(),
            current: None,
            taken: Taken::default(),
            interrupting: false,
            has_failed: false,
            pids: Vec::new(),
            used: Instant::now(),
            client: None,
            captures: None,
            ending: false,
            is_over: false,
            from: 0,
        };
        Self { session, state: Mutex::new(state), process: AsyncMutex::default() }
    }

    pub(crate) fn begin(&self) -> Begin {
        self.state().begin.clone()
    }

    /// Gives a session another name before it has begun.
    pub(crate) fn rename(&self, name: &str) -> Begin {
        let mut state = self.state();
        state.begin.name = Some(name.to_owned());
        state.begin.clone()
    }

    /// Returns the prompt that is being answered.
    pub(crate) fn message(&self) -> Option<String> {
        self.state().current.as_ref().map(|current| current.message.clone())
    }

    pub(crate) fn queue(&self) -> Vec<Turn> {
        self.state().queue.iter().cloned().collect()
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.state().pids.clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state().client.is_some()
    }

    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state();
        state.current.is_some() || !state.queue.is_empty()
    }

    /// Returns what only the stream knows so far.
    pub(crate) fn provisional(&self) -> Vec<MessageItem> {
        self.state().merge.provisional().cloned().collect()
    }

    /// Returns the message that is just being said.
    pub(crate) fn partial(&self) -> Option<Partial> {
        Some(self.state().partial.clone()).filter(|partial| !partial.is_empty())
    }

    /// Takes a message that came, from wherever, and tells what is new.
    pub(crate) fn take(&self, keeper: &Keeper, arrival: Arrival, wake: Wake) {
        let mut state = self.state();
        // Told under the lock, so that everybody hears it in the order in which it was merged.
        for told in state.merge.merge(arrival) {
            match told {
                Told::Upsert(item) => {
                    keeper.hub.publish_with(wake, &self.session, "message.upsert", item.small());
                }
                Told::Dropped(uuid) => {
                    keeper.hub.publish(&self.session, "message.dropped", json!({ "uuid": uuid }));
                }
            }
        }
    }

    /// Takes a prompt: sends it now, or has it wait.
    pub(crate) async fn send(
        self: &Arc<Self>,
        keeper: &Arc<Keeper>,
        turn: Turn,
        mode: Mode,
    ) -> Result<(), Problem> {
        let uuid = turn.client_message_id.clone();
        {
            let mut state = self.state();
            if state.taken.has(&uuid) {
                return Ok(());
            }
            if state.current.is_some() || !state.queue.is_empty() {
                if mode == Mode::Start {
                    return Err(Problem::conflict("busy", "a turn runs already")
                        .hint("wait for its end, interrupt it, or use `mode: queue`")
                        .retryable());
                }
                if state.queue.len() >= QUEUE {
                    return Err(Problem::conflict("queue-full", "too many prompts wait").retryable());
                }
                state.taken.add(&uuid);
                state.queue.push_back(turn);
                drop(state);
                self.tell_queue(keeper);
                return Ok(());
            }
            state.taken.add(&uuid);
            state.current = Some(Current { message: uuid.clone(), is_given: false });
            (state.used, state.has_failed) = (Instant::now(), false);
        }
        if let Err(problem) = self.begin_turn(keeper, &turn).await {
            let mut state = self.state();
            state.current = None;
            state.taken.forget(&uuid);
            drop(state);
            self.refresh_state(keeper);
            self.go_on(keeper);
            return Err(problem);
        }
        Ok(())
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
                state.current = Some(Current { message: turn.client_message_id.clone(), is_given: true });
                break client;
            }
        };
        self.refresh_state(keeper);
        keeper.hub.publish(&self.session, "turn.started", json!({ "message": turn.client_message_id }));
        client.send(turn.prompt()).await.map_err(|error| {
            let code = "agent-failed";
            Problem::new(StatusCode::BAD_GATEWAY, code).detail(error.to_string()).retryable()
        })?;
        Ok(())
    }

    /// Begins the turn of the prompt that has waited longest, if there is one and no turn runs.
    pub(super) fn go_on(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        let next = {
            let mut state = self.state();
            let next = if state.current.is_none() { state.queue.pop_front() } else { None };
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
                self.fail(&keeper, problem.detail.as_deref().unwrap_or_default());
                self.refresh_state(&keeper);
                // None waits for ever: each is answered, or fails by itself.
                self.go_on(&keeper);
            }
        })
    }

    /// Says that the turn came to nothing.
    pub(super) fn fail(&self, keeper: &Keeper, why: &str) {
        let mut state = self.state();
        let Some(current) = state.current.take() else { return };
        let interrupted = std::mem::take(&mut state.interrupting);
        state.has_failed = !interrupted;
        let kind = if interrupted { "turn.interrupted" } else { "turn.failed" };
        let data = json!({ "message": current.message, "errors": [why] });
        keeper.hub.publish(&self.session, kind, data);
    }

    /// Takes back a prompt that waits.
    pub(crate) fn unqueue(&self, keeper: &Keeper, message: &str) -> bool {
        let mut state = self.state();
        let before = state.queue.len();
        state.queue.retain(|turn| turn.client_message_id != message);
        let was = state.queue.len() < before;
        drop(state);
        if was {
            self.tell_queue(keeper);
        }
        was
    }

    pub(super) fn tell_queue(&self, keeper: &Keeper) {
        let state = self.state();
        keeper.hub.publish(&self.session, "queue.changed", json!({ "items": state.queue }));
    }

    /// Ends the turn that runs.
    pub(crate) async fn interrupt(&self) -> Result<bool, Problem> {
        let client = {
            let mut state = self.state();
            if state.current.is_none() {
                return Ok(false);
            }
            state.interrupting = true;
            state.client.clone()
        };
        if let Some(client) = client {
            client.interrupt().await.map_err(|error| Problem::failed(&error))?;
        }
        Ok(true)
    }

    /// Works out what the session does, and tells if that is new.
    pub(crate) fn refresh_state(&self, keeper: &Keeper) {
        let now = {
            let state = self.state();
            match (&state.current, state.has_failed) {
                (Some(_), _) if keeper.attention.is_waiting(&self.session) => SessionState::Waiting,
                (Some(_), _) => SessionState::Running,
                (None, true) => SessionState::Failed,
                (None, false) => SessionState::Idle,
            }
        };
        let before = keeper.catalogue().find(Some(Home::Native), &self.session).map(|known| known.card.state);
        // One that was never sent anything is still about to begin.
        if before == Some(SessionState::Pending) && now == SessionState::Idle {
            return;
        }
        let news = keeper.catalogue_mut().set_state(&self.session, Some(now));
        if before != Some(now) {
            let data = json!({ "session_id": &*self.session, "state": now });
            keeper.hub.publish(&self.session, "session.state", data);
        }
        keeper.tell(news);
    }

    /// Records what is there before a tool runs.
    pub(super) async fn capture_before(&self, tool: &str, call: &str, input: &Value) {
        let (captures, message) = self.captures();
        if let Some(captures) = captures {
            captures.before(message.as_deref(), tool, call, input).await;
        }
    }

    pub(super) async fn capture_after(&self, call: &str) {
        let (captures, message) = self.captures();
        if let Some(captures) = captures {
            captures.after(message.as_deref(), call).await;
        }
    }

    /// Returns the session's checkpoints, if it has been driven since the keeper started.
    pub(crate) fn checkpointer(&self) -> Option<Arc<rethread_checkpoint::Checkpointer>> {
        self.state().captures.as_ref().map(|captures| Arc::clone(captures.checkpointer()))
    }

    fn captures(&self) -> (Option<Arc<Captures>>, Option<String>) {
        let state = self.state();
        (state.captures.clone(), state.current.as_ref().map(|current| current.message.clone()))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! One session that is driven: what is known of it, and what it does.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rethread_claude::ClaudeClient;
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;

use super::begin::Begin;
use super::partial::Partial;
use super::process::Process;
use super::taken::Taken;
use super::turn::Turn;
use crate::capture::Captures;
use crate::card::{Home, SessionState};
use crate::hub::Wake;
use crate::item::MessageItem;
use crate::keeper::Keeper;
use crate::merge::{Arrival, Merge, Told};
use crate::shared::Share;

/// A session that is driven.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(super) session: Arc<str>,
    state: Mutex<State>,
    /// Held while it is told what the session does.
    telling: Mutex<()>,
    /// Held while the agent is started or ended: there is never a second one.
    pub(super) process: AsyncMutex<Process>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) begin: Begin,
    pub(super) merge: Merge,
    pub(super) partial: Partial,
    pub(super) queue: VecDeque<Turn>,
    /// What waits goes on when somebody says so: whoever asked for it may be long gone.
    pub(super) is_held: bool,
    pub(super) current: Option<Current>,
    /// The agent answers what nobody asked it: something that it had in the background has ended.
    pub(super) answers_itself: bool,
    pub(super) taken: Taken,
    /// What somebody wants to end, until it has.
    pub(super) interrupting: Option<Interrupted>,
    /// How many tasks the agent has in the background.
    pub(super) in_background: usize,
    /// Those of them that are commands, by their tasks.
    pub(super) commands: HashSet<String>,
    pub(super) has_failed: bool,
    /// The process of the agent, and the one that guards it.
    pub(super) pids: Vec<u32>,
    pub(super) used: Instant,
    pub(super) client: Option<Arc<ClaudeClient>>,
    pub(super) captures: Option<Arc<Captures>>,
    /// Tells other keepers of the store.
    pub(super) share: Option<Share>,
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

/// What somebody wants to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// The answer to a prompt, and to no other.
    Prompt(String),
    /// What the agent does by itself.
    Own,
}

impl State {
    /// Returns what ends if somebody interrupts the agent now.
    pub(super) fn interruptible(&self) -> Option<Interrupted> {
        match &self.current {
            Some(current) => Some(Interrupted::Prompt(current.message.clone())),
            None => self.answers_itself.then_some(Interrupted::Own),
        }
    }

    /// Returns whether somebody wants the answer to a prompt to end.
    pub(super) fn is_interrupting(&self, message: &str) -> bool {
        matches!(&self.interrupting, Some(Interrupted::Prompt(interrupted)) if interrupted == message)
    }

    /// Returns the prompt that is being answered, if somebody wants that to end.
    pub(super) fn unwanted(&self) -> Option<&str> {
        let message = &*self.current.as_ref()?.message;
        self.is_interrupting(message).then_some(message)
    }
}

impl Driver {
    /// Begins with the prompts that an earlier driver took and left.
    pub(crate) fn new(begin: Begin, left: Vec<Turn>) -> Self {
        let session = begin.session.as_str().into();
        let mut taken = Taken::default();
        left.iter().for_each(|turn| taken.add(&turn.client_message_id));
        let state = State {
            begin,
            merge: Merge::default(),
            partial: Partial::default(),
            is_held: !left.is_empty(),
            queue: left.into(),
            current: None,
            answers_itself: false,
            taken,
            interrupting: None,
            in_background: 0,
            commands: HashSet::new(),
            has_failed: false,
            pids: Vec::new(),
            used: Instant::now(),
            client: None,
            captures: None,
            share: None,
            ending: false,
            is_over: false,
            from: 0,
        };
        Self { session, state: Mutex::new(state), telling: Mutex::default(), process: AsyncMutex::default() }
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

    /// Returns the prompts that wait, and whether they do so until somebody goes on with them.
    pub(crate) fn queue(&self) -> (Vec<Turn>, bool) {
        let state = self.state();
        (state.queue.iter().map(Turn::listed).collect(), state.is_held && !state.queue.is_empty())
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.state().pids.clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state().client.is_some()
    }

    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state();
        state.current.is_some() || state.answers_itself || !(state.queue.is_empty() || state.is_held)
    }

    /// Returns what only the stream knows so far.
    pub(crate) fn provisional(&self) -> Vec<MessageItem<'static>> {
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

    /// Works out what the session does.
    pub(crate) fn doing(&self, keeper: &Keeper) -> SessionState {
        let state = self.state();
        match (state.current.is_some() || state.answers_itself, state.has_failed) {
            (true, _) if keeper.attention.is_waiting(&self.session) => SessionState::Waiting,
            (true, _) => SessionState::Running,
            (false, true) => SessionState::Failed,
            (false, false) => SessionState::Idle,
        }
    }

    /// Says that there is something that other keepers of the store have to know.
    pub(crate) fn share_soon(&self) {
        if let Some(share) = &self.state().share {
            share.soon();
        }
    }

    /// Says that others wrote to the stored session.
    pub(crate) fn heard(&self) {
        if let Some(share) = &self.state().share {
            share.heard();
        }
    }

    /// Tells what the session does, if that is new.
    pub(crate) fn refresh_state(&self, keeper: &Keeper) {
        self.share_soon();
        // One after the other: of two at once the one that knows less may be the last to tell.
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.doing(keeper);
        let before = keeper.catalogue().find(Some(Home::Native), &self.session).map(|known| known.card.state);
        // One that was never sent anything is still about to begin.
        if before == Some(SessionState::Pending) && now == SessionState::Idle {
            return;
        }
        keeper.change(|catalogue| {
            let news = catalogue.set_state(&self.session, Some(now));
            if before != Some(now) {
                let data = json!({ "session_id": &*self.session, "state": now });
                keeper.hub.publish(&self.session, "session.state", data);
            }
            news
        });
    }

    /// Records what is there before a tool runs.
    pub(super) async fn capture_before(&self, agent: Option<&str>, tool: &str, call: &str, input: &Value) {
        let (captures, message) = self.captures();
        if let Some(captures) = captures {
            captures.before(message.as_deref(), agent, tool, call, input).await;
        }
    }

    /// A call that was captured before does not run, unless it is captured again.
    pub(super) fn forget_call(&self, call: &str) {
        if let (Some(captures), _) = self.captures() {
            captures.forget(call);
        }
    }

    pub(super) async fn capture_after(&self, call: &str) {
        let (captures, message) = self.captures();
        if let Some(captures) = captures {
            captures.after(message.as_deref(), call).await;
        }
    }

    /// Returns what records what calls left behind that are over with their turn, if there are any.
    pub(super) fn capture_of_what_is_over(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let captures = self.captures().0?;
        captures.end_with_turn().then_some(async move { captures.after_those_over().await })
    }

    /// Records what a tool left behind so far, which goes on in the background.
    pub(super) async fn capture_during(&self, call: &str) {
        let (captures, message) = self.captures();
        if let Some(captures) = captures {
            captures.during(message.as_deref(), call).await;
        }
    }

    /// Records what all that still ran left behind.
    pub(super) async fn capture_the_rest(&self) {
        let (captures, message) = self.captures();
        if let Some(captures) = captures {
            captures.after_all(message.as_deref()).await;
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

//! One session that is driven: its agent, its queue, and what its stream has said.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use rethread_claude::{ClaudeClient, Frame, FrameKind, MessageStream};
use rethread_store::{Claim, Lease, NewSession, Session};
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;

use super::agent::{self, Beginning};
use super::partial::Partial;
use super::turn::{Mode, Turn};
use crate::capture::{Captures, blocking};
use crate::card::{Home, SessionState};
use crate::item::MessageItem;
use crate::keeper::{COMPANION, Keeper};
use crate::merge::{Arrival, Merge, Told};
use crate::problem::Problem;

/// How long a lease holds unless it is renewed, and how often it is.
const LEASE: Duration = Duration::from_secs(60);
const RENEWAL: Duration = Duration::from_secs(20);
/// How often it is looked whether an agent has ended.
const ENDING: Duration = Duration::from_millis(25);
/// How many prompts may wait.
const QUEUE: usize = 100;

/// How a session is driven.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    pub(crate) session: String,
    pub(crate) cwd: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) permission_mode: Option<String>,
    pub(crate) model: Option<String>,
}

/// A session that is driven.
#[derive(Debug)]
pub(crate) struct Driver {
    state: Mutex<State>,
    /// Held while the agent is started or ended: there is never a second one.
    process: AsyncMutex<Process>,
}

#[derive(Debug)]
struct State {
    begin: Begin,
    merge: Merge,
    partial: Partial,
    queue: VecDeque<Turn>,
    /// The prompt that is being answered.
    current: Option<String>,
    /// Prompts that were taken, so that the same one twice is one.
    taken: Vec<String>,
    interrupting: bool,
    has_failed: bool,
    /// The process of the agent, and the one that guards it.
    pids: Vec<u32>,
    used: Instant,
    client: Option<Arc<ClaudeClient>>,
    captures: Option<Arc<Captures>>,
    /// The agent was told to end, and has not yet.
    ending: bool,
    /// Where the transcript ended when the agent was started.
    from: u64,
}

#[derive(Debug, Default)]
struct Process {
    companion: Option<Session>,
    lease: Option<Arc<Lease>>,
}

impl Driver {
    pub(crate) fn new(begin: Begin) -> Self {
        let state = State {
            begin,
            merge: Merge::default(),
            partial: Partial::default(),
            queue: VecDeque::new(),
            current: None,
            taken: Vec::new(),
            interrupting: false,
            has_failed: false,
            pids: Vec::new(),
            used: Instant::now(),
            client: None,
            captures: None,
            ending: false,
            from: 0,
        };
        Self { state: Mutex::new(state), process: AsyncMutex::default() }
    }

    pub(crate) fn begin(&self) -> Begin {
        self.state().begin.clone()
    }

    /// Returns the prompt that is being answered.
    pub(crate) fn message(&self) -> Option<String> {
        self.state().current.clone()
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
    pub(crate) fn take(&self, keeper: &Keeper, arrival: Arrival) {
        let mut state = self.state();
        let session = state.begin.session.clone();
        // Told under the lock, so that everybody hears it in the order in which it was merged.
        for told in state.merge.merge(arrival) {
            match told {
                Told::Upsert(item) => keeper.hub.publish(&session, "message.upsert", item.small()),
                Told::Dropped(uuid) => {
                    keeper.hub.publish(&session, "message.dropped", json!({ "uuid": uuid }))
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
        {
            let mut state = self.state();
            if state.taken.contains(&turn.client_message_id) {
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
                state.taken.push(turn.client_message_id.clone());
                state.queue.push_back(turn);
                drop(state);
                self.tell_queue(keeper);
                return Ok(());
            }
            state.taken.push(turn.client_message_id.clone());
            state.current = Some(turn.client_message_id.clone());
            (state.used, state.has_failed) = (Instant::now(), false);
        }
        let uuid = turn.client_message_id.clone();
        if let Err(problem) = self.begin_turn(keeper, &turn).await {
            let mut state = self.state();
            state.current = None;
            state.taken.retain(|taken| *taken != uuid);
            drop(state);
            self.refresh_state(keeper);
            return Err(problem);
        }
        Ok(())
    }

    async fn begin_turn(self: &Arc<Self>, keeper: &Arc<Keeper>, turn: &Turn) -> Result<(), Problem> {
        let client = self.client(keeper).await?;
        let session = self.begin().session;
        self.refresh_state(keeper);
        keeper.hub.publish(&session, "turn.started", json!({ "message": turn.client_message_id }));
        client.send(turn.prompt()).await.map_err(|error| {
            let code = "agent-failed";
            Problem::new(StatusCode::BAD_GATEWAY, code).detail(error.to_string()).retryable()
        })?;
        Ok(())
    }

    /// The same for a prompt that waited. Boxed, because a turn's end begins the next one.
    fn begin_next(
        self: Arc<Self>,
        keeper: Arc<Keeper>,
        next: Turn,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if let Err(problem) = self.begin_turn(&keeper, &next).await {
                self.fail(&keeper, problem.detail.as_deref().unwrap_or_default());
                self.refresh_state(&keeper);
            }
        })
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

    fn tell_queue(&self, keeper: &Keeper) {
        let state = self.state();
        let data = json!({ "items": state.queue });
        keeper.hub.publish(&state.begin.session, "queue.changed", data);
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

    /// Returns the agent, and starts it if it does not run.
    async fn client(self: &Arc<Self>, keeper: &Arc<Keeper>) -> Result<Arc<ClaudeClient>, Problem> {
        // One that is about to end has to be gone first.
        while self.state().ending {
            tokio::time::sleep(ENDING).await;
        }
        let mut process = self.process.lock().await;
        if let Some(client) = self.state().client.clone() {
            return Ok(client);
        }
        let agent = keeper.settings.agent.clone().ok_or_else(|| keeper.nothing_to_drive_with())?;
        self.hold(keeper, &mut process, Claim::IfFree).await?;
        let transcript = keeper.transcript_of(&self.begin().session);
        let from =
            transcript.as_ref().and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len());
        if let Some(companion) = &process.companion {
            let opened = Captures::open(keeper, companion, &self.begin().cwd).await;
            let opened = opened.inspect_err(|error| tracing::warn!(%error, "there will be no checkpoints"));
            self.state().captures = opened.ok().map(Arc::new);
        }
        let beginning = if transcript.is_some() { Beginning::Resumed } else { Beginning::New };
        let mut started = agent::start(keeper, self, &agent, beginning).await;
        if let Err(rethread_claude::Error::Ended { complaints, .. }) = &started
            && complaints.contains("No conversation")
            && keeper.put_away_empty(&self.begin().session)
        {
            started = agent::start(keeper, self, &agent, Beginning::New).await;
        }
        let client = match started {
            Ok(client) => Arc::new(client),
            Err(error) => {
                self.let_go(&mut process).await;
                let problem = Problem::new(StatusCode::BAD_GATEWAY, "agent-failed").detail(error.to_string());
                return Err(problem.hint("`rethread doctor` and `claude --version` say more").retryable());
            }
        };
        let pid = client
            .server_info()
            .ok()
            .and_then(|info| info["pid"].as_u64())
            .and_then(|pid| u32::try_from(pid).ok());
        let guard = pid.and_then(crate::peer::parent).filter(|parent| *parent != std::process::id());
        let stream = client.messages().map_err(|error| Problem::failed(&error))?;
        {
            let mut state = self.state();
            state.pids = [pid, guard].into_iter().flatten().collect();
            (state.client, state.from) = (Some(Arc::clone(&client)), from);
        }
        tokio::spawn(Arc::clone(self).read(Arc::clone(keeper), stream));
        Ok(client)
    }

    /// Becomes the one who drives the session.
    async fn hold(&self, keeper: &Arc<Keeper>, process: &mut Process, claim: Claim) -> Result<(), Problem> {
        if !keeper.store().backend().capabilities().keeps {
            return Ok(());
        }
        let begin = self.begin();
        let store = keeper.store().clone();
        let companion = blocking(async move {
            let id: rethread_store::SessionId = begin.session.parse()?;
            if let Some(session) = store.load(&id).await? {
                return Ok::<_, rethread_store::Error>(session);
            }
            let session = store.create(NewSession::at(&begin.cwd).id(id)).await?;
            let mark = |metadata: &mut rethread_store::Metadata| {
                metadata.extra.insert(COMPANION.into(), Value::Bool(true));
            };
            session.update(mark).await?;
            Ok(session)
        });
        let companion = companion.await?;
        if process.lease.is_none() || claim == Claim::TakeOver {
            let own = companion.clone();
            let lease = blocking(async move { own.lease("rethread keeper", LEASE, claim).await }).await?;
            process.lease = Some(Arc::new(lease));
        }
        process.companion = Some(companion);
        Ok(())
    }

    async fn let_go(&self, process: &mut Process) {
        if let Some(lease) = process.lease.take().and_then(Arc::into_inner) {
            // One that cannot be given back lapses.
            let _ = blocking(async move { lease.release().await }).await;
        }
    }

    /// Acquires the session without sending anything.
    pub(crate) async fn acquire(&self, keeper: &Arc<Keeper>, claim: Claim) -> Result<(), Problem> {
        let mut process = self.process.lock().await;
        self.hold(keeper, &mut process, claim).await
    }

    /// Keeps the lease alive; ends the agent if somebody took over.
    async fn renew(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        let lease = self.process.lock().await.lease.clone();
        let Some(lease) = lease else { return };
        let renewed = blocking(async move { lease.renew().await }).await;
        if let Err(error @ rethread_store::Error::Fenced { .. }) = renewed {
            tracing::warn!(%error, "somebody took over");
            self.process.lock().await.lease = None;
            let session = self.begin().session;
            keeper.hub.publish(
                &session,
                "session.state",
                json!({ "session_id": session, "taken_over": error.to_string() }),
            );
            self.end(keeper).await;
        }
    }

    /// Hears what the agent says, until it ends.
    async fn read(self: Arc<Self>, keeper: Arc<Keeper>, mut stream: MessageStream) {
        let mut renewal = tokio::time::interval(RENEWAL);
        renewal.tick().await;
        loop {
            tokio::select! {
                frame = stream.next_frame() => match frame {
                    Some(Ok(frame)) => self.hear(&keeper, &frame).await,
                    Some(Err(error)) => {
                        tracing::warn!(%error, "the agent said something odd");
                        if matches!(error, rethread_claude::Error::Ended { .. }) {
                            self.fail(&keeper, &error.to_string());
                            break;
                        }
                    }
                    None => break,
                },
                _ = renewal.tick() => {
                    let (own, keeper) = (Arc::clone(&self), Arc::clone(&keeper));
                    tokio::spawn(async move { own.renew(&keeper).await });
                }
            }
        }
        self.ended(&keeper).await;
    }

    async fn hear(self: &Arc<Self>, keeper: &Arc<Keeper>, frame: &Frame) {
        let session = self.begin().session;
        self.state().used = Instant::now();
        match frame.kind() {
            FrameKind::Assistant | FrameKind::User => {
                if let Some(item) = MessageItem::of_frame(frame.raw()) {
                    self.take(keeper, Arrival::Stream(item));
                }
            }
            FrameKind::StreamEvent => {
                let Ok(json) = frame.json() else { return };
                // A subagent's pieces belong to its own transcript.
                if json["parent_tool_use_id"].is_null()
                    && let Some(delta) = self.state().partial.take(&json["event"])
                {
                    keeper.hub.whisper(&session, "message.delta", delta);
                }
            }
            FrameKind::ToolProgress => {
                if let Ok(json) = frame.json() {
                    keeper.hub.whisper(&session, "tool.progress", json);
                }
            }
            FrameKind::System => {
                let Ok(json) = frame.json() else { return };
                match json["subtype"].as_str() {
                    Some("task_started") => keeper.hub.publish(&session, "subagent.started", json),
                    Some("task_notification") => keeper.hub.publish(&session, "subagent.completed", json),
                    _ => {}
                }
            }
            FrameKind::Result => {
                if let Ok(json) = frame.json() {
                    self.turn_ended(keeper, &json).await;
                }
            }
            _ => {}
        }
    }

    async fn turn_ended(self: &Arc<Self>, keeper: &Arc<Keeper>, result: &Value) {
        let (session, message, next) = {
            let mut state = self.state();
            let message = state.current.take();
            let interrupted = std::mem::take(&mut state.interrupting);
            state.partial = Partial::default();
            let aborted =
                result["terminal_reason"].as_str().is_some_and(|reason| reason.starts_with("aborted"));
            let kind = match (
                interrupted && (aborted || result["subtype"] != "success"),
                result["is_error"] == true,
            ) {
                (true, _) => "turn.interrupted",
                (false, true) => "turn.failed",
                (false, false) if result["subtype"] == "success" => "turn.completed",
                (false, false) => "turn.failed",
            };
            state.has_failed = kind == "turn.failed";
            let data = json!({
                "message": message, "subtype": result["subtype"], "result": result["result"], "errors": result["errors"],
                "usage": result["usage"], "total_cost_usd": result["total_cost_usd"], "duration_ms": result["duration_ms"],
            });
            let session = state.begin.session.clone();
            keeper.hub.publish(&session, kind, data);
            let next = state.queue.pop_front();
            if let Some(next) = &next {
                state.current = Some(next.client_message_id.clone());
            }
            (session, message, next)
        };
        tracing::info!(session, message, "a turn ended");
        self.refresh_state(keeper);
        if let Some(next) = next {
            self.tell_queue(keeper);
            // Not here: what the agent says must go on being heard.
            tokio::spawn(Arc::clone(self).begin_next(Arc::clone(keeper), next));
        }
    }

    /// Says that the turn came to nothing.
    fn fail(&self, keeper: &Keeper, why: &str) {
        let mut state = self.state();
        let (session, message) = (state.begin.session.clone(), state.current.take());
        let interrupted = std::mem::take(&mut state.interrupting);
        if message.is_none() {
            return;
        }
        state.has_failed = !interrupted;
        let kind = if interrupted { "turn.interrupted" } else { "turn.failed" };
        keeper.hub.publish(&session, kind, json!({ "message": message, "errors": [why] }));
    }

    /// Cleans up after an agent that has ended.
    async fn ended(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        self.fail(keeper, "the agent ended");
        let client = {
            let mut state = self.state();
            state.pids.clear();
            state.partial = Partial::default();
            state.ending = true;
            state.client.take()
        };
        if let Some(mut client) = client.and_then(Arc::into_inner)
            && let Err(error) = client.close().await
        {
            tracing::warn!(%error, "the agent did not end well");
        }
        self.read_the_rest(keeper).await;
        self.take(keeper, Arrival::Ended);
        let mut process = self.process.lock().await;
        self.let_go(&mut process).await;
        drop(process);
        self.state().ending = false;
        self.refresh_state(keeper);
    }

    /// Reads what the agent wrote, to its end: only what is not there either was never written.
    async fn read_the_rest(&self, keeper: &Arc<Keeper>) {
        let (session, from) = {
            let state = self.state();
            (state.begin.session.clone(), state.from)
        };
        let Some(path) = keeper.transcript_of(&session) else { return };
        let own = Arc::clone(keeper);
        let read = tokio::task::spawn_blocking(move || {
            let file = own.open_native(&path).ok()?;
            crate::routes::lines_since(&file, from).ok()
        });
        for item in read.await.ok().flatten().unwrap_or_default() {
            self.take(keeper, Arrival::Disk(item));
        }
    }

    /// Ends the agent if nobody has asked it anything for a while.
    pub(crate) async fn end_if_idle(self: &Arc<Self>, keeper: &Arc<Keeper>, patience: Duration) {
        let client = {
            let mut state = self.state();
            let is_idle =
                state.current.is_none() && state.queue.is_empty() && state.used.elapsed() >= patience;
            if !is_idle || state.client.is_none() || state.ending {
                return;
            }
            state.ending = true;
            state.client.clone()
        };
        self.close(keeper, client).await;
    }

    /// Ends the agent; what it does is interrupted.
    pub(crate) async fn end(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        let client = {
            let mut state = self.state();
            state.interrupting = state.current.is_some();
            state.queue.clear();
            state.ending |= state.client.is_some();
            state.client.clone()
        };
        self.close(keeper, client).await;
    }

    async fn close(self: &Arc<Self>, keeper: &Arc<Keeper>, client: Option<Arc<ClaudeClient>>) {
        let Some(client) = client else {
            let mut process = self.process.lock().await;
            self.let_go(&mut process).await;
            return;
        };
        if self.message().is_some() {
            // It is asked to stop first, so that what it has written down is whole.
            let _ = tokio::time::timeout(Duration::from_secs(3), client.interrupt()).await;
        }
        let _ = client.close_input();
        drop(client);
        for _ in 0..400 {
            if !self.state().ending {
                break;
            }
            tokio::time::sleep(ENDING).await;
        }
        self.refresh_state(keeper);
    }

    /// Works out what the session does, and tells if that is new.
    pub(crate) fn refresh_state(&self, keeper: &Keeper) {
        let (session, now) = {
            let state = self.state();
            let now = match (&state.current, state.has_failed) {
                (Some(_), _) if keeper.attention.is_waiting(&state.begin.session) => SessionState::Waiting,
                (Some(_), _) => SessionState::Running,
                (None, true) => SessionState::Failed,
                (None, false) => SessionState::Idle,
            };
            (state.begin.session.clone(), now)
        };
        let is_pending = keeper
            .catalogue()
            .find(Some(Home::Native), &session)
            .is_some_and(|known| known.card.state == SessionState::Pending && now == SessionState::Idle);
        if is_pending {
            return;
        }
        let before = keeper.catalogue().find(Some(Home::Native), &session).map(|known| known.card.state);
        let news = keeper.catalogue_mut().set_state(&session, Some(now));
        if before != Some(now) {
            keeper.hub.publish(&session, "session.state", json!({ "session_id": session, "state": now }));
        }
        keeper.tell(news);
    }

    /// Records what is there before a tool runs.
    pub(super) async fn capture_before(&self, _: &Keeper, tool: &str, call: &str, input: &Value) {
        let (captures, message) = self.captures();
        if let Some(captures) = captures {
            captures.before(message.as_deref(), tool, call, input).await;
        }
    }

    pub(super) async fn capture_after(&self, _: &Keeper, call: &str) {
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
        (state.captures.clone(), state.current.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What an agent says, until it ends.

use std::sync::Arc;
use std::time::Instant;

use rethread_claude::{Frame, FrameKind, MessageStream};
use serde_json::{Value, json};

use super::driver::{Driver, Interrupted};
use super::partial::Partial;
use crate::hub::Wake;
use crate::item::MessageItem;
use crate::keeper::Keeper;
use crate::merge::Arrival;

impl Driver {
    /// Hears what the agent says, until it ends.
    pub(super) async fn read(self: Arc<Self>, keeper: Arc<Keeper>, mut stream: MessageStream) {
        let mut renewal = tokio::time::interval(keeper.settings.lease / 6);
        renewal.tick().await;
        loop {
            tokio::select! {
                frame = stream.next_frame() => match frame {
                    Some(Ok(frame)) => self.hear(&keeper, &frame),
                    Some(Err(error)) => {
                        tracing::warn!(%error, "the agent said something odd");
                        if matches!(error, rethread_claude::Error::Ended { .. }) {
                            self.fail_given(&keeper, &error.to_string());
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

    fn hear(self: &Arc<Self>, keeper: &Arc<Keeper>, frame: &Frame) {
        self.state().used = Instant::now();
        match frame.kind() {
            FrameKind::Assistant | FrameKind::User => {
                if let Some(item) = MessageItem::of_frame(frame.raw()) {
                    self.take(keeper, Arrival::Stream(item), Wake::Now);
                }
            }
            FrameKind::StreamEvent => {
                let Ok(json) = frame.json() else { return };
                // A subagent's pieces belong to its own transcript.
                if !json["parent_tool_use_id"].is_null() {
                    return;
                }
                let (delta, begins) = {
                    let mut state = self.state();
                    let begins = json["event"]["type"] == "message_start"
                        && state.current.is_none()
                        && !std::mem::replace(&mut state.answers_itself, true);
                    (state.partial.take(&json["event"]), begins)
                };
                if begins {
                    self.refresh_state(keeper);
                }
                if json["event"]["type"] == "message_start" {
                    self.interrupt_what_goes_on();
                }
                if let Some(delta) = delta {
                    keeper.hub.whisper(&self.session, "message.delta", delta);
                }
            }
            FrameKind::ToolProgress => {
                if let Ok(json) = frame.json() {
                    keeper.hub.whisper(&self.session, "tool.progress", json);
                }
            }
            FrameKind::System => {
                let Ok(json) = frame.json() else { return };
                match json["subtype"].as_str() {
                    Some("status") if json["status"] == "requesting" => self.interrupt_what_goes_on(),
                    // A command in the background is a task as well, and no subagent.
                    Some("task_started") if json["task_type"] == "local_bash" => {
                        self.state().commands.extend(json["task_id"].as_str().map(str::to_owned));
                    }
                    Some("task_started") => keeper.hub.publish(&self.session, "subagent.started", json),
                    Some("task_notification") => {
                        if let Some(call) = json["tool_use_id"].as_str() {
                            // Not here: what the agent says must go on being heard.
                            let (own, call) = (Arc::clone(self), call.to_owned());
                            tokio::spawn(async move { own.capture_after(&call).await });
                        }
                        let task = json["task_id"].as_str().unwrap_or_default();
                        if !self.state().commands.remove(task) {
                            keeper.hub.publish(&self.session, "subagent.completed", json);
                        }
                    }
                    Some("background_tasks_changed") => {
                        self.state().in_background = json["tasks"].as_array().map_or(0, Vec::len);
                    }
                    _ => {}
                }
            }
            FrameKind::Result => {
                if let Ok(json) = frame.json() {
                    self.turn_ended(keeper, &json);
                }
            }
            _ => {}
        }
    }

    fn turn_ended(self: &Arc<Self>, keeper: &Arc<Keeper>, result: &Value) {
        let message = {
            let mut state = self.state();
            let is_answer = state.current.as_ref().is_some_and(|current| answers(result, &current.message));
            let message = state.current.take_if(|_| is_answer).map(|current| current.message);
            state.answers_itself = false;
            let interrupted = match &message {
                Some(message) if state.is_interrupting(message) => state.interrupting.take().is_some(),
                // What it did by itself was interrupted with the prompt that waits for its end.
                None if state.unwanted().is_some() => true,
                // What it does by itself ends with the next result, whosever that is.
                _ => state.interrupting.take_if(|interrupted| *interrupted == Interrupted::Own).is_some(),
            };
            state.partial = Partial::default();
            let aborted =
                result["terminal_reason"].as_str().is_some_and(|reason| reason.starts_with("aborted"));
            let is_success = result["subtype"] == "success";
            let kind = match (interrupted && (aborted || !is_success), result["is_error"] == true) {
                (true, _) => "turn.interrupted",
                (false, false) if is_success => "turn.completed",
                (false, _) => "turn.failed",
            };
            if message.is_some() {
                state.has_failed = kind == "turn.failed";
            }
            let data = json!({
                "message": message, "subtype": result["subtype"], "result": result["result"], "errors": result["errors"],
                "usage": result["usage"], "total_cost_usd": result["total_cost_usd"], "duration_ms": result["duration_ms"],
            });
            keeper.hub.publish(&self.session, kind, data);
            message
        };
        tracing::info!(session = &*self.session, turn = message, "a turn ended");
        if let Some(message) = &message {
            self.settle(keeper, message);
        }
        let Some(capture) = self.capture_of_what_is_over() else {
            self.refresh_state(keeper);
            return self.go_on(keeper);
        };
        // Whoever sees that it is idle may change files, and those are theirs.
        let (own, keeper) = (Arc::clone(self), Arc::clone(keeper));
        tokio::spawn(async move {
            capture.await;
            own.refresh_state(&keeper);
            own.go_on(&keeper);
        });
    }

    /// Says that the turn came to nothing, if the agent had it. One that is yet to be given goes to the next agent.
    fn fail_given(&self, keeper: &Keeper, why: &str) {
        if self.state().current.as_ref().is_some_and(|current| current.is_given) {
            self.fail(keeper, why);
        }
    }

    /// Cleans up after an agent that has ended.
    async fn ended(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        let client = {
            let mut state = self.state();
            (state.partial, state.in_background) = (Partial::default(), 0);
            state.commands.clear();
            state.answers_itself = false;
            state.interrupting.take_if(|interrupted| *interrupted == Interrupted::Own);
            state.ending = true;
            state.client.take()
        };
        self.fail_given(keeper, "the agent ended");
        if let Some(mut client) = client.and_then(Arc::into_inner)
            && let Err(error) = client.close().await
        {
            tracing::warn!(%error, "the agent did not end well");
        }
        tracing::info!(session = &*self.session, "an agent has ended");
        // What it did in the background ended with it.
        self.capture_the_rest().await;
        // Not before it is gone: as long as it is there it is ours, and nobody else's.
        self.state().pids.clear();
        self.read_the_rest(keeper).await;
        self.take(keeper, Arrival::Ended, Wake::Now);
        let mut process = self.process.lock().await;
        self.let_go(keeper, &mut process).await;
        drop(process);
        self.state().ending = false;
        self.refresh_state(keeper);
        self.go_on(keeper);
    }

    /// Reads what the agent wrote, to its end: only what is not there either was never written.
    async fn read_the_rest(&self, keeper: &Arc<Keeper>) {
        let from = {
            let state = self.state();
            // What came from the disk since it began need not be read again.
            state.from.max(state.merge.reached())
        };
        let Some(path) = keeper.transcript_of(&self.session) else { return };
        let own = Arc::clone(keeper);
        let read = tokio::task::spawn_blocking(move || {
            let file = own.open_native(&path).ok()?;
            crate::routes::lines_since(&file, from).ok()
        });
        for item in read.await.ok().flatten().unwrap_or_default() {
            self.take(keeper, Arrival::Disk(item), Wake::Soon);
        }
        keeper.hub.wake();
    }
}

/// Returns whether a result answers a prompt. An agent begins turns of its own when something in the background has ended,
/// and a prompt that comes meanwhile waits for theirs.
fn answers(result: &Value, message: &str) -> bool {
    let named =
        result["user_message_uuids"].as_array().into_iter().flatten().chain([&result["user_message_uuid"]]);
    let mut named = named.filter_map(Value::as_str).peekable();
    match named.peek() {
        Some(_) => named.any(|name| name == message),
        None => result["origin"]["kind"] != "task-notification",
    }
}

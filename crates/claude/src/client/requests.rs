//! Answers what the CLI asks of the host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::asker::Asker;
use super::outbox::Outbox;
use crate::aborted::Aborted;
use crate::elicitation::{ElicitationRequest, ElicitationResult};
use crate::error::Result;
use crate::frame::Frame;
use crate::hook::{HookEvent, HookInput, HookOutput};
use crate::in_process::{Bridge, Told};
use crate::options::{ClaudeAgentOptions, McpServer};
use crate::permission::{PermissionRequest, PermissionResult};

/// How many requests may wait for an answer at once. More than that is no agent's doing.
const MOST: usize = 1024;

/// The requests of the CLI's that wait for an answer of the host's.
///
/// Each gets exactly one answer, whatever becomes of the function that is to give it.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    options: Arc<ClaudeAgentOptions>,
    outbox: Outbox,
    asker: Asker,
    running: Arc<Mutex<HashMap<String, AbortHandle>>>,
    servers: Arc<Mutex<HashMap<String, Bridge>>>,
}

/// What the CLI asks.
#[derive(Deserialize)]
struct Incoming {
    request_id: String,
    request: Value,
}

/// As much as has to be known of a request.
#[derive(Deserialize)]
struct Numbered {
    request_id: String,
}

impl Requests {
    pub(super) fn new(options: Arc<ClaudeAgentOptions>, outbox: Outbox, asker: Asker) -> Self {
        Self { options, outbox, asker, running: Arc::default(), servers: Arc::default() }
    }

    /// Offers the tools of a server from now on, if it is one in this process.
    pub(super) fn serve(&self, name: &str, server: &McpServer) {
        let McpServer::InProcess(server) = server else { return };
        let (asker, limit, server_name) = (self.asker.clone(), self.options.control_timeout, name.to_owned());
        let to_cli = move |message: Value| -> Told {
            let request = json!({ "subtype": "mcp_message", "server_name": server_name, "message": message });
            let asker = asker.clone();
            Box::pin(async move { asker.ask("mcp_message", request, limit).await.map(drop) })
        };
        self.servers().insert(name.to_owned(), server.start(Arc::new(to_cli)));
    }

    /// Begins to answer a request. One that cannot be read is refused, so that the CLI does not wait for ever.
    pub(super) fn begin(&self, frame: &Frame) -> Result<()> {
        let Incoming { request_id, request } = match frame.read() {
            Ok(incoming) => incoming,
            Err(_) => {
                let Numbered { request_id } = frame.read()?;
                Reply::new(self.outbox.clone(), &request_id).refuse("the host cannot read this request");
                return Ok(());
            }
        };
        let mut reply = Reply::new(self.outbox.clone(), &request_id);
        let count = {
            let mut running = self.running();
            running.retain(|_, task| !task.is_finished());
            running.len()
        };
        if count >= MOST {
            reply.refuse("too many requests wait for an answer");
            return Ok(());
        }
        let options = Arc::clone(&self.options);
        let server = self.servers().get(request["server_name"].as_str().unwrap_or_default()).cloned();
        let task = tokio::spawn(async move {
            match request["subtype"].as_str().unwrap_or_default() {
                "can_use_tool" => decide(&options, request, reply).await,
                "hook_callback" => hook(&options, request, reply).await,
                "mcp_message" => tool(server, request, reply).await,
                "elicitation" => elicit(&options, request, reply).await,
                // Nobody is there to be shown a dialog, which is an answer, too.
                "request_user_dialog" => reply.send(json!({ "behavior": "cancelled" })),
                other => reply.refuse(&format!("this host does not answer {other:?}")),
            }
        });
        self.running().insert(request_id, task.abort_handle());
        Ok(())
    }

    /// Stops to work on an answer that is not needed any more.
    pub(super) fn withdraw(&self, frame: &Frame) -> Result<()> {
        let Numbered { request_id } = frame.read()?;
        if let Some(task) = self.running().remove(&request_id) {
            task.abort();
        }
        Ok(())
    }

    /// Stops to work on every answer.
    pub(super) fn abandon_all(&self) {
        for (_, task) in self.running().drain() {
            task.abort();
        }
        self.servers().clear();
    }

    fn servers(&self) -> std::sync::MutexGuard<'_, HashMap<String, Bridge>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn decide(options: &ClaudeAgentOptions, request: Value, mut reply: Reply) {
    let Some(callback) = options.can_use_tool.clone() else {
        return reply.refuse("nobody decides about tools here");
    };
    let denied = |why: &str| PermissionResult::deny(format!("the host did not decide: {why}"));
    let asked = request["input"].clone();
    reply.otherwise(denied("it was interrupted").to_json(&asked));
    let Some(request) = PermissionRequest::parse(&request) else {
        return reply.send(denied("it cannot read this request").to_json(&asked));
    };
    let decision = apart(options.permission_timeout, async move { callback.decide(request).await }).await;
    reply.send(decision.unwrap_or_else(denied).to_json(&asked));
}

async fn elicit(options: &ClaudeAgentOptions, request: Value, mut reply: Reply) {
    reply.otherwise(ElicitationResult::Cancel.into_json());
    let callback = options.on_elicitation.clone();
    // Nobody is there to be shown a form, which is an answer, too.
    let (Some(callback), Some(request)) = (callback, ElicitationRequest::parse(&request)) else {
        return reply.send(ElicitationResult::Decline.into_json());
    };
    let answer = apart(options.permission_timeout, async move { callback.answer(request).await }).await;
    reply.send(answer.unwrap_or(ElicitationResult::Cancel).into_json());
}

async fn hook(options: &ClaudeAgentOptions, mut request: Value, mut reply: Reply) {
    let id = request["callback_id"].as_str().unwrap_or_default().to_owned();
    let Some((event, matcher)) = options.hooks.find(&id).cloned() else {
        return reply.refuse(&format!("there is no hook {id:?}"));
    };
    let input = HookInput::parse(request["input"].take(), &event);
    // A hook that should have said whether a tool may run, and failed, has not said that it may.
    let failed = |reply: &mut Reply, why: &str| match event {
        HookEvent::PreToolUse => reply.send(HookOutput::deny(told(why)).into_json(event.as_str())),
        _ => reply.refuse(&told(why)),
    };
    if event == HookEvent::PreToolUse {
        reply.otherwise(HookOutput::deny(told("it was interrupted")).into_json(event.as_str()));
    }
    let Some(input) = input else { return failed(&mut reply, "it cannot read what happened") };
    let name = input.hook_event_name.clone();
    match apart(matcher.limit(), async move { matcher.call(input).await }).await {
        Ok(output) => reply.send(output.into_json(&name)),
        Err(why) => failed(&mut reply, why),
    }
}

fn told(why: &str) -> String {
    format!("the host's hook failed: {why}")
}

async fn tool(server: Option<Bridge>, mut request: Value, mut reply: Reply) {
    match server {
        Some(server) => reply.send(json!({ "mcp_response": server.call(request["message"].take()).await })),
        None => reply.refuse(&format!("there is no server {} in this process", request["server_name"])),
    }
}

/// Runs a callback in a task of its own, and says what was wrong if it gives no answer: a panic is that task's end and no
/// more, and one that blocks its thread keeps nobody from answering in its place.
async fn apart<T: Send + 'static>(
    limit: Duration,
    callback: impl Future<Output = T> + Send + 'static,
) -> Result<T, &'static str> {
    let mut task = Aborted(tokio::spawn(callback));
    match tokio::time::timeout(limit, &mut task.0).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err("it did not return"),
        Err(_) => Err("it took too long"),
    }
}

/// The one answer to a request. Dropped without one, because its function panicked or was cancelled, it still gives one.
struct Reply {
    outbox: Outbox,
    request_id: String,
    otherwise: Option<Value>,
    is_sent: bool,
}

impl Reply {
    fn new(outbox: Outbox, request_id: &str) -> Self {
        Self { outbox, request_id: request_id.to_owned(), otherwise: None, is_sent: false }
    }

    /// Sets what is answered if nothing else is.
    fn otherwise(&mut self, answer: Value) {
        self.otherwise = Some(answer);
    }

    fn send(&mut self, answer: Value) {
        self.put(json!({ "subtype": "success", "request_id": self.request_id, "response": answer }));
    }

    fn refuse(&mut self, why: &str) {
        self.put(json!({ "subtype": "error", "request_id": self.request_id, "error": why }));
    }

    fn put(&mut self, response: Value) {
        self.is_sent = true;
        // Without anybody to tell, the CLI has ended, and the request with it.
        drop(self.outbox.answer(&json!({ "type": "control_response", "response": response })));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_sent {
            return;
        }
        match self.otherwise.take() {
            Some(answer) => self.send(answer),
            None => self.refuse("the host's callback failed"),
        }
    }
}

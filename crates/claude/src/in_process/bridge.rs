//! From the CLI's messages to a server in this process, and back.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler, serve_server};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

type Incoming = rmcp::service::RxJsonRpcMessage<RoleServer>;
type Outgoing = rmcp::service::TxJsonRpcMessage<RoleServer>;

/// Requests that the server has not answered yet, by their ids.
type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>;

/// A server that runs in a task, and the way to it. It ends when this is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Bridge {
    to_server: mpsc::UnboundedSender<Incoming>,
    waiting: Waiting,
    limit: Duration,
}

impl Bridge {
    /// Starts a server.
    pub(super) fn start(handler: impl ServerHandler, limit: Duration) -> Self {
        let (to_server, incoming) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        let pipe = Pipe { incoming, itself: to_server.downgrade(), waiting: Arc::clone(&waiting) };
        tokio::spawn(async move {
            // A server that could not begin leaves its requests without answer, and they are told so.
            if let Ok(server) = serve_server(handler, pipe).await {
                drop(server.waiting().await);
            }
        });
        Self { to_server, waiting, limit }
    }

    /// Passes a message of the CLI's on, and returns the answer.
    pub(crate) async fn call(&self, message: Value) -> Value {
        let id = message["id"].clone();
        let read = serde_json::from_value(message);
        let failed =
            |why: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": why } });
        let Ok(message) = read else { return failed("this is no message that a server of tools knows") };
        if id.is_null() {
            // A notification gets no answer, but the CLI waits for one.
            drop(self.to_server.send(message));
            return json!({ "jsonrpc": "2.0", "id": 0, "result": {} });
        }
        let (answer, answered) = oneshot::channel();
        let forgotten = Forgotten { waiting: &self.waiting, id: id.to_string() };
        forgotten.lock().insert(forgotten.id.clone(), answer);
        if self.to_server.send(message).is_err() {
            return failed("the server has ended");
        }
        match tokio::time::timeout(self.limit, answered).await {
            Ok(answer) => answer.unwrap_or_else(|_| failed("the server did not answer")),
            // It may have panicked, too, which nobody is told.
            Err(_) => failed("the server did not answer in time"),
        }
    }
}

/// Waits no longer for an answer when it is dropped.
struct Forgotten<'a> {
    waiting: &'a Waiting,
    id: String,
}

impl Forgotten<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Value>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.lock().remove(&self.id);
    }
}

/// What the server sees of the bridge.
struct Pipe {
    incoming: mpsc::UnboundedReceiver<Incoming>,
    /// The way back to the server, without keeping it alive.
    itself: mpsc::WeakUnboundedSender<Incoming>,
    waiting: Waiting,
}

impl Transport<RoleServer> for Pipe {
    type Error = Infallible;

    fn send(&mut self, item: Outgoing) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let answer = serde_json::to_value(item).unwrap_or_default();
        let id = answer["id"].to_string();
        let is_answer = answer.get("method").is_none();
        let waiting = if is_answer {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
        } else {
            self.refuse(&answer["id"]);
            None
        };
        if let Some(waiting) = waiting {
            // The CLI may have given up meanwhile.
            drop(waiting.send(answer));
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}

impl Pipe {
    /// Tells the server that nobody does what it asks of its client. A notification has no id, and gets no answer.
    fn refuse(&self, id: &Value) {
        let why = json!({ "code": -32601, "message": "this client answers no requests" });
        let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": why });
        if let (false, Some(itself), Ok(refusal)) =
            (id.is_null(), self.itself.upgrade(), serde_json::from_value(refusal))
        {
            // It may have ended meanwhile.
            drop(itself.send(refusal));
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

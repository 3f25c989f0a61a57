//! From the CLI's messages to a server in this process, and back.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler, serve_server};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;

type Incoming = rmcp::service::RxJsonRpcMessage<RoleServer>;
type Outgoing = rmcp::service::TxJsonRpcMessage<RoleServer>;

/// Requests that the server has not answered yet, by their ids.
type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>;

/// Tells the CLI something that a server says of its own accord.
pub(crate) type ToCli = Arc<dyn Fn(Value) -> Told + Send + Sync>;

/// That the CLI was told.
pub(crate) type Told = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A server that runs in a task, and the way to it. It ends when this is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Bridge {
    to_server: mpsc::UnboundedSender<Incoming>,
    waiting: Waiting,
    limit: Duration,
}

impl Bridge {
    /// Starts a server.
    pub(super) fn start(handler: impl ServerHandler, limit: Duration, to_cli: ToCli) -> Self {
        let (to_server, incoming) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        let pipe = Pipe { incoming, to_cli, waiting: Arc::clone(&waiting) };
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
        let is_request = message.get("method").is_some() && !id.is_null();
        let read = serde_json::from_value(message);
        let failed =
            |why: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": why } });
        let Ok(message) = read else { return failed("this is no message that a server of tools knows") };
        if !is_request {
            // A notification gets no answer, nor does an answer to what the server asked, but the CLI waits for one.
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
    to_cli: ToCli,
    waiting: Waiting,
}

impl Transport<RoleServer> for Pipe {
    type Error = Error;

    fn send(&mut self, item: Outgoing) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let message = serde_json::to_value(item).unwrap_or_default();
        if message.get("method").is_some() {
            return (self.to_cli)(message);
        }
        let waiting =
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&message["id"].to_string());
        if let Some(waiting) = waiting {
            // The CLI may have given up meanwhile.
            drop(waiting.send(message));
        }
        Box::pin(std::future::ready(Ok(())))
    }

    async fn receive(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

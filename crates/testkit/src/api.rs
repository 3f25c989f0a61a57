//! A Messages API on the loopback that answers as the prompts themselves say.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::script::{HALF, Reply};
use crate::{http, stream};

/// One request that was made.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where to.
    pub path: String,
    /// What it carried, by names in small letters.
    pub headers: BTreeMap<String, String>,
    /// What was asked.
    pub body: Value,
}

/// A scripted Messages API.
#[derive(Debug)]
pub struct ScriptedApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    answers: AtomicUsize,
    is_over: AtomicBool,
}

impl ScriptedApi {
    /// Starts it on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::<Shared>::default());
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if own.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let own = Arc::clone(&own);
                // A caller that leaves in the middle is part of many tests.
                thread::spawn(move || drop(own.serve(&connection)));
            }
        });
        Self { address, shared }
    }

    /// Returns where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests for messages so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until that many requests for messages were made.
    pub fn wait_for(&self, count: usize) {
        // Long, for machines that have a lot to do; only a test that fails waits to its end.
        for _ in 0..18_000 {
            if self.requests().len() >= count {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("only {} of {count} requests came", self.requests().len());
    }
}

impl Drop for ScriptedApi {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The listener looks at the flag when somebody comes.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn serve(&self, mut connection: &TcpStream) -> std::io::Result<()> {
        let Some(incoming) = http::read(connection)? else { return Ok(()) };
        // What was sent as half a character may come back as such, which no reader of JSON takes here.
        let body = String::from_utf8_lossy(&incoming.body).replace(HALF, "\\ufffd");
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        if !incoming.path.starts_with("/v1/messages") || incoming.path.contains("count_tokens") {
            http::begin(connection, 200, "application/json")?;
            return connection.write_all(br#"{"input_tokens":100}"#);
        }
        let reply = Reply::to(&body["messages"]);
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let (model, streams) = (body["model"].clone(), body["stream"] == true);
        let request = Request { path: incoming.path, headers: incoming.headers, body };
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        thread::sleep(Duration::from_millis(reply.wait_ms));
        while reply.gate.as_ref().is_some_and(|file| !file.try_exists().unwrap_or(true))
            && !self.is_over.load(Ordering::Relaxed)
        {
            thread::sleep(Duration::from_millis(5));
        }
        if let Some(status) = reply.status.filter(|_| reply.concerns(&model)) {
            http::begin(connection, status, "application/json")?;
            let kind = if status == 529 { "overloaded_error" } else { "api_error" };
            let error = json!({ "type": "error", "error": { "type": kind, "message": "as scripted" } });
            return connection.write_all(error.to_string().as_bytes());
        }
        if !streams {
            http::begin(connection, 200, "application/json")?;
            return connection.write_all(stream::whole(&reply, &model, number).to_string().as_bytes());
        }
        http::begin(connection, 200, "text/event-stream")?;
        for event in stream::events(&reply, &model, number) {
            connection.write_all(event.as_bytes())?;
        }
        if reply.hang {
            // Until the caller leaves, or dies.
            connection.read_to_end(&mut Vec::new())?;
        }
        connection.shutdown(Shutdown::Both)
    }
}

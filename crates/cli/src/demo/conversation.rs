//! What the demo's agent says and hears: lines over pipes, and a transcript as Claude Code would write it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

/// Both ends of the pipes, and the transcript.
pub(super) struct Conversation<R, W> {
    input: R,
    output: W,
    transcript: PathBuf,
    session: String,
    cwd: String,
    parent: Option<String>,
    requests: u64,
    /// The hooks that the host wants to be called, by event.
    pub(super) hooks: Value,
}

/// Somebody wants the turn to end.
pub(super) struct Interrupted;

pub(super) type Said<T> = Result<T, Interrupted>;

impl<R: BufRead, W: Write> Conversation<R, W> {
    pub(super) fn new(input: R, output: W, transcript: PathBuf, session: String, cwd: String) -> Self {
        let text = fs::read_to_string(&transcript).unwrap_or_default();
        let last = text.lines().rev().find_map(|line| {
            let entry: Value = serde_json::from_str(line).ok()?;
            entry["uuid"].as_str().map(str::to_owned)
        });
        Self { input, output, transcript, session, cwd, parent: last, requests: 0, hooks: Value::Null }
    }

    /// Returns the next thing that the host says which is no answer; nothing at the end.
    pub(super) fn hear(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            match said["type"].as_str() {
                Some("control_request") => drop(self.serve(&said)),
                Some("user") => return Some(said),
                _ => {}
            }
        }
    }

    /// Answers a request of the host's; returns whether it was to stop.
    fn serve(&mut self, said: &Value) -> bool {
        let request = &said["request"];
        if request["subtype"] == "initialize" {
            self.hooks = request["hooks"].clone();
        }
        let response = json!({ "pid": std::process::id(), "commands": [], "models": [], "still_queued": [] });
        let response =
            json!({ "subtype": "success", "request_id": said["request_id"], "response": response });
        self.say(&json!({ "type": "control_response", "response": response }));
        request["subtype"] == "interrupt"
    }

    /// Asks the host, and waits for its answer. A host that is gone has said no.
    pub(super) fn ask(&mut self, request: Value) -> Said<Value> {
        self.requests += 1;
        let id = format!("demo-{}", self.requests);
        self.say(&json!({ "type": "control_request", "request_id": id, "request": request }));
        loop {
            let mut line = String::new();
            if self.input.read_line(&mut line).unwrap_or(0) == 0 {
                return Err(Interrupted);
            }
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            match said["type"].as_str() {
                Some("control_response") if said["response"]["request_id"] == id.as_str() => {
                    return Ok(said["response"]["response"].clone());
                }
                Some("control_request") if self.serve(&said) => {
                    self.say(&json!({ "type": "control_cancel_request", "request_id": id }));
                    return Err(Interrupted);
                }
                _ => {}
            }
        }
    }

    /// Says a line. Whoever does not listen any more has gone.
    pub(super) fn say(&mut self, frame: &Value) {
        let _ = writeln!(self.output, "{frame}").and_then(|()| self.output.flush());
    }

    /// Says a message and writes it down, under an id.
    pub(super) fn message(&mut self, role: &str, uuid: Option<String>, message: Value, is_said: bool) {
        let uuid = uuid.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        if is_said {
            self.say(&json!({ "type": role, "message": message, "parent_tool_use_id": null, "session_id": self.session, "uuid": uuid }));
        }
        let entry = json!({
            "parentUuid": self.parent, "isSidechain": false, "type": role, "message": message, "uuid": uuid,
            "timestamp": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(), "sessionId": self.session,
            "cwd": self.cwd, "version": "demo", "gitBranch": "demo", "userType": "external",
        });
        self.write(&entry);
        self.parent = Some(uuid);
    }

    /// Writes down what the session is called.
    pub(super) fn name(&self, name: &str) {
        self.write(&json!({ "type": "custom-title", "customTitle": name, "sessionId": self.session }));
    }

    /// Writes an entry to the transcript, with one call.
    fn write(&self, entry: &Value) {
        let folder = self.transcript.parent().map(fs::create_dir_all);
        let opened = OpenOptions::new().create(true).append(true).open(&self.transcript);
        // A demo whose folder is gone has ended.
        if let (Some(Ok(())), Ok(mut file)) = (folder, opened) {
            let _ = file.write_all(format!("{entry}\n").as_bytes());
        }
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    pub(super) fn cwd(&self) -> &str {
        &self.cwd
    }
}

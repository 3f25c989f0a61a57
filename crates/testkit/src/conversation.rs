//! A conversation with the CLI over its pipes, one JSON object a line.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

/// A running CLI that takes prompts on its standard input.
#[derive(Debug)]
pub struct Conversation {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Conversation {
    pub(crate) fn with(mut child: Child) -> Self {
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Sends a prompt under a uuid of the caller's.
    pub fn say(&mut self, uuid: &str, prompt: impl Display) {
        self.say_blocks(uuid, json!(prompt.to_string()));
    }

    /// Sends a prompt made of blocks, or of text.
    pub fn say_blocks(&mut self, uuid: &str, content: Value) {
        let message = json!({ "role": "user", "content": content });
        let line = json!({ "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "", "uuid": uuid });
        self.send(&line);
    }

    /// Sends a control request.
    pub fn control(&mut self, id: &str, request: Value) {
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
    }

    /// Sends any line.
    pub fn send(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("the conversation is open");
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Waits for the next line of a type.
    pub fn wait_for(&mut self, kind: &str) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it ended before it sent {kind}");
            let value: Value = serde_json::from_str(&line).unwrap_or_default();
            if value["type"] == kind {
                return value;
            }
        }
    }

    /// Kills the process, as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Says that nothing more will come, and waits for the end.
    pub fn close(mut self) -> i32 {
        drop(self.input.take());
        let mut rest = String::new();
        while self.output.read_line(&mut rest).is_ok_and(|length| length > 0) {
            rest.clear();
        }
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

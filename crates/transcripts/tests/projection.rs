//! What a conversation and a request to the API have in common: who said what, which tools were called and which
//! answered.
//!
//! Left out, on both sides: what the program puts in between (reminders, attachments, messages of the role `system`),
//! answers that no model gave, notifications of background tasks, and calls without an answer, which the CLI does not
//! send. What it sends only to close a turn that was cut off (`Continue from where you left off.`, `No response
//! requested.`, `[Tool call interrupted…`) is left out of the request, and so are API errors, which old versions send.
//! White space at the end of a text does not count: the CLI adds some.

use std::collections::HashSet;

use rethread_testkit::PROBE;
use rethread_transcripts::{Block, Chain, Role, Transcript};
use serde_json::Value;

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Text(String, String),
    Thought(String),
    Call(String),
    Answer(String),
    Image,
}

/// Returns what a chain says.
pub(crate) fn of_chain(transcript: &Transcript, chain: &Chain) -> Vec<Said> {
    let mut said = Vec::new();
    let mut reader = transcript.read(chain);
    while let Some(entry) = reader.next() {
        let entry = entry.unwrap();
        let role = entry.role();
        if role == Role::System || entry.is_synthetic() {
            continue;
        }
        for block in entry.view().blocks() {
            said.extend(match block {
                Block::Text(text) => text_of(&role.to_string(), &text),
                Block::Thinking(thought) => Some(Said::Thought(thought.into_owned())),
                Block::ToolUse { id, .. } => Some(Said::Call(id.into_owned())),
                Block::ToolResult { tool_use_id, .. } => Some(Said::Answer(tool_use_id.into_owned())),
                _ => Some(Said::Image),
            });
        }
    }
    paired(said)
}

/// Returns what a request says.
pub(crate) fn of_request(messages: &[Value]) -> Vec<Said> {
    let mut said = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        let blocks = match &message["content"] {
            Value::String(text) => vec![serde_json::json!({ "type": "text", "text": text })],
            blocks => blocks.as_array().unwrap().clone(),
        };
        for block in blocks {
            let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
            said.extend(match &*text("type") {
                "text" if queued(&text("text")).is_some() => queued(&text("text")),
                _ if role == "system" => None,
                "text" => text_of(role, &text("text")),
                "thinking" => Some(Said::Thought(text("thinking"))),
                "tool_use" => Some(Said::Call(text("id"))),
                "tool_result" if block["content"].to_string().contains("[Tool call interrupted") => None,
                "tool_result" => Some(Said::Answer(text("tool_use_id"))),
                _ => Some(Said::Image),
            });
            // Some versions put what was sent meanwhile behind a tool's answer.
            if let Some((_, reminder)) = text("content").split_once("\n\n<system-reminder>\n") {
                said.extend(queued(reminder));
            }
        }
    }
    paired(said)
}

fn text_of(role: &str, text: &str) -> Option<Said> {
    let program = ["<system-reminder>", "<task-notification>"];
    let is_program = program.iter().any(|begin| text.starts_with(begin));
    let is_closing = match role {
        "assistant" => text == "No response requested." || text.starts_with("API Error:"),
        _ => text == "Continue from where you left off.",
    };
    (!is_program && !is_closing && !text.starts_with(PROBE))
        .then(|| Said::Text(role.to_owned(), text.trim_end().to_owned()))
}

/// Returns the prompt that a message of the role `system`, or a reminder of an older version, tells of.
fn queued(text: &str) -> Option<Said> {
    let text = text.strip_prefix("<system-reminder>\n").unwrap_or(text);
    let text = text.strip_prefix("The user sent a new message while you were working:\n")?;
    let (prompt, _) = text.split_once("\n\n")?;
    Some(Said::Text("user".into(), prompt.to_owned()))
}

/// Keeps only calls that were answered, and answers to a call.
fn paired(said: Vec<Said>) -> Vec<Said> {
    let calls: HashSet<String> =
        said.iter().filter_map(|it| if let Said::Call(id) = it { Some(id.clone()) } else { None }).collect();
    let answers: HashSet<String> = said
        .iter()
        .filter_map(|it| if let Said::Answer(id) = it { Some(id.clone()) } else { None })
        .collect();
    let kept = |it: &Said| match it {
        Said::Call(id) => answers.contains(id),
        Said::Answer(id) => calls.contains(id),
        _ => true,
    };
    said.into_iter().filter(kept).collect()
}

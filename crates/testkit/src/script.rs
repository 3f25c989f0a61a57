//! Prompts that carry the replies they are to be answered with, so that the API needs no state of its own.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What stands around a script within a prompt; nobody types these.
const OPEN: char = '⟦';
const CLOSE: char = '⟧';

/// What stands for half a character within a reply: the first unit of an emoji that was cut in two. No text of Rust's can
/// hold one, but the model's can, and so the API sends one where this is.
pub const HALF_A_CHARACTER: char = '\u{e000}';

/// Half a character as JSON can write it.
pub(crate) const HALF: &str = "\\ud83d";

/// A prompt, and what the model will answer to it, request after request.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    text: String,
    replies: Vec<Reply>,
}

/// What the model answers to one request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) blocks: Vec<Block>,
    /// Fails with this status instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Fails only if the model is one of those that have this in their name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// How long it thinks before it answers.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) wait_ms: u64,
    /// Thinks until this file is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gate: Option<PathBuf>,
    /// Stops in the middle of the last block until the caller leaves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hang: bool,
    /// Ends in the middle of the last block.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cut: bool,
}

/// One block of an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Block {
    Text(String),
    Thinking(String),
    Tool { name: String, input: Value },
}

impl Prompt {
    /// A prompt that is answered "Done.", unless it says otherwise.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), replies: Vec::new() }
    }

    /// Adds the answer to the next request.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    /// Adds a text as the answer to the next request.
    pub fn says(self, text: impl Into<String>) -> Self {
        self.reply(Reply::text(text))
    }

    /// Adds a tool call as the answer to the next request.
    pub fn calls(self, tool: &str, input: Value) -> Self {
        self.reply(Reply::default().tool(tool, input))
    }
}

impl Reply {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and(Block::Text(text.into()))
    }

    /// An answer that fails with a status.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Fails so only if a model with this in its name was asked; others answer.
    pub fn of_model(self, part: &str) -> Self {
        Self { model: Some(part.to_owned()), ..self }
    }

    /// Returns whether the status is that of a model.
    pub(crate) fn concerns(&self, model: &Value) -> bool {
        let asked = model.as_str().unwrap_or_default();
        self.model.as_deref().is_none_or(|part| asked.contains(part))
    }

    /// Adds a thought.
    pub fn thinking(self, thought: impl Into<String>) -> Self {
        self.and(Block::Thinking(thought.into()))
    }

    /// Adds a text.
    pub fn says(self, text: impl Into<String>) -> Self {
        self.and(Block::Text(text.into()))
    }

    /// Adds a tool call.
    pub fn tool(self, name: &str, input: Value) -> Self {
        self.and(Block::Tool { name: name.into(), input })
    }

    /// Takes its time before it answers.
    pub fn after_milliseconds(self, wait_ms: u64) -> Self {
        Self { wait_ms, ..self }
    }

    /// Answers once a file is there.
    pub fn once(self, file: impl Into<PathBuf>) -> Self {
        Self { gate: Some(file.into()), ..self }
    }

    /// Stops in the middle, and never comes to its end.
    pub fn hanging(self) -> Self {
        Self { hang: true, ..self }
    }

    /// Ends in the middle, as a connection that breaks does.
    pub fn cut(self) -> Self {
        Self { cut: true, ..self }
    }

    fn and(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Returns the answer to a request: the script of the newest prompt that has one, at the place that the answers
    /// since then give.
    pub(crate) fn to(messages: &Value) -> Self {
        let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        let scripted = messages.iter().enumerate().rev().find_map(|(at, message)| {
            let replies = (message["role"] == "user").then(|| script_in(&message["content"])).flatten()?;
            Some((at, replies))
        });
        let (at, mut replies) = scripted.unwrap_or_default();
        let answered = messages.iter().skip(at).filter(|message| message["role"] == "assistant").count();
        if answered < replies.len() { replies.swap_remove(answered) } else { Reply::text("Done.") }
    }
}

/// Returns the last script of a message.
fn script_in(content: &Value) -> Option<Vec<Reply>> {
    match content {
        Value::String(text) => {
            let (_, script) = text.rsplit_once(OPEN)?;
            let (script, _) = script.rsplit_once(CLOSE)?;
            Some(serde_json::from_str(script).expect("a prompt holds a script or none"))
        }
        // A tool's result may quote the script of a prompt that was not meant for us.
        Value::Array(blocks) => blocks.iter().rev().find_map(|block| script_in(&block["text"])),
        _ => None,
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.replies.is_empty() {
            return Ok(());
        }
        let script = serde_json::to_string(&self.replies).map_err(|_| fmt::Error)?;
        // A nested script would end this one, were its brackets not written as escapes.
        let script = script.replace(OPEN, "\\u27e6").replace(CLOSE, "\\u27e7");
        write!(f, " {OPEN}{script}{CLOSE}")
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_answered_by_the_newest_script_at_its_own_place() {
        let nested = Prompt::new("look").says("found").to_string();
        let prompt = Prompt::new("go").calls("Agent", json!({ "prompt": nested })).says("end");
        let user = json!({ "role": "user", "content": [{ "type": "text", "text": prompt.to_string() }] });
        let first = Reply::to(&json!([user]));
        let Block::Tool { input, .. } = &first.blocks[0] else { panic!("{first:?}") };
        assert_eq!(input["prompt"], nested);

        let called = json!({ "role": "assistant", "content": [] });
        let result = json!({ "role": "user", "content": [{ "type": "tool_result", "content": nested }] });
        let second = Reply::to(&json!([user, called, result]));
        assert!(matches!(&second.blocks[..], [Block::Text(text)] if text == "end"), "{second:?}");
        let third = Reply::to(&json!([user, called, result, called]));
        assert!(matches!(&third.blocks[..], [Block::Text(text)] if text == "Done."), "{third:?}");
    }
}

//! Pieces of messages.

use serde::Deserialize;
use serde_json::Value;

/// A piece of a message, as the API streams it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StreamEvent {
    /// The event, as the API sends it.
    pub event: Value,
    /// Its UUID.
    pub uuid: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The tool call that runs the subagent that says this; `None` for the agent itself.
    pub parent_tool_use_id: Option<String>,
}

impl StreamEvent {
    /// Returns the text that it adds, if it adds text.
    pub fn text(&self) -> Option<&str> {
        self.event["delta"]["text"].as_str()
    }
}

//! What the model is told.

use serde::Deserialize;
use serde_json::Value;

use super::ContentBlock;

/// A message to the model: what a tool answered, or a prompt that is replayed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UserMessage {
    /// The message.
    pub message: UserContent,
    /// The same UUID as in the transcript.
    pub uuid: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The tool call that runs the subagent that is told this; `None` for the agent itself.
    pub parent_tool_use_id: Option<String>,
    /// What the tool answered, in a form of its own.
    pub tool_use_result: Option<Value>,
    /// Whether this is a prompt of the host's that is acknowledged.
    #[serde(rename = "isReplay")]
    pub is_replay: bool,
    /// Whether Claude Code itself wrote it.
    #[serde(rename = "isSynthetic")]
    pub is_synthetic: bool,
}

/// What a message to the model holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UserContent {
    /// Its blocks. A message that is only text has one.
    #[serde(deserialize_with = "text_or_blocks")]
    pub content: Vec<ContentBlock>,
}

fn text_or_blocks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentBlock>, D::Error> {
    let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?.get();
    let read = match raw.starts_with('"') {
        true => serde_json::from_str(raw).map(|text| vec![ContentBlock::Text { text }]),
        false => serde_json::from_str(raw),
    };
    read.map_err(serde::de::Error::custom)
}

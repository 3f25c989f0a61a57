//! What the model says.

use serde::Deserialize;

use super::ContentBlock;

/// A message of the model, or as much of it as this frame brings: one frame for every block.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AssistantMessage {
    /// The message.
    pub message: ApiMessage,
    /// The same UUID as in the transcript.
    pub uuid: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The tool call that runs the subagent that says this; `None` for the agent itself.
    pub parent_tool_use_id: Option<String>,
    /// The kind of failure, when Claude Code itself says why the API did not answer.
    pub error: Option<String>,
    /// The subagent that says this.
    pub agent_id: Option<String>,
}

/// A message as the API has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ApiMessage {
    /// The message's id: the same in all frames that bring a part of it.
    pub id: Option<String>,
    /// The model; `<synthetic>` if Claude Code speaks in its place.
    pub model: Option<String>,
    /// Its blocks.
    pub content: Vec<ContentBlock>,
    /// Why the model stopped, once it is known.
    pub stop_reason: Option<String>,
    /// What it took. It is repeated in every frame of a message.
    pub usage: Option<Usage>,
}

impl AssistantMessage {
    /// Returns all its text.
    pub fn text(&self) -> String {
        let texts = self.message.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// What a request took, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// What was sent and not cached.
    pub input_tokens: u64,
    /// What was said.
    pub output_tokens: u64,
    /// What was sent and is cached now.
    #[serde(deserialize_with = "or_zero")]
    pub cache_creation_input_tokens: u64,
    /// What was sent and came from the cache.
    #[serde(deserialize_with = "or_zero")]
    pub cache_read_input_tokens: u64,
}

fn or_zero<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

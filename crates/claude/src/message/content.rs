//! The blocks that messages are made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A block of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// What the model thought.
    Thinking {
        /// The thought.
        thinking: String,
        /// What proves that it is the model's own.
        #[serde(default)]
        signature: String,
    },
    /// A tool call.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// What it is called with.
        input: Value,
    },
    /// What a tool answered.
    ToolResult {
        /// The call.
        tool_use_id: String,
        /// The answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<ToolResultContent>,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
    /// An image.
    Image {
        /// Where it is from: `{"type": "base64", "media_type": …, "data": …}`.
        source: Value,
    },
    /// A document.
    Document {
        /// Where it is from.
        source: Value,
    },
    /// One that this crate does not know, as it came.
    #[serde(untagged)]
    Other(Value),
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToolResultContent {
    /// A text.
    Text(String),
    /// Texts, images and the like.
    Blocks(Vec<Value>),
}

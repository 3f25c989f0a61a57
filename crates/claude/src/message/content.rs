//! The blocks that messages are made of.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A block of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

/// The blocks that are known, read in one go.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Known {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        content: Option<ToolResultContent>,
        is_error: Option<bool>,
    },
    Image {
        source: Value,
    },
    Document {
        source: Value,
    },
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(match serde_json::from_str(raw) {
            Ok(Known::Text { text }) => Self::Text { text },
            Ok(Known::Thinking { thinking, signature }) => Self::Thinking { thinking, signature },
            Ok(Known::ToolUse { id, name, input }) => Self::ToolUse { id, name, input },
            Ok(Known::ToolResult { tool_use_id, content, is_error }) => {
                Self::ToolResult { tool_use_id, content, is_error }
            }
            Ok(Known::Image { source }) => Self::Image { source },
            Ok(Known::Document { source }) => Self::Document { source },
            Err(_) => Self::Other(serde_json::from_str(raw).map_err(serde::de::Error::custom)?),
        })
    }
}

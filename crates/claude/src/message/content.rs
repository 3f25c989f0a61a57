//! The blocks that messages are made of.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Generates the blocks, and beside them those that are known: were the last one a variant to be read like the others, every
/// block would be taken apart before it is read, which takes half as long again.
macro_rules! blocks {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[$field:meta])+ $key:ident: $type:ty,)+ },)+) => {
        /// A block of a message.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ContentBlock {
            $($(#[doc = $doc])+ $name { $($(#[$field])+ $key: $type,)+ },)+
            /// One that this crate does not know, as it came.
            #[serde(untagged)]
            Other(Value),
        }

        /// The blocks that are known, read in one go.
        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Known {
            $($name { $($(#[$field])+ $key: $type,)+ },)+
        }

        impl From<Known> for ContentBlock {
            fn from(known: Known) -> Self {
                match known {
                    $(Known::$name { $($key,)+ } => Self::$name { $($key,)+ },)+
                }
            }
        }
    };
}

blocks! {
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
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let known = serde_json::from_str::<Known>(raw).map(Self::from);
        known.or_else(|_| serde_json::from_str(raw).map(Self::Other)).map_err(serde::de::Error::custom)
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_is_written_as_it_was_read_known_or_not() {
        for block in [
            json!({ "type": "text", "text": "a" }),
            json!({ "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "ls" } }),
            json!({ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "image" }], "is_error": true }),
            json!({ "type": "quite_new", "of": ["any", 7] }),
            json!({ "type": "text", "text": 7 }),
            json!("no block at all"),
        ] {
            let read: ContentBlock = serde_json::from_str(&block.to_string()).unwrap();
            let is_known = !matches!(read, ContentBlock::Other(_));
            assert_eq!(json!(read), block);
            assert_eq!(is_known, block["text"] != 7 && block["of"].is_null() && block.is_object());
        }
    }
}

//! What the host says to the agent.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::message::ContentBlock;

/// A message to the agent: text, images and other blocks, under a UUID that the transcript keeps.
///
/// ```
/// use rethread_claude::Prompt;
///
/// let prompt = Prompt::from("What is wrong in this picture?").image("image/png", "iVBORw0KGgo…");
/// println!("{}", prompt.uuid());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    blocks: Vec<ContentBlock>,
    uuid: String,
    fields: Map<String, Value>,
}

impl Prompt {
    /// Returns a prompt of any blocks, under a new UUID.
    pub fn new(blocks: impl IntoIterator<Item = ContentBlock>) -> Self {
        Self { blocks: blocks.into_iter().collect(), uuid: Uuid::new_v4().to_string(), fields: Map::new() }
    }

    /// Returns it with another UUID. A UUID that the session has seen already is acknowledged, and not run again.
    pub fn with_uuid(mut self, uuid: impl Into<String>) -> Self {
        self.uuid = uuid.into();
        self
    }

    /// Returns it with a text added.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(ContentBlock::Text { text: text.into() })
    }

    /// Returns it with an image added, whose bytes are given as base64.
    pub fn image(self, media_type: &str, base64: impl Into<String>) -> Self {
        let source = json!({ "type": "base64", "media_type": media_type, "data": base64.into() });
        self.block(ContentBlock::Image { source })
    }

    /// Returns it with a block added.
    pub fn block(mut self, block: ContentBlock) -> Self {
        self.blocks.push(block);
        self
    }

    /// Returns it with a field that this crate does not know, for example `priority`.
    pub fn with(mut self, field: impl Into<String>, value: Value) -> Self {
        self.fields.insert(field.into(), value);
        self
    }

    /// Returns it as a text that is delivered as written: no `@path` is filled in, and no `/command` is run.
    pub fn verbatim(self) -> Self {
        self.with("client_composed", json!(true))
    }

    /// Returns the UUID that the message has in the transcript: what to rewind to, or to resume at.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// Returns the line that the CLI reads.
    pub(crate) fn to_line(&self) -> Value {
        // A command such as `/compact` is only seen as one if the content is nothing but text.
        let content = match &self.blocks[..] {
            [ContentBlock::Text { text }] => json!(text),
            blocks => json!(blocks),
        };
        let message = json!({ "role": "user", "content": content });
        let mut line = self.fields.clone();
        line.insert("type".into(), json!("user"));
        line.insert("message".into(), message);
        line.insert("parent_tool_use_id".into(), Value::Null);
        line.insert("session_id".into(), json!(""));
        line.insert("uuid".into(), json!(self.uuid));
        Value::Object(line)
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self::new([ContentBlock::Text { text: text.into() }])
    }
}

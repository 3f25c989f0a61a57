//! What the host says to the agent.

use serde_json::{Value, json};
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
}

impl Prompt {
    /// Returns a prompt of any blocks, under a new UUID.
    pub fn new(blocks: impl IntoIterator<Item = ContentBlock>) -> Self {
        Self { blocks: blocks.into_iter().collect(), uuid: Uuid::new_v4().to_string() }
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
        json!({ "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "", "uuid": self.uuid })
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self::new([ContentBlock::Text { text: text.into() }])
    }
}

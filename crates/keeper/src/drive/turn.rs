//! Something that a person says to a session.

use rethread_claude::{ContentBlock, Prompt};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A part of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// What kind it is, such as `image/png`.
        media_type: String,
        /// Its bytes, as base64.
        data: String,
    },
}

/// What to do if a turn runs already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Refuse.
    #[default]
    Start,
    /// Wait for its end.
    Queue,
}

/// A prompt that is to be sent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Turn {
    /// The id that the message gets; the same twice is one message.
    pub(crate) client_message_id: String,
    /// What is said.
    pub(crate) parts: Vec<Part>,
}

impl Turn {
    /// Returns it as the agent gets it.
    pub(crate) fn prompt(&self) -> Prompt {
        let block = |part: &Part| match part {
            Part::Text { text } => ContentBlock::Text { text: text.clone() },
            Part::Image { media_type, data } => ContentBlock::Image {
                source: serde_json::json!({ "type": "base64", "media_type": media_type, "data": data }),
            },
        };
        Prompt::new(self.parts.iter().map(block)).with_uuid(&self.client_message_id)
    }

    /// Returns whether there is anything in it.
    pub(crate) fn says_something(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::Image { .. } => true,
        })
    }
}

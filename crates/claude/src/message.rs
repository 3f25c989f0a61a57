//! What the CLI says, typed.

mod assistant;
mod content;
mod other;
mod result;
mod stream_event;
mod system;
mod user;

use serde::Deserialize;

use crate::error::Result;
use crate::frame::{Frame, FrameKind};

pub use assistant::{ApiMessage, AssistantMessage, Usage};
pub use content::{ContentBlock, ToolResultContent};
pub use other::{CommandLifecycle, RateLimitEvent, ToolProgress, TranscriptMirror};
pub use result::{ErrorSubtype, PermissionDenial, ResultDetails, ResultMessage};
pub use stream_event::StreamEvent;
pub use system::{McpServerState, SystemMessage, TaskFrame};
pub use user::{UserContent, UserMessage};

/// What the CLI says.
///
/// Whatever this crate does not know, or cannot make sense of, is an [`Other`](Message::Other) that holds the frame as it
/// came: a new version of Claude Code never makes a stream fail.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// About the session.
    System(SystemMessage),
    /// Of the model: one block of a message, when that block is complete.
    Assistant(AssistantMessage),
    /// To the model: what a tool answered, or a prompt that is replayed.
    User(UserMessage),
    /// The end of a turn.
    Result(ResultMessage),
    /// A piece of a message, with [`include_partial_messages`](crate::ClaudeAgentOptions::include_partial_messages).
    StreamEvent(StreamEvent),
    /// What became of a prompt.
    CommandLifecycle(CommandLifecycle),
    /// Lines of the transcript, with [`session_mirror`](crate::ClaudeAgentOptions::session_mirror).
    TranscriptMirror(TranscriptMirror),
    /// How long a tool has been running.
    ToolProgress(ToolProgress),
    /// How much may still be asked.
    RateLimit(RateLimitEvent),
    /// Anything else.
    Other(Frame),
}

impl Message {
    /// Reads a frame. Fails only if it is no JSON.
    pub(crate) fn of(frame: &Frame) -> Result<Self> {
        match Self::typed(frame) {
            Some(message) => Ok(message),
            None => {
                let _: serde::de::IgnoredAny = frame.read()?;
                Ok(Self::Other(frame.clone()))
            }
        }
    }

    fn typed(frame: &Frame) -> Option<Self> {
        fn read<'a, T: Deserialize<'a>>(frame: &'a Frame) -> Option<T> {
            frame.read().ok()
        }
        Some(match frame.kind() {
            FrameKind::System => Self::System(SystemMessage::of(frame)?),
            FrameKind::Assistant => Self::Assistant(read(frame)?),
            FrameKind::User => Self::User(read(frame)?),
            FrameKind::Result => Self::Result(ResultMessage::of(frame)?),
            FrameKind::StreamEvent => Self::StreamEvent(read(frame)?),
            FrameKind::CommandLifecycle => Self::CommandLifecycle(read(frame)?),
            FrameKind::TranscriptMirror => Self::TranscriptMirror(read(frame)?),
            FrameKind::ToolProgress => Self::ToolProgress(read(frame)?),
            FrameKind::RateLimitEvent => Self::RateLimit(read(frame)?),
            _ => return None,
        })
    }
}

//! One line of the CLI's: its bytes, and what kind it is.

use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::message::Message;

/// One line that the CLI sent, kept as it came. What it says is worked out when somebody asks.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    bytes: Bytes,
    kind: FrameKind,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameKind {
    /// About the session.
    System,
    /// Of the model.
    Assistant,
    /// To the model: a prompt, or what a tool answered.
    User,
    /// The end of a turn.
    Result,
    /// A piece of a message.
    StreamEvent,
    /// What became of a prompt.
    CommandLifecycle,
    /// Lines of the transcript.
    TranscriptMirror,
    /// How long a tool has been running.
    ToolProgress,
    /// How much may still be asked.
    RateLimitEvent,
    /// A request of the CLI's to the host. A client answers it itself.
    ControlRequest,
    /// An answer to a request of the host's. A client takes it itself.
    ControlResponse,
    /// A request of the CLI's that needs no answer any more. A client takes it itself.
    ControlCancelRequest,
    /// That the CLI still lives.
    KeepAlive,
    /// Something that this crate does not know.
    Other,
}

impl FrameKind {
    fn of(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "assistant" => Self::Assistant,
            "user" => Self::User,
            "result" => Self::Result,
            "stream_event" => Self::StreamEvent,
            "command_lifecycle" => Self::CommandLifecycle,
            "transcript_mirror" => Self::TranscriptMirror,
            "tool_progress" => Self::ToolProgress,
            "rate_limit_event" => Self::RateLimitEvent,
            "control_request" => Self::ControlRequest,
            "control_response" => Self::ControlResponse,
            "control_cancel_request" => Self::ControlCancelRequest,
            "keep_alive" => Self::KeepAlive,
            _ => Self::Other,
        }
    }
}

impl Frame {
    /// Reads a line, without its end. Fails only if the line is no JSON object at all.
    ///
    /// A line that names its type first, as the CLI's do, is not read any further until somebody asks.
    pub fn parse(line: impl Into<Bytes>) -> Result<Self> {
        let mut bytes = line.into();
        if let Some(name) = first_type(&bytes) {
            return Ok(Self { kind: FrameKind::of(name), bytes });
        }
        if std::str::from_utf8(&bytes).is_err() {
            bytes = String::from_utf8_lossy(&bytes).into_owned().into();
        }
        #[derive(Deserialize)]
        struct Typed<'a> {
            #[serde(borrow)]
            r#type: Option<&'a RawValue>,
        }
        let typed: Result<Typed<'_>, _> = serde_json::from_slice(&bytes);
        match typed {
            Ok(typed) if bytes.trim_ascii_start().starts_with(b"{") => {
                let name = typed.r#type.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
                let kind = FrameKind::of(name.as_deref().unwrap_or_default());
                Ok(Self { kind, bytes })
            }
            _ => Err(bad(&bytes)),
        }
    }

    /// Returns what it is.
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// Returns its bytes, as they came, without the end of the line.
    pub fn raw(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns all it says.
    pub fn json(&self) -> Result<Value> {
        self.read()
    }

    /// Returns what it says, typed; [`Message::Other`] if this crate does not know it. Fails only if it is no JSON.
    pub fn message(&self) -> Result<Message> {
        Message::of(self)
    }

    /// Reads it as a type.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        serde_json::from_slice(&self.bytes).map_err(|_| bad(&self.bytes))
    }

    /// Returns the frame with what is no UTF-8 replaced, so that the rest can be read.
    pub(crate) fn mended(&self) -> Self {
        Self { bytes: String::from_utf8_lossy(&self.bytes).into_owned().into(), kind: self.kind }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({})", String::from_utf8_lossy(&self.bytes))
    }
}

/// Returns the type of a line that begins with it.
fn first_type(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let name = &rest[..memchr::memchr(b'"', rest)?];
    let is_plain = name.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
    if is_plain && line.last() == Some(&b'}') { std::str::from_utf8(name).ok() } else { None }
}

fn bad(line: &[u8]) -> Error {
    let beginning = &line[..line.len().min(200)];
    Error::BadFrame { line: String::from_utf8_lossy(beginning).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_object_is_a_frame_and_anything_else_is_none() {
        for line in ["{}", r#"{"type":7}"#, r#"{"a":1,"type":"system"}"#, r#"{"type":"quite new"}"#, " {} "] {
            assert!(Frame::parse(line).is_ok(), "{line}");
        }
        for line in ["", "[]", "null", "7", r#""text""#, "{", "Debug: hello", r#"{"type":"user""#] {
            assert!(Frame::parse(line).is_err(), "{line}");
        }
    }
}

//! One line of the CLI's: its bytes, and what kind it is.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::lenient;
use crate::mend::mend;
use crate::message::Message;

/// One line that the CLI sent, kept as it came. What it says is worked out when somebody asks.
#[derive(Clone)]
pub struct Frame {
    bytes: Bytes,
    kind: FrameKind,
    /// The same without what no reader takes, once that was needed; `None` if there is nothing of the kind.
    mended: OnceLock<Option<String>>,
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Frame {}

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
            return Ok(Self::new(FrameKind::of(name), bytes));
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
                Ok(Self::new(kind, bytes))
            }
            _ => Err(bad(&bytes)),
        }
    }

    fn new(kind: FrameKind, bytes: Bytes) -> Self {
        Self { kind, bytes, mended: OnceLock::new() }
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

    /// Reads it as a type. What is no UTF-8, and halves of characters, are replaced if it cannot be read otherwise.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        let read = serde_json::from_slice(&self.bytes).ok();
        let read = read.or_else(|| serde_json::from_str(self.mended()?).ok());
        read.ok_or_else(|| bad(&self.bytes))
    }

    /// Reads it as a type whose fields all have a default, without those that do not fit. Fails only if it is no JSON.
    pub(crate) fn read_leniently<T: DeserializeOwned>(&self) -> Result<T> {
        self.read().or_else(|error| {
            let whole = self.mended().or_else(|| std::str::from_utf8(&self.bytes).ok());
            whole.and_then(lenient::from_str).ok_or(error)
        })
    }

    fn mended(&self) -> Option<&str> {
        self.mended.get_or_init(|| mend(&self.bytes)).as_deref()
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
    fn what_holds_half_a_character_is_read_with_the_rest_of_it() {
        let line = b"{\"type\":\"user\",\"a\":\"\\ud83d\",\"b\":\"\\ud83d\\ude00\xff\"}";
        let frame = Frame::parse(line.to_vec()).unwrap();
        assert_eq!(
            frame.json().unwrap(),
            serde_json::json!({ "type": "user", "a": "\u{fffd}", "b": "\u{1f600}\u{fffd}" })
        );
        assert_eq!(frame.raw(), line);
    }

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

//! An event as it goes over the wire: made once, and the same bytes for every client.

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

/// The longest head that a frame of a WebSocket has.
const HEAD: usize = 10;
/// The whole of a text, in one frame.
const TEXT: u8 = 0x81;

/// A text frame of a WebSocket as servers send it: without a mask, so that it is the same for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    bytes: Bytes,
    /// How long its head is; the text follows.
    head: u8,
}

/// What is known of an event before it has its number.
#[derive(Debug)]
pub(crate) struct Draft {
    /// `,"ts":…,"topic":…,"type":…,"data":…}`
    rest: Vec<u8>,
}

#[derive(Serialize)]
struct Rest<'a, T> {
    ts: Timestamp,
    topic: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    data: T,
}

impl Draft {
    /// Does most of the work before anybody has to wait for it.
    pub(crate) fn new(topic: &str, kind: &str, data: impl Serialize) -> Self {
        let rest = Rest { ts: Timestamp::now(), topic, kind, data };
        let mut rest = serde_json::to_vec(&rest).unwrap_or_else(|_| b"{}".to_vec());
        if let Some(first) = rest.first_mut() {
            *first = b',';
        }
        Self { rest }
    }

    /// Gives the event its number, if it has one.
    pub(crate) fn number(self, epoch: &str, seq: Option<u64>) -> Frame {
        let mut frame = begin(64 + epoch.len() + self.rest.len());
        frame.extend_from_slice(b"{\"v\":1,\"epoch\":\"");
        frame.extend_from_slice(epoch.as_bytes());
        frame.push(b'"');
        if let Some(seq) = seq {
            frame.extend_from_slice(b",\"seq\":");
            frame.extend_from_slice(seq.to_string().as_bytes());
        }
        frame.extend_from_slice(&self.rest);
        end(frame)
    }
}

impl Frame {
    /// Frames a text.
    pub(crate) fn text(text: &str) -> Self {
        let mut frame = begin(text.len());
        frame.extend_from_slice(text.as_bytes());
        end(frame)
    }

    /// Returns all of it, head included.
    pub(crate) fn whole(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the text.
    pub(crate) fn json(&self) -> &[u8] {
        &self.bytes[usize::from(self.head)..]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Leaves room for the head, which is not known before the length is.
fn begin(capacity: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD + capacity);
    frame.resize(HEAD, 0);
    frame
}

fn end(mut frame: Vec<u8>) -> Frame {
    let length = frame.len() - HEAD;
    let mut head = [0; HEAD];
    let used = match (u16::try_from(length), length) {
        (_, 0..=125) => {
            (head[0], head[1]) = (TEXT, length as u8);
            2
        }
        (Ok(length), _) => {
            (head[0], head[1]) = (TEXT, 126);
            head[2..4].copy_from_slice(&length.to_be_bytes());
            4
        }
        (Err(_), _) => {
            (head[0], head[1]) = (TEXT, 127);
            head[2..].copy_from_slice(&(length as u64).to_be_bytes());
            10
        }
    };
    frame[HEAD - used..HEAD].copy_from_slice(&head[..used]);
    Frame { bytes: Bytes::from(frame).slice(HEAD - used..), head: used as u8 }
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};

    use super::*;

    #[test]
    fn a_frame_of_any_length_is_read_as_its_text() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 200_000] {
            let text = "ü".repeat(length / 2) + if length % 2 == 1 { "x" } else { "" };
            let frame = Frame::text(&text);
            assert_eq!((frame.json(), frame.json().len()), (text.as_bytes(), length));
            let wire = std::io::Cursor::new(frame.whole().to_vec());
            let mut socket = WebSocket::from_raw_socket(wire, Role::Client, None);
            assert_eq!(socket.read().unwrap().to_text().unwrap(), text, "{length}");
        }
    }

    #[test]
    fn an_event_is_json_with_its_number_or_without_one() {
        let draft = || Draft::new("session:a", "message.upsert", serde_json::json!({ "text": "\"ü\"" }));
        for seq in [None, Some(7)] {
            let frame = draft().number("e", seq);
            let json: serde_json::Value = serde_json::from_slice(frame.json()).unwrap();
            assert_eq!(
                (json["v"].as_u64(), json["seq"].as_u64(), &json["epoch"]),
                (Some(1), seq, &"e".into())
            );
            assert_eq!((&json["topic"], &json["data"]["text"]), (&"session:a".into(), &"\"ü\"".into()));
        }
    }
}

//! An event as it goes over the wire: made once, and the same bytes for every client.

use std::ops::Range;

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
    /// Others may stand in the same memory.
    memory: Bytes,
    from: usize,
    to: usize,
    /// How long its head is; the text follows.
    head: u8,
}

/// Events of one topic and one kind before they have their numbers, one after the other in one buffer.
#[derive(Debug)]
pub(crate) struct Drafts {
    /// Each draft leaves room for what comes before it once its number is known.
    bytes: Vec<u8>,
    /// Where each draft ends.
    ends: Vec<usize>,
    /// `,"ts":…,"topic":…,"type":…,"data":`, the same for all of them.
    before_data: Vec<u8>,
}

#[derive(Serialize)]
struct BeforeData<'a> {
    ts: Timestamp,
    topic: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// Room for the head of a frame, `{"v":1,"epoch":"…"`, and `,"seq":` with the longest number.
const ROOM: usize = HEAD + 16 + EPOCH + 1 + 7 + 20;
/// The longest name of a keeper's life.
const EPOCH: usize = 36;

impl Drafts {
    pub(crate) fn new(topic: &str, kind: &str) -> Self {
        let before = BeforeData { ts: Timestamp::now(), topic, kind };
        let mut before_data = serde_json::to_vec(&before).unwrap_or_default();
        if let Some(first) = before_data.first_mut() {
            *first = b',';
        }
        before_data.pop();
        before_data.extend_from_slice(b",\"data\":");
        Self { bytes: Vec::new(), ends: Vec::new(), before_data }
    }

    /// Does most of the work before anybody has to wait for it.
    pub(crate) fn add(&mut self, data: impl Serialize) {
        let begin = self.bytes.len();
        self.bytes.resize(begin + ROOM, 0);
        self.bytes.extend_from_slice(&self.before_data);
        let at = self.bytes.len();
        if serde_json::to_writer(&mut self.bytes, &data).is_err() {
            self.bytes.truncate(at);
            self.bytes.extend_from_slice(b"null");
        }
        self.bytes.push(b'}');
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Gives the events their numbers, beginning with this one, if they have any; returns their frames, which stand one
    /// after the other in one piece of memory.
    pub(crate) fn number(self, epoch: &str, first: Option<u64>) -> Vec<Frame> {
        let Self { mut bytes, ends, .. } = self;
        let (mut begin, mut written) = (0, 0);
        let mut places = Vec::with_capacity(ends.len());
        for (count, end) in ends.into_iter().enumerate() {
            let mut before = Vec::with_capacity(ROOM);
            before.extend_from_slice(b"{\"v\":1,\"epoch\":\"");
            before.extend_from_slice(epoch.as_bytes());
            before.push(b'"');
            if let Some(first) = first {
                before.extend_from_slice(b",\"seq\":");
                before.extend_from_slice(itoa::Buffer::new().format(first + count as u64).as_bytes());
            }
            let rest = begin + ROOM..end;
            let (head, used) = head(before.len() + rest.len());
            // What is written never reaches what is still to be moved: the room is as long as the longest beginning.
            let at = written;
            bytes[written..written + used].copy_from_slice(&head[..used]);
            written += used;
            bytes[written..written + before.len()].copy_from_slice(&before);
            written += before.len();
            let length = rest.len();
            bytes.copy_within(rest, written);
            written += length;
            places.push((at..written, used as u8));
            begin = end;
        }
        bytes.truncate(written);
        bytes.shrink_to_fit();
        let memory = Bytes::from(bytes);
        let frame = |(place, head): (Range<usize>, u8)| Frame {
            memory: memory.clone(),
            from: place.start,
            to: place.end,
            head,
        };
        places.into_iter().map(frame).collect()
    }
}

impl Frame {
    /// Frames a text.
    pub(crate) fn text(text: &str) -> Self {
        let (head, used) = head(text.len());
        let bytes = [&head[..used], text.as_bytes()].concat();
        Self { from: 0, to: bytes.len(), memory: Bytes::from(bytes), head: used as u8 }
    }

    /// Returns all of it, head included.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.memory[self.from..self.to]
    }

    /// Returns the text.
    pub(crate) fn json(&self) -> &[u8] {
        &self.whole()[usize::from(self.head)..]
    }

    pub(crate) fn len(&self) -> usize {
        self.to - self.from
    }

    /// Takes in a frame that stands right behind this one, for writing both at once; returns whether it does.
    pub(crate) fn join(&mut self, next: &Frame) -> bool {
        let is_next = self.memory.as_ptr() == next.memory.as_ptr() && self.to == next.from;
        if is_next {
            self.to = next.to;
        }
        is_next
    }
}

/// Returns the head of a frame with a text of this length, and how long that head is.
fn head(length: usize) -> ([u8; HEAD], usize) {
    let mut head = [0; HEAD];
    head[0] = TEXT;
    let used = match (u16::try_from(length), length) {
        (_, 0..=125) => {
            head[1] = length as u8;
            2
        }
        (Ok(length), _) => {
            head[1] = 126;
            head[2..4].copy_from_slice(&length.to_be_bytes());
            4
        }
        (Err(_), _) => {
            head[1] = 127;
            head[2..].copy_from_slice(&(length as u64).to_be_bytes());
            10
        }
    };
    (head, used)
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
    fn events_are_json_with_their_numbers_or_without_and_stand_one_after_the_other() {
        for first in [None, Some(1), Some(98), Some(u64::MAX - 3)] {
            let mut drafts = Drafts::new("session:\"a", "message.upsert");
            let texts = ["\"ü\"".to_owned(), String::new(), "x".repeat(200), "y".repeat(70_000)];
            texts.iter().for_each(|text| drafts.add(serde_json::json!({ "text": text })));
            let frames = drafts.number("00000000-0000-4000-8000-000000000000", first);
            for (count, (frame, text)) in frames.iter().zip(&texts).enumerate() {
                let json: serde_json::Value = serde_json::from_slice(frame.json()).unwrap();
                let seq = first.map(|first| first + count as u64);
                assert_eq!((json["v"].as_u64(), json["seq"].as_u64()), (Some(1), seq));
                assert_eq!(
                    (&json["topic"], &json["data"]["text"]),
                    (&"session:\"a".into(), &text.as_str().into())
                );
                let wire = std::io::Cursor::new(frame.whole().to_vec());
                let mut socket = WebSocket::from_raw_socket(wire, Role::Client, None);
                assert_eq!(socket.read().unwrap().to_text().unwrap().as_bytes(), frame.json());
            }
            let follow = |pair: &[Frame]| pair[0].whole().as_ptr_range().end == pair[1].whole().as_ptr();
            assert!(frames.windows(2).all(follow));
        }
    }
}

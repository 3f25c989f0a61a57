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

/// Events of one topic and one kind, one after the other in one buffer, just as they go over the wire if nothing else
/// happens before them: then nothing of them is moved or written again.
#[derive(Debug)]
pub(crate) struct Drafts {
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The number that the first one is expected to get, if they have any.
    first: Option<u64>,
    /// `{"v":1,"epoch":…`, and `,"seq":` where numbers follow.
    before_number: Vec<u8>,
    /// `,"ts":…,"topic":…,"type":…,"data":`, the same for all of them.
    before_data: Vec<u8>,
}

/// Where a frame stands.
#[derive(Clone, Debug)]
struct Place {
    whole: Range<usize>,
    head: u8,
}

#[derive(Serialize)]
struct BeforeData<'a> {
    ts: Timestamp,
    topic: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// How long the head of most frames is.
const USUAL_HEAD: usize = 4;
/// How much room a single event gets at first.
const USUAL: usize = 512;

impl Drafts {
    pub(crate) fn new(epoch: &str, first: Option<u64>, topic: &str, kind: &str) -> Self {
        let before = BeforeData { ts: Timestamp::now(), topic, kind };
        let mut before_data = serde_json::to_vec(&before).unwrap_or_default();
        if let Some(first) = before_data.first_mut() {
            *first = b',';
        }
        before_data.pop();
        before_data.extend_from_slice(b",\"data\":");
        let seq = if first.is_some() { ",\"seq\":" } else { "" };
        let before_number = format!("{{\"v\":1,\"epoch\":\"{epoch}\"{seq}").into_bytes();
        Self { bytes: Vec::with_capacity(USUAL), places: Vec::new(), first, before_number, before_data }
    }

    /// Makes room for this many bytes.
    pub(crate) fn room(mut self, bytes: usize) -> Self {
        self.bytes.reserve(bytes);
        self
    }

    /// Does most of the work before anybody has to wait for it.
    pub(crate) fn add(&mut self, data: impl Serialize) {
        self.add_with(|bytes| {
            let at = bytes.len();
            if serde_json::to_writer(&mut *bytes, &data).is_err() {
                bytes.truncate(at);
                bytes.extend_from_slice(b"null");
            }
        });
    }

    /// Adds what writes itself.
    pub(crate) fn add_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let Self { bytes, places, first, before_number, before_data } = self;
        let begin = bytes.len();
        bytes.extend_from_slice(&[0; USUAL_HEAD]);
        bytes.extend_from_slice(before_number);
        if let Some(first) = first {
            let number = *first + places.len() as u64;
            bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        bytes.extend_from_slice(before_data);
        write(bytes);
        bytes.push(b'}');
        places.push(close(bytes, begin));
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Gives the events their numbers, beginning with this one, if they have any; returns their frames, which stand one
    /// after the other in one piece of memory.
    pub(crate) fn number(self, first: Option<u64>) -> Vec<Frame> {
        let Self { mut bytes, places, .. } = match (self.first, first) {
            (Some(expected), Some(first)) if expected != first => self.renumbered(expected, first),
            _ => self,
        };
        // They are kept for long: room that nobody uses is given back, unless it is hardly any.
        if bytes.capacity() - bytes.len() > bytes.len() / 4 {
            bytes.shrink_to_fit();
        }
        let memory = Bytes::from(bytes);
        let frame = |Place { whole, head }: Place| Frame {
            memory: memory.clone(),
            from: whole.start,
            to: whole.end,
            head,
        };
        places.into_iter().map(frame).collect()
    }

    /// Writes the frames again, with other numbers: something happened before them.
    fn renumbered(self, expected: u64, first: u64) -> Self {
        let Self { bytes, places, before_number, before_data, .. } = self;
        let (mut other, mut others) = (Vec::with_capacity(bytes.len() + places.len()), Vec::new());
        for (count, Place { whole, head }) in (0..).zip(places) {
            let (mut old, mut new) = (itoa::Buffer::new(), itoa::Buffer::new());
            let skipped = usize::from(head) + before_number.len() + old.format(expected + count).len();
            let begin = other.len();
            other.extend_from_slice(&[0; USUAL_HEAD]);
            other.extend_from_slice(&before_number);
            other.extend_from_slice(new.format(first + count).as_bytes());
            other.extend_from_slice(&bytes[whole][skipped..]);
            others.push(close(&mut other, begin));
        }
        Self { bytes: other, places: others, first: Some(first), before_number, before_data }
    }
}

/// Gives the frame at the end of a buffer its head; most have the length that there is room for.
fn close(bytes: &mut Vec<u8>, begin: usize) -> Place {
    let (head, used) = head(bytes.len() - begin - USUAL_HEAD);
    match used {
        USUAL_HEAD => bytes[begin..begin + USUAL_HEAD].copy_from_slice(&head[..USUAL_HEAD]),
        _ => drop(bytes.splice(begin..begin + USUAL_HEAD, head[..used].iter().copied())),
    }
    Place { whole: begin..bytes.len(), head: used as u8 }
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
        let numbers = [None, Some(1), Some(98), Some(u64::MAX - 3)];
        // Numbers that were expected, and others because something else happened first.
        for (expected, first) in numbers.iter().flat_map(|one| numbers.map(|other| (*one, other))) {
            if expected.is_some() != first.is_some() {
                continue;
            }
            let epoch = "00000000-0000-4000-8000-000000000000";
            let mut drafts = Drafts::new(epoch, expected, "session:\"a", "message.upsert");
            let texts = ["\"ü\"".to_owned(), String::new(), "x".repeat(200), "y".repeat(70_000)];
            texts.iter().for_each(|text| drafts.add(serde_json::json!({ "text": text })));
            let frames = drafts.number(first);
            assert_eq!(frames.len(), texts.len());
            for (count, (frame, text)) in frames.iter().zip(&texts).enumerate() {
                let json: serde_json::Value = serde_json::from_slice(frame.json()).unwrap();
                let seq = first.map(|first| first + count as u64);
                assert_eq!((json["v"].as_u64(), json["seq"].as_u64()), (Some(1), seq));
                assert_eq!((&json["epoch"], &json["type"]), (&epoch.into(), &"message.upsert".into()));
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

    /// Short ones and very long ones have heads of other lengths, which are moved into place.
    #[test]
    fn events_of_any_length_are_whole_frames() {
        for length in [0, 1, 2, 40, 65_400, 65_480, 65_536, 200_000] {
            let mut drafts = Drafts::new("e", None, "t", "k");
            (0..3).for_each(|_| drafts.add("x".repeat(length)));
            let frames = drafts.number(None);
            let wire: Vec<u8> = frames.iter().flat_map(|frame| frame.whole().to_vec()).collect();
            let mut socket = WebSocket::from_raw_socket(std::io::Cursor::new(wire), Role::Client, None);
            for frame in &frames {
                assert_eq!(socket.read().unwrap().to_text().unwrap().as_bytes(), frame.json(), "{length}");
            }
        }
    }
}

//! A session to be damaged: always the same bytes, so that an input means the same in every process.

use bytes::Bytes;
use rethread_store::backend::Position;
use rethread_store::{Entry, Kind, Line, Stamp};

/// How many records the sample has.
pub const RECORDS: Position = 14;

/// Returns the lines of a conversation with a branch, notes and a group, without their newlines. Every entry holds so
/// many bytes more.
pub fn lines(padding: usize) -> Vec<Vec<u8>> {
    (0..RECORDS).map(|position| line(position, "", padding).as_bytes().to_vec()).collect()
}

/// Returns one record; a mark makes it that of another session.
pub fn line(position: Position, mark: &str, padding: usize) -> Line {
    let (parent, depth, kind, left) = match position {
        0 => (None, 0, Kind::Note, 0),
        1 => (None, 1, Kind::Entry, 0),
        5 => (Some(4), 4, Kind::Note, 0),
        6 => (Some(4), 5, Kind::Entry, 2),
        7 => (Some(6), 6, Kind::Entry, 1),
        8 => (Some(7), 6, Kind::Note, 0),
        9 => (Some(2), 3, Kind::Entry, 0),
        10.. => (Some(position - 1), position - 6, Kind::Entry, 0),
        _ => (Some(position - 1), position, Kind::Entry, 0),
    };
    // The group, and the last records, went in with one write each.
    let unsettled = match position {
        7 | 8 => position - 6,
        11.. => position - 10,
        _ => 0,
    };
    let id = format!("{mark}u{position}");
    let padding = "x".repeat(padding);
    let body = match (position, kind) {
        (0, _) => r#"{"note":"created","at":"2030-01-02T03:04:05Z","set":{"name":"a sample"}}"#.to_owned(),
        (_, Kind::Note) => {
            format!(r#"{{"note":"set","at":"2030-01-02T03:04:05Z","set":{{"turn_count":{position}}}}}"#)
        }
        _ => format!(
            r#"{{"uuid":"{id}","role":"user","content":"{padding}","timestamp":"2030-01-02T03:05:{position:02}Z"}}"#
        ),
    };
    stamped(&body, Stamp { position, parent, depth, kind, id: id.parse().expect("an id"), left, unsettled })
}

/// Stamps a body.
pub fn stamped(body: &str, stamp: Stamp) -> Line {
    Line::new(&Entry::parse(Bytes::copy_from_slice(body.as_bytes())).expect("an entry"), stamp)
}

/// Returns lines as a file.
pub fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect()
}

//! What the suite stores: names and records that are valid by construction.

use crate::backend::{Key, LogKey, LogName, Position};
use crate::entry::Entry;
use crate::id::{EntryId, SessionId};
use crate::stamp::{Kind, Line, Stamp};

/// Returns a session's name.
pub(super) fn session(text: &str) -> SessionId {
    let Ok(session) = text.parse() else { unreachable!("{text} is a session id") };
    session
}

/// Returns a session's message log.
pub(super) fn messages(text: &str) -> LogKey {
    LogKey::new(session(text), LogName::Messages)
}

/// Returns a document's name.
pub(super) fn key(text: &str) -> Key {
    let Ok(key) = text.parse() else { unreachable!("{text} is a document's name") };
    key
}

/// Returns an entry's name.
pub(super) fn entry_id(text: &str) -> EntryId {
    let Ok(id) = text.parse() else { unreachable!("{text} is an entry id") };
    id
}

/// Stamps a JSON object as the record at a position.
pub(super) fn record(position: Position, left: u64, id: &str, body: &str) -> Line {
    let Ok(entry) = Entry::parse(body.to_owned()) else { unreachable!("{body} is an entry") };
    let kind = match position % 5 {
        3 => Kind::Note,
        4 => Kind::Copy,
        _ => Kind::Entry,
    };
    let stamp = Stamp {
        position,
        parent: position.checked_sub(1),
        depth: position + 1,
        kind,
        id: entry_id(id),
        left,
        unsettled: 0,
    };
    Line::new(&entry, stamp)
}

/// Returns records that stand alone, of different lengths; `tag` tells them from any others.
pub(super) fn singles(at: Position, count: u64, tag: &str) -> Vec<Line> {
    (at..at + count).map(|position| tagged(position, 0, tag, length(position))).collect()
}

/// Returns one atomic group.
pub(super) fn group(at: Position, count: u64, tag: &str) -> Vec<Line> {
    group_of(at, count, tag, 40)
}

/// Returns the batches of a log that has everything: single records, groups short and long, and some that are
/// larger than a reader takes at once.
pub(super) fn varied() -> Vec<Vec<Line>> {
    let mut batches: Vec<Vec<Line>> = Vec::new();
    let mut at = 0;
    let mut push = |make: &dyn Fn(Position) -> Vec<Line>| {
        let batch = make(at);
        at += batch.len() as Position;
        batches.push(batch);
    };
    for round in 0..6 {
        push(&|at| singles(at, 1 + round, "single"));
        push(&|at| group(at, 2 + round, "group"));
        push(&|at| group_of(at, 3, "wide", 9_000));
        push(&|at| [singles(at, 2, "mixed"), group(at + 2, 3, "mixed")].concat());
        push(&|at| [group(at, 2, "twin"), group(at + 2, 2, "twin")].concat());
    }
    push(&|at| vec![tagged(at, 0, "broad", 70_000)]);
    push(&|at| singles(at, 3, "last"));
    batches
}

/// Returns the record with the longest line that both the suite and a backend with this limit take.
pub(super) fn large(position: Position, max_record: usize) -> Line {
    let stamp_and_braces = 256;
    tagged(position, 0, "large", (1 << 20).min(max_record.saturating_sub(stamp_and_braces)))
}

fn group_of(at: Position, count: u64, tag: &str, length: usize) -> Vec<Line> {
    (at..at + count).map(|position| tagged(position, at + count - 1 - position, tag, length)).collect()
}

fn tagged(position: Position, left: u64, tag: &str, length: usize) -> Line {
    let body = format!(r#"{{"tag":"{tag}","text":"{}"}}"#, "rethread ".repeat(length / 9 + 1));
    record(position, left, &format!("{tag}-{position}"), &body)
}

/// Spreads lengths, so that no two neighbours are alike.
fn length(position: Position) -> usize {
    (position as usize * 37) % 300
}

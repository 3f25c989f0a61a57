//! The store's readers and the second one, side by side.

use rethread_store::backend::{Backend, From, Position};

use super::home::{Home, Stored, Whole, read_all, run, stored};
use super::reference;

/// How many single positions are looked at.
const PLACES: usize = 12;
/// What one look from the end, or one step of a bisection, takes in.
const GLIMPSE: usize = 16 << 10;

/// Every way to read the log gives the same records, and every missing one is reported. Returns the records.
pub fn readers_agree(home: &Home) -> Vec<Stored> {
    let expected = all_is_read(home, 1 << 20);
    if !can_be_searched(home) {
        return expected;
    }
    all_is_read(home, 1);
    for position in places(&expected) {
        let chunk =
            run(home.backend().read(&home.messages(), From::Position(position), 1)).expect("readable");
        let wanted = expected.iter().find(|(found, _)| *found >= position);
        let found = chunk.lines.first().map(stored);
        let (found, wanted) = (found.as_ref().map(show_one), wanted.map(show_one));
        assert_eq!(found, wanted, "read from {position} of {}", show_files(home));
    }
    let last = run(home.backend().read(&home.messages(), From::Last, 1)).expect("readable");
    let found: Vec<Stored> = last.lines.last().map(stored).into_iter().collect();
    let wanted: Vec<Stored> = expected.last().cloned().into_iter().collect();
    assert!(found == wanted, "read from the end: {} is not {}", show(&found), show(&wanted));
    expected
}

/// Returns whether a position can be searched for: where old lines stand behind newer ones in a long log, only a reader
/// that begins at the beginning sees everything.
pub fn can_be_searched(home: &Home) -> bool {
    let files = home.files();
    let size: usize = files.values().map(Vec::len).sum();
    reference::headers_hold(&files, "messages") && (size <= GLIMPSE || reference::ascends(&files, "messages"))
}

/// Reads the log from its beginning, so many bytes at a time. Returns the records.
pub fn all_is_read(home: &Home, size: usize) -> Vec<Stored> {
    let files = home.files();
    let (expected, floor) = (reference::records(&files, "messages"), reference::floor(&files, "messages"));
    let Whole { records, lost, next, .. } = read_all(&home.backend(), &home.messages(), size);
    let told = || format!("{size} bytes at a time: {} are not {}", show(&records), show(&expected));
    assert!(records == expected, "{}", told());
    assert_eq!(lost, gaps(&expected, floor), "{size} bytes at a time: what is missing is reported");
    assert_eq!(next, expected.last().map_or(0, |(last, _)| last + 1).max(floor));
    expected
}

fn show(records: &[Stored]) -> String {
    records.iter().take(40).map(|record| format!("\n  {}", show_one(record))).collect()
}

/// Every line of the session's logs by its two ends.
pub fn show_files(home: &Home) -> String {
    let lines = |bytes: &Vec<u8>| -> Vec<Stored> {
        bytes.split(|byte| *byte == b'\n').map(|line| (0, line.to_vec())).collect()
    };
    let logs = home.files().into_iter().filter(|(name, _)| name.ends_with(".jsonl"));
    logs.map(|(name, bytes)| format!("\n{name}{}", show(&lines(&bytes)))).collect()
}

/// A record's two ends: which one it is, and its stamp.
fn show_one((_, bytes): &Stored) -> String {
    let text = String::from_utf8_lossy(bytes);
    let (start, end): (String, String) =
        (text.chars().take(30).collect(), text.chars().rev().take(50).collect());
    format!("{start}…{} ({} bytes)", end.chars().rev().collect::<String>(), bytes.len())
}

/// Returns the runs of positions that are missing before the last one, and before this one.
pub fn gaps(records: &[Stored], floor: Position) -> Vec<std::ops::Range<Position>> {
    let mut next = 0;
    let mut gaps = Vec::new();
    for (position, _) in records {
        gaps.push(next..*position);
        next = position + 1;
    }
    gaps.push(next..floor);
    gaps.retain(|gap| !gap.is_empty());
    gaps
}

/// Returns positions worth looking at: those of records, those beside them, and those behind the end.
fn places(records: &[Stored]) -> Vec<Position> {
    let step = records.len() * 2 / PLACES + 1;
    let near = records.iter().flat_map(|(position, _)| [*position, position + 1]);
    let end = records.last().map_or(0, |(position, _)| position + 1);
    near.step_by(step).chain([0, 1, end, end + 1, end + 2, end + 3]).collect()
}

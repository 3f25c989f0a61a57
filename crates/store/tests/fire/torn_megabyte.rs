//! A session of a mebibyte, damaged at every byte: what is whole on either side stays readable.
//!
//! `torn` does the same to the last record of a short log, on a real disk.

use std::ops::Range;
use std::sync::LazyLock;

use rethread_store::{Entry, NewSession};

use super::effort::{Effort, Round};
use super::replay::targets::{Home, Whole, read_all};
use crate::kit::{run, session_id};

const SIZE: usize = 1 << 20;
/// Shares no divisor with any size of a session that matters, so that its multiples visit every byte.
const STEP: u64 = 999_983;
const WAYS: u64 = 5;

/// The session's log, and where each of its lines stands, newlines included.
static SESSION: LazyLock<(Vec<u8>, Vec<Range<usize>>)> = LazyLock::new(|| {
    let home = Home::default();
    let store = home.store();
    let session = run(store.create(NewSession::default().id(session_id("s")))).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let (mut written, mut n) = (0, 0);
    while written < SIZE {
        n += 1;
        let text = "x".repeat(random.usize(..3000));
        written += text.len() + 120;
        let entry = format!(r#"{{"uuid":"u{n}","role":"user","content":"{text}"}}"#);
        run(async { session.append(Entry::parse(entry).unwrap()).await.unwrap().await }).unwrap();
    }
    store.close().unwrap();
    let log = home.files().remove("messages.jsonl").unwrap();
    let mut lines = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', &log) {
        lines.push(start..end + 1);
        start = end + 1;
    }
    (log, lines)
});

#[test]
fn a_mebibyte_damaged_anywhere_loses_only_what_was_hit() {
    for round in Effort::new("a torn mebibyte", 250) {
        let (log, lines) = &*SESSION;
        let length = log.len() as u64;
        let at = (round.turn(length) * STEP % length) as usize;
        // Every byte in one way, then every byte in the next one.
        let way = (round.number + round.number / length) % WAYS;
        let line = lines.partition_point(|line| line.end <= at);
        let (bytes, lost) = damaged(log, lines, line, at, way);
        only_that_is_lost(&bytes, &lost, round);
    }
}

/// Returns the log with damage at a byte of a line, and the records that it costs.
fn damaged(log: &[u8], lines: &[Range<usize>], line: usize, at: usize, way: u64) -> (Vec<u8>, Range<usize>) {
    let end = lines[line].end - 1;
    // Without its newline, a line takes the next one down with it.
    let two = line..(line + 2).min(lines.len());
    let one = if at == end { two.clone() } else { line..line + 1 };
    let rest = at..end.max(at + 1);
    let mut bytes = log.to_vec();
    match way {
        0 => {
            bytes.truncate(at);
            // A record that lacks nothing but its newline is whole.
            (bytes, line + usize::from(at == end)..lines.len())
        }
        1 => {
            bytes[at] ^= 1;
            (bytes, one)
        }
        2 => {
            bytes[rest].fill(0);
            (bytes, one)
        }
        3 => {
            bytes[rest].fill(b'~');
            (bytes, one)
        }
        _ => {
            drop(bytes.drain(at..=end));
            // Cut at its first byte it is simply gone, and at its newline the two stand on one line.
            (bytes, if at == lines[line].start { line..line + 1 } else { two })
        }
    }
}

fn only_that_is_lost(bytes: &[u8], lost: &Range<usize>, round: Round) {
    let (log, lines) = &*SESSION;
    let home = Home::default();
    home.put("messages.jsonl", bytes);
    let Whole { records, lost: told, next, .. } = read_all(&home.backend(), &home.messages(), 64 << 10);
    let kept: Vec<usize> = (0..lines.len()).filter(|line| !lost.contains(line)).collect();
    assert_eq!(records.len(), kept.len(), "round {}: {lost:?}", round.number);
    for (line, (position, record)) in kept.iter().zip(&records) {
        let whole = &log[lines[*line].start..lines[*line].end - 1];
        assert!(*position == *line as u64 && record == whole, "record {line}, byte for byte");
    }
    let ends_with_it = lost.end == lines.len();
    let gap = lost.start as u64..lost.end as u64;
    let expected = if ends_with_it || lost.is_empty() { Vec::new() } else { vec![gap] };
    assert_eq!(told, expected, "what lies between whole records is reported");
    assert_eq!(next, if ends_with_it { lost.start } else { lines.len() } as u64);
    if !bytes.is_empty() {
        // A log that was cut between two records looks like one that was never longer.
        let end = lines.get(lost.start).map_or(log.len(), |line| line.start);
        let between = log.starts_with(bytes) && (end - 1..=end).contains(&bytes.len());
        let report = run(home.store().verify(&home.session())).unwrap();
        assert_eq!(report.is_ok(), between, "{:?}", report.problems);
    }
}

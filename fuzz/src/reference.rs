//! A second reader of a log, written from `docs/format.md` ("A reader in another language") and slow on purpose: what
//! the store's own readers say, with their bisections, bookmarks and windows, must be the same.

use std::collections::BTreeMap;

use bytes::Bytes;
use rethread_store::Line;
use rethread_store::backend::Position;

use super::home::{Stored, stored};

/// Returns the records of a log: rules 2 to 7.
pub fn records(files: &BTreeMap<String, Vec<u8>>, log: &str) -> Vec<Stored> {
    let mut kept = Vec::new();
    let parts = parts(files, log);
    for (index, (_, part)) in parts.iter().enumerate() {
        let hole = take(part, &mut kept);
        if index + 1 == parts.len() {
            kept.retain(|(position, _)| hole.is_none_or(|hole| *position < hole));
        }
    }
    kept
}

/// Returns the position that the newest segment's header says it begins with: what was before it is gone.
pub fn floor(files: &BTreeMap<String, Vec<u8>>, log: &str) -> Position {
    let newest = segments(files, log).pop();
    newest.and_then(|(_, bytes)| header(bytes)?.1["first"].as_u64()).unwrap_or(0)
}

/// Returns whether no whole line stands behind one with a higher position, and none behind itself.
pub fn ascends(files: &BTreeMap<String, Vec<u8>>, log: &str) -> bool {
    let positions: Vec<Position> =
        parts(files, log).into_iter().flat_map(|(_, part)| positions(part)).collect();
    positions.is_sorted_by(|one, other| one < other)
}

/// Returns whether every file holds what its header, and the next one's, say: those do that a writer left.
pub fn headers_hold(files: &BTreeMap<String, Vec<u8>>, log: &str) -> bool {
    let parts = parts(files, log);
    let nexts = parts.iter().skip(1).map(|(first, _)| *first).chain([Position::MAX]);
    let mut ranges = parts.iter().zip(nexts).map(|((first, part), next)| (*first..next, positions(part)));
    ranges.all(|(range, positions)| positions.iter().all(|position| range.contains(position)))
}

fn positions(part: &[u8]) -> Vec<Position> {
    part.split(|byte| *byte == b'\n').filter_map(record).map(|line| line.stamp().position).collect()
}

/// Takes the records of one file. Returns where it ends if what stands behind a hole in it was never durable.
fn take(part: &[u8], kept: &mut Vec<Stored>) -> Option<Position> {
    let lines: Vec<&[u8]> = part.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let found: Vec<Option<Line>> = lines.iter().map(|line| record(line)).collect();
    let (mut at, mut hollow, mut hole) = (0, false, None);
    while at < found.len() {
        // What stands after the last newline may still be on its way.
        let ended = at + 1 < found.len() || part.ends_with(b"\n");
        hollow |= found[at].is_none() && ended && lines[at].contains(&0);
        let group = group(&found[at..]);
        at += 1;
        let expected = kept.last().map_or(0, |(position, _)| position + 1);
        // The members of a group that was just taken come up again, and their positions are lower then.
        let first = group.first().map(|line| line.stamp()).filter(|stamp| stamp.position >= expected);
        let Some(stamp) = first else {
            continue;
        };
        if hole.is_none() && hollow && stamp.position > expected {
            hole = Some(expected);
        }
        hole = hole.filter(|hole| stamp.settled() <= *hole);
        hollow = false;
        kept.extend(group.into_iter().map(stored));
    }
    hole
}

/// Returns the whole group that begins with the first line; none if there is none.
fn group(found: &[Option<Line>]) -> Vec<&Line> {
    let Some(Some(first)) = found.first() else {
        return Vec::new();
    };
    let stamp = first.stamp();
    let Some(members) = usize::try_from(stamp.left).ok().and_then(|left| found.get(..left.checked_add(1)?))
    else {
        return Vec::new();
    };
    let follows = |(step, line): (usize, &Option<Line>)| {
        line.as_ref().is_some_and(|line| {
            let (position, left) = (i128::from(line.stamp().position), i128::from(line.stamp().left));
            let step = step as i128;
            position == i128::from(stamp.position) + step && left == i128::from(stamp.left) - step
        })
    };
    match members.iter().enumerate().all(follows) {
        true => members.iter().flatten().collect(),
        false => Vec::new(),
    }
}

fn record(line: &[u8]) -> Option<Line> {
    Line::parse(Bytes::copy_from_slice(line)).ok()
}

/// Returns the parts of a log that count, the oldest first, each with the position that it says it begins with.
fn parts<'a>(files: &'a BTreeMap<String, Vec<u8>>, log: &str) -> Vec<(Position, &'a [u8])> {
    let (mut wanted, mut end, mut parts) = (None, usize::MAX, Vec::new());
    for (number, bytes) in segments(files, log).into_iter().rev() {
        let Some((start, header)) = header(bytes).filter(|_| wanted.is_none_or(|wanted| wanted == number))
        else {
            continue;
        };
        let part = &bytes[start.min(bytes.len().min(end))..bytes.len().min(end)];
        parts.push((header["first"].as_u64().unwrap_or_default(), part));
        wanted = header["after"].as_u64();
        end = usize::try_from(header["end"].as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
    }
    let first = files.get(&format!("{log}.jsonl")).map(Vec::as_slice);
    let Some(first) = first else {
        return Vec::new();
    };
    // Where a file in between is lost, its end is not that of the first one.
    let end = if wanted == Some(0) { end } else { usize::MAX };
    parts.push((0, &first[..first.len().min(end)]));
    parts.reverse();
    parts
}

/// Returns the later files of a log that have a header, in order.
fn segments<'a>(files: &'a BTreeMap<String, Vec<u8>>, log: &str) -> Vec<(u64, &'a [u8])> {
    let number = |name: &str| name.strip_prefix(log)?.strip_prefix('.')?.strip_suffix(".jsonl")?.parse().ok();
    let named = files.iter().filter_map(|(name, bytes)| Some((number(name)?, bytes.as_slice())));
    let mut segments: Vec<(u64, &[u8])> = named.collect();
    segments.sort_unstable();
    if !segments.iter().any(|(number, _)| *number == 1) {
        segments.clear();
    }
    segments.retain(|(_, bytes)| header(bytes).is_some());
    segments
}

/// Returns where a segment's records begin and what its header says.
fn header(bytes: &[u8]) -> Option<(usize, serde_json::Value)> {
    let length = bytes[..bytes.len().min(1024)].iter().position(|byte| *byte == b'\n')?;
    let body: serde_json::Value = serde_json::from_slice(&record(&bytes[..length])?.body()).ok()?;
    let header = body.get("segment")?.clone();
    let fits = header["after"].as_u64().is_some_and(|after| u32::try_from(after).is_ok());
    (fits && header["end"].is_u64() && header["first"].is_u64()).then_some((length + 1, header))
}

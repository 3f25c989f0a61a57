//! A damaged log made whole: readable records stay byte for byte at their positions, lost ones are named.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use jiff::Timestamp;

use super::disk::{Disk, Open, read_range, write_all_at};
use super::document::replace;
use super::quarantine::Quarantine;
use super::scan::{self, Assembler};
use super::segment::Header;
use super::{index, segment};
use crate::backend::{Known, LogName, Position, Rewrite};
use crate::error::{Error, Result};
use crate::note::Note;
use crate::stamp::{Kind, Line, Stamp};

/// How many lost records are named one by one; more than that is no damage that a repair should paper over.
const MOST_LOST: u64 = 1 << 20;

/// Rewrites a log under the session's lock.
pub(crate) fn rewrite(
    disk: &dyn Disk,
    folder: &Path,
    quarantine: &Quarantine,
    log: LogName,
    known: &Known,
) -> Result<Rewrite> {
    let segments = segment::open_all(disk, folder, log)?;
    let numbers = segment::numbers(disk, folder, log)?;
    let mut files = Vec::new();
    let (mut records, mut next, mut bad) = (BTreeMap::new(), 0, Vec::new());
    for segment in &segments {
        let path = segment::path(folder, log, segment.number);
        let read = || read_range(&*segment.file, 0, segment.file.stat()?.length);
        let bytes = Bytes::from(read().map_err(Error::io("read", &path))?);
        // The readers' own rules decide what a record is.
        let end = segment.end.unwrap_or(bytes.len() as u64).min(bytes.len() as u64);
        let mut found = Assembler::new(String::new(), Some(next), segment.start);
        scan::scan(&*segment.file, segment.start, end, usize::MAX, &mut found)
            .map_err(Error::io("read", &path))?;
        if segment.end.is_none() {
            found.conclude(end);
        }
        next = found.next().unwrap_or(next);
        let tail = found.tail(end);
        for damage in found.damage.iter().chain(&tail) {
            let range = damage.offset as usize..(damage.offset + damage.length) as usize;
            bad.push(bytes.slice(range));
        }
        if let Some(last) = bad.last_mut().filter(|_| tail.is_some()) {
            *last = last.slice(..promised(last));
        }
        if found.unfinished {
            // What stands behind a hole in the last write was never promised: a prefix is.
            bad.pop();
        }
        records.extend(found.lines.into_iter().map(|line| (line.stamp().position, line)));
        files.push((segment::file_name(log, segment.number), bytes));
    }
    let readable = records.len() as u64;
    let newest = segments.last().map_or(0, |segment| segment.number);
    for number in numbers.iter().filter(|number| segments.iter().all(|segment| segment.number != **number)) {
        // Nobody reads it, but it goes with the others, and what is in it may be all there is.
        let path = segment::path(folder, log, *number);
        let file = disk.open(&path, Open::Read).map_err(Error::io("open", &path))?;
        let read = || read_range(&*file, 0, file.stat()?.length);
        let bytes = Bytes::from(read().map_err(Error::io("read", &path))?);
        if *number > newest {
            // Its header is damaged, so readers do not know what it follows. Its positions say that.
            let mut found = Assembler::new(String::new(), Some(next), 0);
            scan::scan(&*file, 0, bytes.len() as u64, usize::MAX, &mut found)
                .map_err(Error::io("read", &path))?;
            next = found.next().unwrap_or(next);
            records.extend(found.lines.into_iter().map(|line| (line.stamp().position, line)));
        }
        files.push((segment::file_name(log, *number), bytes));
    }
    bad.iter().for_each(|region| salvage(region, &mut records));
    let salvaged = records.len() as u64 - readable;
    if files.is_empty() && known.first.is_none() {
        return Ok(Rewrite::default());
    }
    if let Ok(document) = disk.open(&folder.join("metadata.json"), Open::Read) {
        let read = || read_range(&*document, 0, document.stat()?.length);
        files.push(("metadata.json".into(), read().map_err(Error::io("read", folder))?.into()));
    }
    if let Some(first) = &known.first {
        records.entry(0).or_insert_with(|| first.clone());
    }
    let backup =
        quarantine.backup_folder(&format!("{}.{}", log.as_str(), Timestamp::now().as_microsecond()))?;
    for (name, bytes) in &files {
        let path = backup.join(name);
        let copy = || {
            let file = disk.open(&path, Open::New)?;
            write_all_at(&*file, bytes, 0)?;
            file.sync()?;
            disk.sync_folder(&backup)
        };
        copy().map_err(Error::io("back up to", &path))?;
    }
    let (content, lost) = whole(&records, known.next.max(segments.last().map_or(0, |newest| newest.first)))?;
    // A segment that says that nothing before it counts takes the place of all others with one rename. Then the
    // first file gets the same content, and the second one, without which nobody looks for more: so that goes last, and
    // whatever is left until then says the same.
    let header = Header { after: 0, end: 0, first: 0 }.to_line()?;
    let superseding = [header.as_bytes(), b"\n", &content].concat();
    let next = numbers.last().map_or(1, |last| last + 1);
    replace(disk, &segment::path(folder, log, next), &superseding)?;
    replace(disk, &segment::path(folder, log, 0), &content)?;
    if next > 1 {
        replace(disk, &segment::path(folder, log, 1), &superseding)?;
    }
    for number in
        numbers.into_iter().filter(|number| *number > 1).chain((next > 1).then_some(next)).chain([1])
    {
        let path = segment::path(folder, log, number);
        disk.remove_file(&path).map_err(Error::io("remove", &path))?;
        disk.sync_folder(folder).map_err(Error::io("sync", folder))?;
    }
    // A derived file; the next writer makes it again.
    let _ = disk.remove_file(&index::path(folder, log));
    Ok(Rewrite { kept: readable, salvaged, lost, backup: Some(backup) })
}

/// Returns up to where what a log ends with may have been promised to somebody: not from a line on that has NUL bytes in it,
/// as a power cut leaves the last write. No reader takes it, and so nobody may later.
fn promised(tail: &Bytes) -> usize {
    let hollow = memchr::memchr(0, tail);
    hollow.map_or(tail.len(), |at| memchr::memrchr(b'\n', &tail[..at]).map_or(0, |newline| newline + 1))
}

/// Fills missing positions with whole records from inside damaged lines. A line that is whole by itself was no record
/// for a reason: it is doubled, foreign, or part of a group that was never finished.
fn salvage(region: &Bytes, records: &mut BTreeMap<Position, Line>) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', region).chain([region.len()]) {
        let line = region.slice(start..end.max(start));
        start = end + 1;
        if Line::parse(line.clone()).is_err() {
            for line in glued(&line) {
                records.entry(line.stamp().position).or_insert(line);
            }
        }
    }
}

/// Finds whole records inside a line that is not one: their checksum tells where they begin.
fn glued(line: &Bytes) -> Vec<Line> {
    let mut found = Vec::new();
    let mut from = 0;
    for mark in memchr::memmem::find_iter(line, b"\"_rt\":\"") {
        let Some(close) = memchr::memmem::find(&line[mark..], b"\"}") else {
            break;
        };
        let end = mark + close + 2;
        let starts = memchr::memchr_iter(b'{', &line[from.min(mark)..mark]).map(|at| from + at);
        for start in starts {
            if let Ok(record) = Line::parse(line.slice(start..end)) {
                found.push(record);
                from = end;
                break;
            }
        }
    }
    found
}

/// Lays records out densely; a note stands in for each that is lost.
fn whole(records: &BTreeMap<Position, Line>, known: Position) -> Result<(Vec<u8>, Vec<Position>)> {
    let (mut content, mut lost) = (Vec::new(), Vec::new());
    let end = records.keys().next_back().map_or(0, |last| last + 1).max(known);
    if end - records.len() as u64 > MOST_LOST {
        let reason =
            format!("record {} is there, but {} before it are not", end - 1, end - records.len() as u64);
        return Err(Error::Damaged { what: "the log".into(), reason });
    }
    let (mut leaf, mut left) = ((None, 0), 0u64);
    // A log that was cut still says how much it lost.
    for position in 0..end {
        let line = match records.get(&position) {
            // A group that nothing completes is no group any more, or its other members would be lost with it.
            Some(line) if !can_be_whole(records, line.stamp(), end) => {
                Line::new(&line.entry(), Stamp { left: 0, ..line.stamp().clone() })
            }
            Some(line) => line.clone(),
            None => {
                lost.push(position);
                let note = Note::Lost { at: Timestamp::now() }.to_entry()?;
                let id = note.id().clone();
                let stamp = Stamp {
                    position,
                    parent: leaf.0,
                    depth: leaf.1,
                    kind: Kind::Note,
                    id,
                    // In a group that lost a member the note takes its part: whoever sealed the others said how many
                    // there are.
                    left: left.saturating_sub(1),
                    unsettled: 0,
                };
                Line::new(&note, stamp)
            }
        };
        let stamp = line.stamp();
        left = stamp.left;
        match stamp.kind {
            Kind::Entry => leaf = (Some(position), stamp.depth),
            Kind::Note => leaf = (stamp.parent, stamp.depth),
            Kind::Copy => {}
        }
        content.extend_from_slice(line.as_bytes());
        content.push(b'\n');
    }
    Ok((content, lost))
}

/// Returns whether a record's group is whole, once there are notes in the place of those that are lost.
fn can_be_whole(records: &BTreeMap<Position, Line>, stamp: &Stamp, end: Position) -> bool {
    let fits = |step: u64| {
        records.get(&(stamp.position + step)).is_none_or(|line| line.stamp().left == stamp.left - step)
    };
    stamp.position + stamp.left < end && (1..=stamp.left).all(fits)
}

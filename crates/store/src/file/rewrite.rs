//! A damaged log made whole: readable records stay byte for byte at their positions, lost ones are named.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use jiff::Timestamp;

use super::disk::{Disk, Open, read_range, write_all_at};
use super::document::replace;
use super::quarantine::Quarantine;
use super::{index, segment};
use crate::backend::{LogName, Position, Rewrite};
use crate::error::{Error, Result};
use crate::note::Note;
use crate::stamp::{Kind, Line, Stamp};

/// Rewrites a log under the session's lock.
pub(crate) fn rewrite(
    disk: &dyn Disk,
    folder: &Path,
    quarantine: &Quarantine,
    log: LogName,
) -> Result<Rewrite> {
    let segments = segment::open_all(disk, folder, log)?;
    let highest = segment::highest(disk, folder, log)?;
    let mut files = Vec::new();
    let (mut records, mut salvaged) = (BTreeMap::new(), 0);
    for segment in &segments {
        let path = segment::path(folder, log, segment.number);
        let read = || read_range(&*segment.file, 0, segment.file.stat()?.length);
        let bytes = Bytes::from(read().map_err(Error::io("read", &path))?);
        // What a later segment wrote again is the same records; whole ones beyond the end count all the same.
        collect(&bytes.slice(segment.start as usize..), &mut records, &mut salvaged);
        files.push((segment::file_name(log, segment.number), bytes));
    }
    if files.is_empty() {
        return Ok(Rewrite::default());
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
    let (content, lost) = whole(&records)?;
    // The whole content goes in place first: should we die before the later segments are gone, every record is
    // still in one file or another, and a second repair finds it.
    replace(disk, &segment::path(folder, log, 0), &content)?;
    for number in (1..=highest).rev() {
        let path = segment::path(folder, log, number);
        if disk.stat(&path).is_ok() {
            let aside = backup.join(format!("{}.removed", segment::file_name(log, number)));
            disk.rename(&path, &aside).map_err(Error::io("move", &path))?;
        }
    }
    disk.sync_folder(folder).map_err(Error::io("sync", folder))?;
    // A derived file; the next writer makes it again.
    let _ = disk.remove_file(&index::path(folder, log));
    Ok(Rewrite { kept: records.len() as u64 - salvaged, salvaged, lost, backup: Some(backup) })
}

fn collect(bytes: &Bytes, records: &mut BTreeMap<Position, Line>, salvaged: &mut u64) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]) {
        let line = bytes.slice(start..end.max(start));
        start = end + 1;
        if let Ok(line) = Line::parse(line.clone()) {
            records.insert(line.stamp().position, line);
            continue;
        }
        for line in glued(&line) {
            *salvaged += u64::from(records.insert(line.stamp().position, line).is_none());
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
fn whole(records: &BTreeMap<Position, Line>) -> Result<(Vec<u8>, Vec<Position>)> {
    let (mut content, mut lost) = (Vec::new(), Vec::new());
    let mut leaf = (None, 0);
    for position in 0..records.keys().next_back().map_or(0, |last| last + 1) {
        let line = match records.get(&position) {
            // A group that lost a member is no group any more, or its other members would be lost with it.
            Some(line) if line.stamp().left > 0 && !group_is_whole(records, line.stamp()) => {
                Line::new(&line.entry(), Stamp { left: 0, ..line.stamp().clone() })
            }
            Some(line) => line.clone(),
            None => {
                lost.push(position);
                let note = Note::Lost { at: Timestamp::now() }.to_entry()?;
                let id = note.id().clone();
                let stamp = Stamp { position, parent: leaf.0, depth: leaf.1, kind: Kind::Note, id, left: 0 };
                Line::new(&note, stamp)
            }
        };
        let stamp = line.stamp();
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

fn group_is_whole(records: &BTreeMap<Position, Line>, stamp: &Stamp) -> bool {
    (1..=stamp.left).all(|step| {
        records.get(&(stamp.position + step)).is_some_and(|line| line.stamp().left == stamp.left - step)
    })
}

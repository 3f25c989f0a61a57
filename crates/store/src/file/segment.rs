//! The files that make up one log: usually one; another after a sync has failed.
//!
//! A failed sync condemns a file: the cache is right, the disk may be wrong, and syncing again reports success.
//! So the records go once more, from memory, into a new file whose first line says where the old one ends.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, DiskFile, Open, look, read_onto, read_range};
use super::journal;
use crate::backend::{LogName, Position};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::EntryId;
use crate::stamp::{Kind, Line, Stamp};

/// One file of a log, as readers see it.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its number; 0 for `messages.jsonl`.
    pub(crate) number: u32,
    /// The open file.
    pub(crate) file: Box<dyn DiskFile>,
    /// Where its records begin, after its header.
    pub(crate) start: u64,
    /// Where they end, if a later segment says so.
    pub(crate) end: Option<u64>,
    /// The position of its first record.
    pub(crate) first: Position,
}

/// The first line of every segment but the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The segment that goes before.
    pub(crate) after: u32,
    /// Where that one ends.
    pub(crate) end: u64,
    /// The position of the first record here.
    pub(crate) first: Position,
}

impl Header {
    /// Returns the header as a stored line.
    pub(crate) fn to_line(self) -> Result<Line> {
        first_line("segment", self.first, &serde_json::json!({ "segment": self }))
    }

    fn read(line: Bytes) -> Option<Self> {
        #[derive(Deserialize)]
        struct Wrapped {
            segment: Header,
        }
        let line = Line::parse(line).ok()?;
        serde_json::from_slice::<Wrapped>(&line.body()).ok().map(|wrapped| wrapped.segment)
    }
}

/// Returns the first line of a file that holds records from a position on: stamped like a record, and none.
pub(crate) fn first_line(id: &str, position: Position, body: &serde_json::Value) -> Result<Line> {
    let id: EntryId = id.parse()?;
    let (kind, entry) = (Kind::Note, Entry::of(body)?.with_id(id.clone()));
    let stamp = Stamp { position, parent: None, depth: 0, kind, id, left: 0, unsettled: 0 };
    Ok(Line::new(&entry, stamp))
}

/// Returns the name of a segment's file.
pub(crate) fn file_name(log: LogName, number: u32) -> String {
    match number {
        0 => format!("{}.jsonl", log.as_str()),
        _ => format!("{}.{number}.jsonl", log.as_str()),
    }
}

/// Returns the path of a segment's file.
pub(crate) fn path(folder: &Path, log: LogName, number: u32) -> PathBuf {
    folder.join(file_name(log, number))
}

/// Returns the id of the record that a log begins with, if its line is whole.
pub(crate) fn first_id(disk: &dyn Disk, folder: &Path, log: LogName) -> Result<Option<EntryId>> {
    let path = path(folder, log, 0);
    let file = disk.open(&path, Open::Read).map_err(Error::io("open", &path))?;
    let (mut bytes, mut size) = (Vec::new(), 1 << 10);
    loop {
        bytes = read_onto(&bytes, &*file, bytes.len() as u64, size).map_err(Error::io("read", &path))?;
        match memchr::memchr(b'\n', &bytes) {
            Some(end) => {
                let line = Line::parse(Bytes::from(bytes).slice(..end)).ok();
                return Ok(line
                    .filter(|line| line.stamp().position == 0)
                    .map(|line| line.stamp().id.clone()));
            }
            None if (bytes.len() as u64) < size => return Ok(None),
            None => size *= 4,
        }
    }
}

/// Opens the segments of a log that count, oldest first; none if nobody ever wrote to it.
pub(crate) fn open_all(disk: &dyn Disk, folder: &Path, log: LogName) -> Result<Vec<Segment>> {
    let mut segments = open_chain(disk, folder, log)?;
    journal::overlay(disk, folder, log, &mut segments)?;
    Ok(segments)
}

/// Opens the same as they are, without what only a journal has.
pub(crate) fn open_chain(disk: &dyn Disk, folder: &Path, log: LogName) -> Result<Vec<Segment>> {
    let Some(file) = open(disk, folder, log, 0)? else {
        return Ok(Vec::new());
    };
    let mut chain = vec![Segment { number: 0, file, start: 0, end: None, first: 0 }];
    // A later segment exists only after a failed sync, so one failed look is all this costs.
    if look(disk, &path(folder, log, 1))?.is_none() {
        return Ok(chain);
    }
    let mut found = Vec::new();
    for number in numbers(disk, folder, log)? {
        if let Some(segment) = open_with_header(disk, folder, log, number)? {
            found.push(segment);
        }
    }
    // The newest one decides: it names the one before it, and so on back to the first.
    let mut wanted = found.last().map(|(segment, _)| segment.number);
    let mut picked = Vec::new();
    let mut end = None;
    while let Some((mut segment, header)) = found.pop() {
        if Some(segment.number) != wanted {
            continue;
        }
        segment.end = end;
        end = Some(header.end);
        wanted = Some(header.after);
        picked.push(segment);
    }
    // Where a file in between is lost, its end is not that of the first one.
    chain[0].end = end.filter(|_| wanted == Some(0));
    chain.extend(picked.into_iter().rev());
    Ok(chain)
}

/// Returns the number of every segment's file but the first, in order; whether they count is for their headers to say.
pub(crate) fn numbers(disk: &dyn Disk, folder: &Path, log: LogName) -> Result<Vec<u32>> {
    let names = disk.names(folder).map_err(Error::io("list", folder))?;
    let prefix = format!("{}.", log.as_str());
    let number = |name: &String| {
        let number = name.strip_prefix(&prefix)?.strip_suffix(".jsonl")?.parse::<u32>().ok()?;
        ((1..u32::MAX).contains(&number) && *name == file_name(log, number)).then_some(number)
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the files that are newer than the newest segment that counts, with their lengths.
///
/// A segment appears with its header in it, so one without was damaged later, and with its header it lost its records.
pub(crate) fn headless(
    disk: &dyn Disk,
    folder: &Path,
    log: LogName,
    segments: &[Segment],
) -> Result<Vec<(u32, u64)>> {
    let newest = segments.last().map_or(0, |segment| segment.number);
    let next = path(folder, log, newest + 1);
    if segments.is_empty() || look(disk, &next)?.is_none() {
        return Ok(Vec::new());
    }
    let mut headless = Vec::new();
    for number in numbers(disk, folder, log)?.into_iter().filter(|number| *number > newest) {
        let length = disk.stat(&path(folder, log, number)).map_or(0, |stat| stat.length);
        // Looked at again: a writer may have made it just now.
        if length > 0 && open_with_header(disk, folder, log, number)?.is_none() {
            headless.push((number, length));
        }
    }
    Ok(headless)
}

/// Returns the number that the next segment's file has.
pub(crate) fn next_number(disk: &dyn Disk, folder: &Path, log: LogName) -> Result<u32> {
    Ok(numbers(disk, folder, log)?.last().map_or(1, |last| last + 1))
}

fn open(disk: &dyn Disk, folder: &Path, log: LogName, number: u32) -> Result<Option<Box<dyn DiskFile>>> {
    let path = path(folder, log, number);
    match disk.open(&path, Open::Read) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", &path)(error)),
    }
}

fn open_with_header(
    disk: &dyn Disk,
    folder: &Path,
    log: LogName,
    number: u32,
) -> Result<Option<(Segment, Header)>> {
    let Some(file) = open(disk, folder, log, number)? else {
        return Ok(None);
    };
    let opening = read_range(&*file, 0, 1024).map_err(Error::io("read", path(folder, log, number)))?;
    let Some(length) = memchr::memchr(b'\n', &opening) else {
        return Ok(None); // a crash came before its header was on disk, so nothing in it was ever acknowledged
    };
    let Some(header) = Header::read(Bytes::from(opening).slice(..length)) else {
        return Ok(None);
    };
    let segment = Segment { number, file, start: length as u64 + 1, end: None, first: header.first };
    Ok(Some((segment, header)))
}

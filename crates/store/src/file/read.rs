//! The reading end of a log: takes no lock, sees whole records only.

use std::path::Path;

use super::disk::{Disk, DiskFile, look, read_range};
use super::scan::{self, Assembler};
use super::segment::{self, Segment};
use crate::backend::{Chunk, Damage, From, LogName, Position};
use crate::error::{Error, Result};
use crate::stamp::{Flaw, Unseal};

/// Where a reader stopped, so that the next read goes on there without searching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bookmark {
    pub(crate) next: Position,
    segment: u32,
    inode: u64,
    /// When the file was last written, as of the look before the read.
    modified: i128,
    length: u64,
    offset: u64,
    /// The end of the record before: inode numbers are used again, so they alone prove nothing.
    seal: Seal,
}

type Seal = [u8; 12];

fn seal(file: &dyn DiskFile, offset: u64) -> Seal {
    let mut seal = Seal::default();
    if let Ok(bytes) = read_range(file, offset.saturating_sub(seal.len() as u64), offset) {
        seal[..bytes.len()].copy_from_slice(&bytes);
    }
    seal
}

/// Reads part of a log.
pub(crate) fn read(
    disk: &dyn Disk,
    folder: &Path,
    log: LogName,
    from: From,
    max_bytes: usize,
    by: Option<&dyn Unseal>,
    bookmark: Option<Bookmark>,
) -> Result<(Chunk, Option<Bookmark>)> {
    let segments = match segment::open_all(disk, folder, log) {
        Ok(segments) => segments,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => Vec::new(),
        Err(error) => return Err(error),
    };
    let place = |number: u32| segment::path(folder, log, number);
    let (mut chunk, bookmark) = match from {
        From::Last => (read_last(&segments, log, place)?, None),
        From::Position(position) => read_on(&segments, log, (position, max_bytes), by, bookmark, place)?,
    };
    if chunk.lines.is_empty() || from == From::Last {
        for (number, length) in segment::headless(disk, folder, log, &segments)? {
            let (file, flaw) = (segment::file_name(log, number), Flaw::Unstamped);
            chunk.tail.get_or_insert(Damage { file, offset: 0, length, flaw, lost: 0..0 });
        }
    }
    Ok((chunk, bookmark))
}

fn read_last(segments: &[Segment], log: LogName, place: impl Fn(u32) -> std::path::PathBuf) -> Result<Chunk> {
    let mut tail = None;
    // What a segment's header says is gone stays gone, even if nothing came after it.
    let first = segments.last().map_or(0, |segment| segment.first);
    for segment in segments.iter().rev() {
        let end = end_of(segment, &place)?;
        let name = segment::file_name(log, segment.number);
        let mut found = scan::last(segment, &name, end).map_err(Error::io("read", place(segment.number)))?;
        tail = tail.or(found.tail(end));
        if let Some(line) = found.lines.pop() {
            let next = first.max(line.stamp().position + 1);
            return Ok(Chunk { lines: vec![line], next, tail, ..Chunk::default() });
        }
    }
    Ok(Chunk { tail, next: first, ..Chunk::default() })
}

fn read_on(
    segments: &[Segment],
    log: LogName,
    (position, max_bytes): (Position, usize),
    by: Option<&dyn Unseal>,
    bookmark: Option<Bookmark>,
    place: impl Fn(u32) -> std::path::PathBuf,
) -> Result<(Chunk, Option<Bookmark>)> {
    let mut chunk = Chunk { next: position, ..Chunk::default() };
    let mut mark = None;
    let first = segments.iter().rposition(|segment| segment.first <= position).unwrap_or(0);
    let mut size = 0;
    for segment in segments.iter().skip(first) {
        let at = |action| Error::io(action, place(segment.number));
        let stat = segment.file.stat().map_err(at("look at"))?;
        let end = segment.end.unwrap_or(stat.length).min(stat.length);
        let known = bookmark.filter(|mark| {
            let same = mark.segment == segment.number && mark.inode == stat.inode && mark.offset <= end;
            same && mark.next == chunk.next && mark.seal == seal(&*segment.file, mark.offset)
        });
        let name = segment::file_name(log, segment.number);
        let mut found = match known {
            Some(mark) => Assembler::new(name, Some(chunk.next), mark.offset),
            None => {
                let start =
                    scan::locate(&*segment.file, segment.start, end, chunk.next).map_err(at("read"))?;
                Assembler::searching(name, chunk.next, start)
            }
        };
        let start = found.good_end;
        let room = max_bytes.saturating_sub(size);
        scan::scan_unsealing(&*segment.file, start..end, room, by, &mut found).map_err(at("read"))?;
        if known.is_none() && start > segment.start && found.misses(chunk.next) {
            // Old lines that stand among newer ones can lead a bisection astray; before anything is called lost,
            // the whole file is looked through.
            let name = segment::file_name(log, segment.number);
            found = Assembler::searching_thoroughly(name, chunk.next, segment.start);
            scan::scan_unsealing(&*segment.file, segment.start..end, room, by, &mut found)
                .map_err(at("read"))?;
        }
        if segment.end.is_none() {
            found.conclude(end);
        }
        size += found.size;
        chunk.next = found.next().unwrap_or(chunk.next);
        if found.lines.is_empty() && chunk.next < segment.first {
            let (file, lost) = (segment::file_name(log, segment.number), chunk.next..segment.first);
            let (offset, flaw) = (segment.start, Flaw::Missing);
            chunk.damage.push(Damage { file, offset, length: 0, flaw, lost });
            chunk.next = segment.first;
        }
        // Where it stopped for its size, what follows is simply not read yet.
        chunk.tail = if found.size >= room { None } else { found.tail(end) };
        // Without a record it is not certain that this is where the position will be.
        if known.is_some() || !found.lines.is_empty() {
            mark = Some(Bookmark {
                next: chunk.next,
                segment: segment.number,
                inode: stat.inode,
                modified: stat.modified,
                length: stat.length,
                offset: found.good_end,
                seal: seal(&*segment.file, found.good_end),
            });
        }
        match chunk.lines.is_empty() {
            true => chunk.lines = found.lines,
            false => chunk.lines.append(&mut found.lines),
        }
        chunk.damage.append(&mut found.damage);
        if size >= max_bytes {
            return Ok((chunk, mark));
        }
    }
    chunk.ends = !chunk.lines.is_empty();
    Ok((chunk, mark))
}

fn end_of(segment: &Segment, place: impl Fn(u32) -> std::path::PathBuf) -> Result<u64> {
    let length = segment.file.stat().map_err(Error::io("look at", place(segment.number)))?.length;
    Ok(segment.end.unwrap_or(length).min(length))
}

/// Returns whether the log still ends where a reader stopped.
pub(crate) fn is_still_there(disk: &dyn Disk, folder: &Path, log: LogName, bookmark: Bookmark) -> bool {
    let path = segment::path(folder, log, bookmark.segment);
    let unchanged = disk.stat(&path).is_ok_and(|stat| {
        let seen = (stat.inode, stat.length, stat.modified);
        seen == (bookmark.inode, bookmark.length, bookmark.modified) && stat.length == bookmark.offset
    });
    unchanged
        && look(disk, &segment::path(folder, log, bookmark.segment + 1)).is_ok_and(|next| next.is_none())
}

//! Where an entry is, by its id: eight bytes of hash for each position, derived and deletable.
//!
//! A hit is checked against the record itself, and a miss is believed only after a scan,
//! so a stale, torn or missing index costs time and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskFile, Open, read_range, write_all_at};
use super::scan::{self, Assembler};
use super::segment::Segment;
use crate::backend::{LogName, Position};
use crate::error::{Error, Result};
use crate::id::EntryId;
use crate::stamp::Line;

const SLOT: u64 = 8;
/// How many slots are kept before they are written: each write makes the next sync of the log a little slower.
const LAZY: usize = 64;
/// How many slots an index has at most, so that one stray position does not make a file that fits into no memory.
const MOST: u64 = 1 << 27;

/// The index of one log.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    /// `None` where it cannot be written: the log works without.
    file: Option<Box<dyn DiskFile>>,
    /// Slots not yet written, and the position of the first.
    fresh: Vec<u8>,
    first: Position,
}

impl Index {
    /// Opens an index for writing.
    pub(crate) fn open(disk: &Arc<dyn Disk>, folder: &Path, log: LogName) -> Self {
        let path = path(folder, log);
        let file = disk.open(&path, Open::Update).ok();
        Self { path, file, fresh: Vec::new(), first: 0 }
    }

    /// Returns whether it has slots for positions that the log does not seem to have.
    pub(crate) fn reaches_beyond(&self, next: Position) -> bool {
        self.file.as_ref().and_then(|file| file.stat().ok()).is_some_and(|stat| stat.length / SLOT > next)
    }

    /// Adds the slots it lacks, from the log itself.
    pub(crate) fn catch_up(&mut self, segments: &[Segment], next: Position) -> Result<()> {
        let Some(stat) = self.file.as_ref().and_then(|file| file.stat().ok()) else {
            return Ok(());
        };
        let known = stat.length / SLOT;
        if known >= next {
            return Ok(());
        }
        for segment in segments {
            let stat = segment.file.stat().map_err(Error::io("look at", &self.path))?;
            let end = segment.end.unwrap_or(stat.length).min(stat.length);
            let mut from = scan::locate(&*segment.file, segment.start, end, known)
                .map_err(Error::io("read", &self.path))?;
            loop {
                let mut lines = Assembler::new(String::new(), None, from);
                let stop = scan::scan(&*segment.file, from, end, 1 << 20, &mut lines)
                    .map_err(Error::io("read", &self.path))?;
                lines
                    .lines
                    .iter()
                    .filter(|line| line.stamp().position >= known)
                    .for_each(|line| self.push(line));
                self.write();
                if stop == from {
                    break;
                }
                from = stop;
            }
        }
        Ok(())
    }

    /// Takes a record; it is on disk with the next few, or after a [`write`](Self::write).
    pub(crate) fn push(&mut self, line: &Line) {
        let position = line.stamp().position;
        if self.first + self.fresh.len() as u64 / SLOT != position {
            self.write();
            self.first = position;
        }
        self.fresh.extend_from_slice(&line.short_hash());
    }

    /// Writes what was pushed, if it is worth it.
    pub(crate) fn write_lazily(&mut self) {
        if self.fresh.len() >= LAZY * SLOT as usize {
            self.write();
        }
    }

    /// Writes what was pushed. A failure only makes a later search slower.
    pub(crate) fn write(&mut self) {
        if let (Some(file), false, true) = (&self.file, self.fresh.is_empty(), self.first < MOST) {
            let _ = write_all_at(&**file, &self.fresh, self.first * SLOT);
        }
        self.first += self.fresh.len() as u64 / SLOT;
        self.fresh.clear();
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.write();
    }
}

/// What an index says, as a reader finds it.
#[derive(Debug)]
pub(crate) struct Slots(Vec<u8>);

impl Slots {
    /// Reads an index; one that is missing, or too large to be one, says nothing.
    pub(crate) fn read(disk: &dyn Disk, folder: &Path, log: LogName) -> Self {
        let read = || {
            let file = disk.open(&path(folder, log), Open::Read)?;
            let length = file.stat()?.length;
            read_range(&*file, 0, if length > MOST * SLOT { 0 } else { length })
        };
        Self(read().unwrap_or_default())
    }

    /// Returns the positions where an entry may be, newest first.
    pub(crate) fn candidates(&self, id: &EntryId) -> Vec<Position> {
        let wanted = id.short_hash();
        let matches = self.slots().filter(|(_, slot)| *slot == wanted);
        let mut positions: Vec<Position> = matches.map(|(position, _)| position).collect();
        positions.reverse();
        positions
    }

    /// Returns the first position after this one that the index says nothing about: a crash can have taken its slot.
    pub(crate) fn unknown_after(&self, position: Position) -> Position {
        let blank = self.slots().find(|(at, slot)| *at > position && slot.iter().all(|byte| *byte == 0));
        blank.map_or(self.0.len() as u64 / SLOT, |(at, _)| at).max(position + 1)
    }

    fn slots(&self) -> impl Iterator<Item = (Position, &[u8])> {
        self.0.chunks_exact(SLOT as usize).enumerate().map(|(position, slot)| (position as Position, slot))
    }
}

/// Returns the index's file.
pub(crate) fn path(folder: &Path, log: LogName) -> PathBuf {
    folder.join(format!("{}.ids", log.as_str()))
}

//! The newest lines of a log once more, in a file whose space was written in advance.
//!
//! To sync a file that has grown, the file system writes more than the bytes: its length, its map of blocks, a
//! transaction of its own journal around them. To sync bytes that replace others costs about half of that. So small
//! batches are written to the log, and once more here, and only this file is synced; the log itself is synced when this
//! file is full, when somebody else wants the log, or when it is closed. As long as the machine runs, the log reads
//! right. After a crash of the machine it may not: then readers take from here what the log lacks, and the next writer
//! puts it there.
//!
//! Every line in it stands in the log as well, at the same position and the same byte. So a journal that is left behind
//! does no harm, whatever became of the log since: what it says is either true of the log, or is not believed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, DiskFile, Extent, Open, Stat, look, read_range, write_all_at};
use super::retained::BLOCK;
use super::segment::{self, Segment};
use crate::backend::{LogName, Position};
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::stamp::Line;

/// Batches so large that this many fill it are not worth writing twice: their own bytes are what takes long.
const FEW: u64 = 4;
/// How long the first line is at most.
const LONGEST_HEADER: u64 = 1024;
/// How many bytes of the log before its first line must be the same. A line ends with its checksum; more of them would
/// only let damage to an older line keep the newest ones out.
const BEFORE: u64 = 32;

/// When a log gets a journal, and how large a one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journaling {
    /// How many durable appends come before it: to make one costs about as much as it saves them. `None`: it never gets
    /// one.
    pub(crate) after: Option<u32>,
    /// How many bytes it has.
    pub(crate) space: u64,
}

impl Default for Journaling {
    fn default() -> Self {
        Self { after: Some(8), space: 32 << 10 }
    }
}

/// The writing end, used under the session's lock.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    log: LogName,
    path: PathBuf,
    settings: Journaling,
    /// How many appends come before the file is made; `None`: it is done without, for instance because it failed once.
    patience: Option<u32>,
    file: Option<Box<dyn DiskFile>>,
    space: u64,
    reach: Option<Reach>,
    /// Somebody else left one behind.
    is_left: bool,
}

/// Up to where the log's lines are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach {
    segment: u32,
    /// Where in the log they end.
    until: u64,
    /// Where in the journal.
    end: u64,
}

/// A batch as it stands in the log.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) segment: u32,
    pub(crate) file: &'a dyn DiskFile,
    /// Where in that file it begins.
    pub(crate) from: u64,
    /// All before it is durable in the log itself.
    pub(crate) is_first: bool,
    pub(crate) lines: &'a [Line],
}

/// The first line: what the others are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    segment: u32,
    /// Where in that segment the first line stands.
    from: u64,
    /// The position of the first line.
    first: Position,
    /// What stands before it in the segment: another log, or another state of it, has something else there.
    before: String,
}

impl Journal {
    pub(crate) fn new(disk: &Arc<dyn Disk>, folder: &Path, log: LogName, settings: Journaling) -> Self {
        Self {
            disk: disk.clone(),
            folder: folder.to_owned(),
            log,
            path: path(folder, log),
            settings,
            patience: settings.after,
            file: None,
            space: 0,
            reach: None,
            is_left: false,
        }
    }

    /// Writes into the log what only the journal of somebody else may have. Returns from which byte on the log is not known
    /// to be durable because of that; the journal stays until it is. The session's lock must be held.
    pub(crate) fn put_back(&mut self) -> Result<Option<u64>> {
        self.is_left = exists(&*self.disk, &self.folder, self.log)?;
        let segments = match self.is_left {
            true => segment::open_chain(&*self.disk, &self.folder, self.log)?,
            false => Vec::new(),
        };
        let Some(newest) = segments.last() else { return Ok(None) };
        let Some(found) = Found::of(newest, &*self.disk, &self.path)? else { return Ok(None) };
        let path = segment::path(&self.folder, self.log, newest.number);
        let bytes = found.bytes.slice(..found.end_of_lines(0, found.header.first));
        // Also where the log says the same: what reads right now may still not be on the disk.
        let file = self.disk.open(&path, Open::Existing).map_err(Error::io("open", &path))?;
        write_all_at(&*file, &bytes, found.header.from).map_err(Error::io("write", &path))?;
        Ok(Some(found.header.from))
    }

    /// Returns which log's it is.
    pub(crate) fn log(&self) -> LogName {
        self.log
    }

    /// Makes a batch durable that was written to the log. `false`: the log itself must be synced.
    pub(crate) fn keep(&mut self, batch: &Batch<'_>) -> bool {
        match self.patience {
            None => return false,
            Some(0) => {}
            Some(patience) => {
                self.patience = Some(patience - 1);
                return false;
            }
        }
        self.try_to_keep(batch).unwrap_or_else(|_| {
            // It only saves time, and the log knows how to deal with a disk that fails.
            (self.patience, self.file, self.reach) = (None, None, None);
            false
        })
    }

    fn try_to_keep(&mut self, batch: &Batch<'_>) -> io::Result<bool> {
        let size: u64 = batch.lines.iter().map(|line| line.size() as u64 + 1).sum();
        if size * FEW > self.settings.space {
            return Ok(false);
        }
        let known = self.reach.filter(|reach| (reach.segment, reach.until) == (batch.segment, batch.from));
        let (mut bytes, at) = match known {
            Some(reach) if reach.end + size <= self.space => (Vec::with_capacity(size as usize), reach.end),
            _ if batch.is_first => {
                self.make_room()?;
                (self.header(batch)?, 0)
            }
            _ => return Ok(false),
        };
        for line in batch.lines {
            line.pieces().for_each(|piece| bytes.extend_from_slice(piece));
        }
        let end = at + bytes.len() as u64;
        let Some(file) = self.file.as_ref().filter(|_| end <= self.space) else {
            return Ok(false);
        };
        self.reach = None;
        write_all_at(&**file, &bytes, at)?;
        if !Defect::DropTheSyncOfTheJournal.is_on() {
            file.sync()?;
        }
        self.reach = Some(Reach { segment: batch.segment, until: batch.from + size, end });
        Ok(true)
    }

    fn header(&self, batch: &Batch<'_>) -> io::Result<Vec<u8>> {
        let header = Header {
            segment: batch.segment,
            from: batch.from,
            first: batch.lines.first().map_or(0, |line| line.stamp().position),
            before: before(batch.file, batch.from)?,
        };
        let mut line = header.to_line().map_err(io::Error::other)?.as_bytes().to_vec();
        line.push(b'\n');
        Ok(line)
    }

    /// Makes the file and writes all of it, so that its space is there for good.
    fn make_room(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let file = self.disk.open(&self.path, Open::Update)?;
        let (length, wanted) = (file.extent()?.length, self.settings.space);
        if length < wanted {
            write_all_at(&*file, &vec![0; (wanted - length) as usize], length)?;
            file.sync()?;
        }
        // Also if it was there: whoever made it may have died before its name was durable.
        self.disk.sync_folder(&self.folder)?;
        (self.file, self.space) = (Some(file), length.max(wanted));
        Ok(())
    }

    /// Somebody else had the lock, and may have removed the file. Where several write in turn, it is of little use.
    pub(crate) fn forget(&mut self) {
        if self.file.take().is_some() {
            (self.reach, self.patience) = (None, self.settings.after);
        }
    }

    /// Removes the file, now that all of the log is durable.
    pub(crate) fn close(&mut self) {
        let is_left = std::mem::take(&mut self.is_left);
        if self.file.take().is_some() || is_left {
            // Left behind, it is in the way of nothing.
            let _ = self.disk.remove_file(&self.path);
            (self.reach, self.patience) = (None, self.settings.after);
        }
    }
}

/// Returns whether a log has one.
pub(crate) fn exists(disk: &dyn Disk, folder: &Path, log: LogName) -> Result<bool> {
    Ok(look(disk, &path(folder, log))?.is_some())
}

/// Removes the one of a log that is durable without it. The session's lock must be held.
pub(crate) fn remove(disk: &dyn Disk, folder: &Path, log: LogName) -> Result<()> {
    let path = path(folder, log);
    match disk.remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Lets readers see in the newest segment what a crash of the machine has kept from it.
pub(crate) fn overlay(
    disk: &dyn Disk,
    folder: &Path,
    log: LogName,
    segments: &mut Vec<Segment>,
) -> Result<()> {
    let Some(newest) = segments.pop_if(|_| !Defect::IgnoreTheJournal.is_on()) else { return Ok(()) };
    let lines = match Found::of(&newest, disk, &path(folder, log))? {
        Some(found) => found
            .lines_of(&*newest.file)
            .map_err(Error::io("read", segment::path(folder, log, newest.number)))?,
        None => None,
    };
    let file = match lines {
        Some((from, bytes)) => Box::new(Overlaid { file: newest.file, from, bytes }),
        None => newest.file,
    };
    segments.push(Segment { file, ..newest });
    Ok(())
}

/// A journal as it is found: its first line, and what follows that.
struct Found {
    header: Header,
    bytes: Bytes,
}

impl Found {
    /// Returns the journal of a segment, if there is one.
    fn of(newest: &Segment, disk: &dyn Disk, path: &Path) -> Result<Option<Self>> {
        let file = match disk.open(path, Open::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        let opening = Bytes::from(read_range(&*file, 0, LONGEST_HEADER).map_err(Error::io("read", path))?);
        let Some((header, begin)) = Header::read(&opening) else { return Ok(None) };
        let is_of_it = || {
            let before = before(&*newest.file, header.from)?;
            // Before what lies beyond the end stands nothing, whatever the log.
            Ok(before == header.before && (header.from == 0 || !before.is_empty()))
        };
        if header.segment != newest.number || !is_of_it().map_err(Error::io("read", path))? {
            return Ok(None);
        }
        let length = file.extent().map_err(Error::io("look at", path))?.length;
        let bytes = read_range(&*file, begin, length).map_err(Error::io("read", path))?;
        Ok(Some(Self { header, bytes: bytes.into() }))
    }

    /// Returns the lines that the log has, which need not be read again, and those that it lacks; and where in it they begin.
    fn lines_of(&self, log: &dyn DiskFile) -> io::Result<Option<(u64, Bytes)>> {
        let present = read_range(log, self.header.from, self.header.from + self.bytes.len() as u64)?;
        let same = common(&present, &self.bytes);
        // The lines before are the log's own, so a look at the last of them says which comes next.
        let start = memchr::memrchr(b'\n', &self.bytes[..same]).map_or(0, |newline| newline + 1);
        let Some(next) = self.position_at(start) else { return Ok(None) };
        let end = self.end_of_lines(start, next);
        Ok((end > 0).then(|| (self.header.from, self.bytes.slice(..end))))
    }

    /// Returns the position that a line at some place must have; `None` if the line before it is none.
    fn position_at(&self, start: usize) -> Option<Position> {
        let end = start.checked_sub(1);
        let Some(end) = end else { return Some(self.header.first) };
        let line = memchr::memrchr(b'\n', &self.bytes[..end]).map_or(0, |newline| newline + 1);
        Line::parse(self.bytes.slice(line..end)).ok().map(|line| line.stamp().position + 1)
    }

    /// Returns where the whole lines end that follow each other from a position on. Older ones behind them do not.
    fn end_of_lines(&self, start: usize, mut next: Position) -> usize {
        let mut end = start;
        for newline in memchr::memchr_iter(b'\n', &self.bytes[start..]) {
            match Line::parse(self.bytes.slice(end..start + newline)) {
                Ok(line) if line.stamp().position == next => (end, next) = (start + newline + 1, next + 1),
                _ => break,
            }
        }
        end
    }
}

/// Returns how many bytes two pieces have in common at their beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.chunks(BLOCK as usize).zip(other.chunks(BLOCK as usize));
    let same = BLOCK as usize * blocks.take_while(|(one, other)| one == other).count();
    let same = same.min(one.len()).min(other.len());
    same + one[same..].iter().zip(&other[same..]).take_while(|(one, other)| one == other).count()
}

/// Returns the end of what stands before an offset.
fn before(file: &dyn DiskFile, offset: u64) -> io::Result<String> {
    let bytes = read_range(file, offset.saturating_sub(BEFORE), offset)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn path(folder: &Path, log: LogName) -> PathBuf {
    folder.join(format!("{}.journal", log.as_str()))
}

impl Header {
    fn to_line(&self) -> Result<Line> {
        segment::first_line("journal", self.first, &serde_json::json!({ "journal": self }))
    }

    /// Returns it, and where the lines begin.
    fn read(opening: &Bytes) -> Option<(Self, u64)> {
        #[derive(Deserialize)]
        struct Wrapped {
            journal: Header,
        }
        let length = memchr::memchr(b'\n', opening)?;
        let line = Line::parse(opening.slice(..length)).ok()?;
        let wrapped = serde_json::from_slice::<Wrapped>(&line.body()).ok()?;
        Some((wrapped.journal, length as u64 + 1))
    }
}

/// A file with some bytes in another file's stead.
#[derive(Debug)]
struct Overlaid {
    file: Box<dyn DiskFile>,
    from: u64,
    bytes: Bytes,
}

impl Overlaid {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

impl DiskFile for Overlaid {
    fn stat(&self) -> io::Result<Stat> {
        let stat = self.file.stat()?;
        Ok(Stat { length: stat.length.max(self.end()), ..stat })
    }

    fn extent(&self) -> io::Result<Extent> {
        let extent = self.file.extent()?;
        Ok(Extent { length: extent.length.max(self.end()), ..extent })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if (self.from..self.end()).contains(&offset) {
            let rest = &self.bytes[(offset - self.from) as usize..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            return Ok(count);
        }
        let reach = usize::try_from(self.from.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = if offset < self.from { reach.min(buffer.len()) } else { buffer.len() };
        self.file.read_at(&mut buffer[..count], offset)
    }

    fn append(&self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }
}

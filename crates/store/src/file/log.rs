//! The writing end of one log: used under the session's lock, by one thread at a time.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::disk::{Disk, DiskFile, Open, look_at_extent, read_range, write_all_at};
use super::document::replace;
use super::headroom::Headroom;
use super::index::Index;
use super::journal::{Batch, Journal};
use super::lock::{LockFile, Mark};
use super::quarantine::{Quarantine, sync_up};
use super::retained::{BLOCK, Retained, group_start};
use super::scan::{self, Assembler};
use super::segment::{self, Header};
use crate::backend::{Damage, Durability, LogName, Position};
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::id::EntryId;
use crate::stamp::Line;

/// How much may be written without a sync: it must be kept in memory in case the sync fails.
const MAX_RETAINED: usize = 64 << 20;

/// How far behind the log's end a mark may stand.
const MARK_REACH: u64 = 64 << 10;

/// The writing end of one log.
#[derive(Debug)]
pub(crate) struct LogFile {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    name: LogName,
    segment: u32,
    file: Box<dyn DiskFile>,
    path: PathBuf,
    /// Where the next segment would be.
    next_path: PathBuf,
    inode: u64,
    /// Which file goes before it, and where that one ends.
    before: Option<(u32, u64)>,
    /// Where its records begin.
    start: u64,
    /// How long the file was when we last looked.
    length: u64,
    headroom: Headroom,
    /// What it begins with, once somebody asked for that and it could be read.
    first: Option<EntryId>,
    /// The next position.
    next: Position,
    /// How much of it is known to be durable.
    synced: u64,
    /// How much of it is, with what the journal has.
    safe: u64,
    journal: Journal,
    /// From here on its lines were put back from a journal, and are not known to be durable.
    put_back: Option<u64>,
    /// The records from the last synced block on: a failed sync can take that block down with it, so they are written
    /// again from here.
    retained: Retained,
    /// The file ends in the middle of a line.
    torn: bool,
    /// Where a crash of the machine left a hole with whole lines behind it: their positions are given out again, so
    /// nothing may be added to this file any more.
    unfinished: Option<u64>,
    names: Names,
    /// A sync failed; nothing may be added to this file any more.
    condemned: bool,
    index: Index,
}

/// Which names may not be durable yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Durable,
    /// The file's own: whoever gave it to a new segment, or to a mended log, may have died before it was durable.
    Found,
    /// Those of its folders too.
    New,
}

impl LogFile {
    /// Opens a log, whose folder exists, and makes its first file if it has none.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        mut journal: Journal,
        headroom: Headroom,
        found: &mut Vec<Damage>,
        quarantine: &Quarantine,
    ) -> Result<Self> {
        let name = journal.log();
        let put_back = journal.put_back()?;
        let segments = segment::open_all(&**disk, folder, name)?;
        let (number, start, first) =
            segments.last().map_or((0, 0, 0), |last| (last.number, last.start, last.first));
        let before = segments.iter().rev().nth(1).and_then(|before| Some((before.number, before.end?)));
        let path = segment::path(folder, name, number);
        let file = disk.open(&path, Open::Append).map_err(Error::io("open", &path))?;
        let stat = file.stat().map_err(Error::io("look at", &path))?;
        let mut log = Self {
            disk: disk.clone(),
            folder: folder.to_owned(),
            name,
            segment: number,
            file,
            inode: stat.inode,
            length: stat.length,
            headroom,
            first: None,
            next: first,
            before,
            start,
            synced: stat.length,
            safe: stat.length,
            journal,
            put_back,
            retained: Retained::default(),
            torn: false,
            unfinished: None,
            names: if stat.length == 0 { Names::New } else { Names::Found },
            condemned: false,
            index: Index::open(disk, folder, name),
            next_path: segment::path(folder, name, number + 1),
            path,
        };
        let name = segment::file_name(log.name, number);
        let Some(newest) = segments.last() else {
            return Ok(log);
        };
        let mut tail = scan::last(newest, &name, stat.length).map_err(Error::io("read", &log.path))?;
        if log.index.reaches_beyond(tail.next().unwrap_or(first)) {
            // The log was longer once, or old lines stand behind newer ones: then its end says too little, and what
            // was added at a position that is taken would never be read.
            tail = scan::whole(newest, &name, stat.length).map_err(Error::io("read", &log.path))?;
        }
        log.next = tail.next().unwrap_or(first);
        log.set_aside(&tail, found, quarantine)?;
        log.retain_from_disk(stat.length, stat.length)?;
        // A file that holds no record is left alone as well: closed off and torn once more, it could not be told from
        // one whose records are damaged.
        let bare = tail.lines.is_empty() && stat.length > start;
        log.unfinished = (tail.unfinished || bare).then_some(tail.good_end);
        log.index.catch_up(&segments, log.next)?;
        Ok(log)
    }

    /// Returns which of the session's logs it is.
    pub(crate) fn name(&self) -> LogName {
        self.name
    }

    /// Returns whether it begins with another record than this one: a session that was begun in another's place may have come
    /// just as far.
    pub(crate) fn is_another_than(&mut self, first: Option<&EntryId>) -> Result<bool> {
        let Some(first) = first else { return Ok(false) };
        if self.first.is_none() {
            self.first = segment::first_id(&*self.disk, &self.folder, self.name)?;
        }
        Ok(self.first.as_ref().is_some_and(|own| own != first))
    }

    /// Returns the next position.
    pub(crate) fn next(&self) -> Position {
        self.next
    }

    /// Takes in what others did since this log was last locked. `false`: open it again.
    pub(crate) fn refresh(
        &mut self,
        lock: &LockFile,
        found: &mut Vec<Damage>,
        quarantine: &Quarantine,
    ) -> Result<bool> {
        let stat = match look_at_extent(&*self.disk, &self.path)? {
            Some(stat) if stat.inode == self.inode => stat,
            _ => return Ok(false),
        };
        if look_at_extent(&*self.disk, &self.next_path)?.is_some() {
            return Ok(false);
        }
        if stat.length == self.length {
            return Ok(true);
        }
        if stat.length < self.length || self.torn {
            return Ok(false);
        }
        let name = segment::file_name(self.name, self.segment);
        let mut fresh = Assembler::new(name, Some(self.next), self.length);
        scan::scan(&*self.file, self.length, stat.length, usize::MAX, &mut fresh).map_err(self.at("read"))?;
        for line in &fresh.lines {
            self.index.push(line);
        }
        self.index.write_lazily();
        let added = read_range(&*self.file, self.length, stat.length).map_err(self.at("read"))?;
        self.retained.push_found(added.into());
        self.length = stat.length;
        // Others sync what they write, but not what is ours.
        if !lock.is_ours(self.name) {
            (self.synced, self.safe) = (stat.length, stat.length);
            self.retained.trim(self.synced);
        }
        self.next = fresh.next().unwrap_or(self.next);
        found.append(&mut fresh.damage);
        self.set_aside(&fresh, found, quarantine)?;
        Ok(true)
    }

    /// Copies what lies after the last whole record to the quarantine; the next write closes it off.
    fn set_aside(
        &mut self,
        tail: &Assembler,
        found: &mut Vec<Damage>,
        quarantine: &Quarantine,
    ) -> Result<()> {
        let last =
            read_range(&*self.file, self.length.saturating_sub(1), self.length).map_err(self.at("read"))?;
        self.torn = last.first().is_some_and(|&byte| byte != b'\n') && !Defect::SkipTheTailCheck.is_on();
        let Some(damage) = tail.tail(self.length) else {
            return Ok(());
        };
        if Defect::CutTheTornTail.is_on() {
            self.file.truncate(damage.offset).map_err(self.at("cut"))?;
            (self.length, self.torn) = (damage.offset, false);
            return Ok(());
        }
        let bytes = read_range(&*self.file, damage.offset, self.length).map_err(self.at("read"))?;
        quarantine.keep(&damage, &bytes)?;
        found.push(damage);
        Ok(())
    }

    /// Makes durable what somebody else, or an earlier life of this store, had not made sure of.
    pub(crate) fn recover(&mut self, lock: &mut LockFile) -> Result<()> {
        let mark = lock.mark(self.name);
        let is_condemned = mark.is_some_and(|mark| mark.condemned) && !Defect::ForgetAFailedSync.is_on();
        let marked = mark.map(|mark| if mark.segment == self.segment { mark.from } else { 0 });
        let from = marked.into_iter().chain(self.put_back.take()).min();
        if let Some(from) = from.filter(|_| !Defect::TrustADeadWriter.is_on()) {
            self.redo(from.min(self.length), is_condemned, lock)?;
        }
        lock.clear(self.name)?;
        self.close_journal();
        Ok(())
    }

    /// Writes everything from a byte on again, and syncs it: in place, or to the next segment if this one is condemned.
    fn redo(&mut self, from: u64, is_condemned: bool, lock: &mut LockFile) -> Result<()> {
        let block = from - from % BLOCK;
        self.retain_from_disk(block, self.length)?;
        self.names = Names::New;
        self.condemned = is_condemned;
        if !is_condemned {
            // The same bytes in the same place: readers see no difference, but the pages are dirty again,
            // so a sync that succeeds now has really written them.
            let bytes = read_range(&*self.file, block, self.length).map_err(self.at("read"))?;
            let file = self.disk.open(&self.path, Open::Existing).map_err(self.at("open"))?;
            write_all_at(&*file, &bytes, block).map_err(self.at("write"))?;
        }
        self.sync(lock)
    }

    /// Appends lines at the next position. Returns how many there was room for.
    pub(crate) fn append(
        &mut self,
        lines: &[Line],
        durability: Durability,
        lock: &mut LockFile,
    ) -> Result<usize> {
        if !lock.is_ours(self.name) {
            self.journal.forget();
        }
        if self.unfinished.is_some() {
            self.next_segment()?;
            (self.synced, self.safe) = (self.length, self.length);
        }
        if durability > Durability::Off && !Defect::ForgetTheMark.is_on() {
            self.mark(lock)?;
        }
        if durability == Durability::Written {
            self.headroom.take(&*self.file, self.length, self.length.saturating_sub(self.synced));
        }
        let (count, size) = self.write(lines)?;
        let lines = &lines[..count];
        // From here on the records are in the log, whatever becomes of the sync.
        let (from, is_alone) = (self.length, !self.torn);
        if std::mem::take(&mut self.torn) {
            self.retained.push_found(Bytes::from_static(b"\n"));
        }
        self.length += size as u64;
        self.next += lines.len() as Position;
        for line in lines {
            self.retained.push(line);
            self.index.push(line);
        }
        match durability {
            Durability::Synced if Defect::AcknowledgeBeforeSync.is_on() => {}
            // The mark stays for the next one, unless somebody else is about to see it.
            Durability::Synced if lock.others_wait() => self.settle(lock)?,
            Durability::Synced if is_alone && self.keep(lines, from) => self.safe = self.length,
            Durability::Synced => self.make_durable(lock)?,
            Durability::Written if self.retained.size() > MAX_RETAINED => self.make_durable(lock)?,
            Durability::Written => {}
            Durability::Off => {
                (self.synced, self.safe) = (self.length, self.length);
                self.retained.trim(self.synced);
            }
        }
        // After the sync, which would have to write it too; a search looks behind the index's end.
        self.index.write_lazily();
        Ok(count)
    }

    /// Makes a batch durable that was written just now, without a sync of the log, if that can be.
    fn keep(&mut self, lines: &[Line], from: u64) -> bool {
        if self.condemned || self.names != Names::Durable || self.safe != from {
            return false;
        }
        let is_first = self.synced == from;
        self.journal.keep(&Batch { segment: self.segment, file: &*self.file, from, is_first, lines })
    }

    /// Makes everything written so far durable, and says so in the lock file.
    pub(crate) fn settle(&mut self, lock: &mut LockFile) -> Result<()> {
        self.make_durable(lock)?;
        lock.clear(self.name)
    }

    /// Says in the lock file from where on records may not be durable.
    ///
    /// A mark that reaches back further than it must costs whoever finds it a little work, and setting one for each
    /// batch costs every batch; so it is moved on only now and then.
    fn mark(&self, lock: &mut LockFile) -> Result<()> {
        let near = |mark: &Mark| {
            mark.segment == self.segment
                && self.length.saturating_sub(mark.from) < MARK_REACH
                && !mark.condemned
        };
        if lock.mark(self.name).is_some_and(|mark| near(mark) || !self.is_durable()) {
            return Ok(());
        }
        lock.begin(self.name, self.segment, self.length)
    }

    /// Returns whether a crash of the machine takes nothing away.
    pub(crate) fn is_safe(&self) -> bool {
        self.safe == self.length && !self.condemned && self.names == Names::Durable
    }

    /// Removes the journal, now that the log itself is durable.
    pub(crate) fn close_journal(&mut self) {
        if self.is_durable() {
            self.journal.close();
        }
    }

    /// Takes over the room that another process took.
    pub(crate) fn inherit_headroom(&mut self) {
        self.headroom.inherit();
    }

    /// Gives back the room ahead of the log's end.
    pub(crate) fn give_back(&mut self) {
        self.headroom.give_back(&*self.file, self.length);
    }

    /// Returns whether nothing is left to be synced.
    fn is_durable(&self) -> bool {
        self.synced == self.length && !self.condemned && self.names == Names::Durable
    }

    fn make_durable(&mut self, lock: &mut LockFile) -> Result<()> {
        if self.is_durable() { Ok(()) } else { self.sync(lock) }
    }

    /// Brings the index up to the log's end.
    pub(crate) fn write_index(&mut self) {
        self.index.write();
    }

    /// Returns whether a failed sync waits for its records to be written elsewhere.
    pub(crate) fn is_condemned(&self) -> bool {
        self.condemned
    }

    fn sync(&mut self, lock: &mut LockFile) -> Result<()> {
        self.headroom.give_back(&*self.file, self.length);
        if self.condemned || self.sync_file().is_err() {
            // A second sync would report success although the first one's data is gone. Should this process end before
            // there is another file, the next one has to know; where not even that can be said, this one goes on.
            self.condemned = true;
            let _ = lock.condemn(self.name, self.segment, self.retained.from());
            self.next_segment()?;
        }
        match self.names {
            Names::Durable => {}
            Names::Found => self.disk.sync_folder(&self.folder).map_err(Error::io("sync", &self.folder))?,
            Names::New => self.sync_folders()?,
        }
        self.names = Names::Durable;
        (self.synced, self.safe) = (self.length, self.length);
        self.retained.trim(self.synced);
        Ok(())
    }

    fn sync_file(&self) -> std::io::Result<()> {
        if Defect::DropTheSync.is_on() {
            return Ok(());
        }
        match self.file.sync() {
            Err(_) if Defect::SyncAgainAfterAFailure.is_on() => self.file.sync(),
            done => done,
        }
    }

    /// Writes a batch with one call. Where there is no room for all of it, the file is cut back to the last whole
    /// group. Returns how many lines are in, and how many bytes.
    fn write(&mut self, lines: &[Line]) -> Result<(usize, usize)> {
        let closing: &[u8] = if self.torn { b"\n" } else { b"" };
        let closing = std::iter::once(closing).filter(|closing| !closing.is_empty());
        let mut pieces = Vec::with_capacity(2 * lines.len() + 1);
        pieces.extend(closing.chain(lines.iter().flat_map(Line::pieces)).map(IoSlice::new));
        let (mut count, mut size) = (lines.len(), pieces.iter().map(|piece| piece.len()).sum());
        if size == 0 {
            return Ok((0, 0));
        }
        let (mut rest, mut written) = (pieces.as_mut_slice(), 0);
        let failed = loop {
            match self.file.append_pieces(rest) {
                Ok(0) => break Some(std::io::ErrorKind::WriteZero.into()),
                Ok(_) if Defect::IgnoreAShortWrite.is_on() => written = size,
                Ok(count) => {
                    written += count;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
            if written == size {
                break None;
            }
        };
        if let Some(error) = failed {
            (count, size) = whole_groups(lines, usize::from(self.torn), written);
            // Should this fail, the torn line is found at the next look and set aside.
            let cut = written == 0 || self.file.truncate(self.length + size as u64).is_ok();
            if count == 0 || !cut {
                return Err(self.at("append to")(error));
            }
        }
        let length = self.file.extent().map_err(self.at("look at"))?.length;
        if Defect::IgnoreAShortWrite.is_on() {
            return Ok((count, size));
        }
        if length != self.length + size as u64 {
            // Somebody appends without the lock. Our lines are whole; the next look finds them in their place.
            return Err(Error::Contended(self.path.display().to_string()));
        }
        Ok((count, size))
    }

    /// Leaves a file that nothing may be added to, and writes every record since its last synced block to a new one.
    fn next_segment(&mut self) -> Result<()> {
        let number = segment::next_number(&*self.disk, &self.folder, self.name)?;
        let path = segment::path(&self.folder, self.name, number);
        if let Some(end) = self.unfinished {
            self.retain_from_disk(end.min(self.retained.from()), end)?;
        }
        let records = self.retained.lines();
        let first = records.first().map_or(self.next, |line| line.stamp().position);
        // Where all its records are written again, this file counts for nothing: its header stands in the first block,
        // and may be lost with it.
        let (after, end) = match self.before {
            Some(before) if self.retained.from() == self.start => before,
            _ => (self.segment, self.retained.from()),
        };
        let header = Header { after, end, first }.to_line()?;
        let mut bytes = Vec::with_capacity(self.retained.size() + 256);
        for line in std::iter::once(&header).chain(&records) {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        // Its header cuts the older file short as soon as it can be read, so it appears with everything in it.
        replace(&*self.disk, &path, &bytes)?;
        let file = self.disk.open(&path, Open::Append).map_err(Error::io("open", &path))?;
        self.inode = file.stat().map_err(Error::io("look at", &path))?.inode;
        self.file = file;
        self.headroom.forget();
        self.path = path;
        self.next_path = segment::path(&self.folder, self.name, number + 1);
        self.segment = number;
        self.before = Some((after, end));
        self.start = header.as_bytes().len() as u64 + 1;
        self.length = bytes.len() as u64;
        self.retained = Retained::new(self.start, bytes.split_off(self.start as usize).into());
        self.torn = false;
        self.unfinished = None;
        self.condemned = false;
        Ok(())
    }

    /// Takes the records from the block that holds `offset` on, up to `end`, from the file, which is right as long as
    /// it lives.
    fn retain_from_disk(&mut self, offset: u64, end: u64) -> Result<()> {
        let block = offset - offset % BLOCK;
        let mut reach = BLOCK;
        loop {
            let from = self.start.max(block.saturating_sub(reach));
            let bytes = read_range(&*self.file, from, end).map_err(self.at("read"))?;
            let before = (block.saturating_sub(from) as usize).min(bytes.len());
            let newline = memchr::memrchr(b'\n', &bytes[..before]).map(|newline| newline + 1);
            let whole = newline.and_then(|newline| group_start(&bytes, newline));
            if from == self.start || whole.is_some() {
                let skip = whole.unwrap_or(0);
                self.retained = Retained::new(from + skip as u64, bytes[skip..].to_vec().into());
                return Ok(());
            }
            reach *= 4;
        }
    }

    /// Makes the names of a new file and of a new session durable.
    fn sync_folders(&self) -> Result<()> {
        if Defect::DropTheFolderSync.is_on() {
            return Ok(());
        }
        let root = self.folder.ancestors().nth(2).unwrap_or(&self.folder);
        sync_up(&*self.disk, root, &self.folder)
    }

    fn at(&self, action: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        Error::io(action, self.path.clone())
    }
}

/// Returns how many lines of whole groups fit into what was written, and how many bytes they take.
fn whole_groups(lines: &[Line], prefix: usize, written: usize) -> (usize, usize) {
    let (mut whole, mut at) = ((0, 0), prefix);
    for (index, line) in lines.iter().enumerate() {
        at += line.size() + 1;
        if at > written {
            break;
        }
        if line.stamp().left == 0 || Defect::SplitAGroup.is_on() {
            whole = (index + 1, at);
        }
    }
    whole
}

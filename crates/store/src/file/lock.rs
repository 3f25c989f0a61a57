//! The lock file of a session: who writes now, and what a writer that died had not yet made sure of.
//!
//! The file is never deleted, since that would make two holders. Its one page is written in advance, so that
//! marking costs no allocation. What the page says matters only while the machine runs: after a crash of the
//! machine the disk itself is the truth.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk::{Disk, DiskFile, Open, read_into, read_range, write_all_at};
use crate::backend::LogName;
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::lease::Holder;

const PAGE: usize = 4096;
const HOLDER: usize = 0;
const HOLDER_SIZE: usize = 256;
const MARKS: usize = HOLDER + HOLDER_SIZE;
const MARK_SIZE: usize = 64;
/// What the mark of a segment says whose sync failed.
const FAILED: &str = "failed";
const WAITING: usize = 1024;
const WAITING_SIZE: usize = 64;
/// A waiter announces itself at least this often.
const FRESH: u128 = 200;
/// How long a holder stays away when others wait: enough for them to read what it wrote and to try again.
const COURTESY: Duration = Duration::from_millis(2);

/// Bytes of a log that were written and not yet known to be durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// In which segment they begin.
    pub(crate) segment: u32,
    /// At which byte.
    pub(crate) from: u64,
    /// Which store wrote them; ours, unless another process died or is not done.
    pub(crate) owner: String,
    /// A sync of them failed. What is written into that segment may never get to the disk, whatever a sync says.
    pub(crate) condemned: bool,
}

/// A session's lock file, open.
#[derive(Debug)]
pub(crate) struct LockFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    inode: u64,
    /// Names this store in marks.
    owner: String,
    /// What the page says when this process holds it.
    this_process: Vec<u8>,
    marks: [Option<Mark>; 3],
    others_wait: bool,
    /// The page was seen whole; it never gets shorter.
    whole: bool,
    /// What the page said of marks when they were last read: mostly what it still says.
    seen: Vec<u8>,
}

impl LockFile {
    /// Opens the lock file, making it if it is not there.
    pub(crate) fn open(disk: &Arc<dyn Disk>, folder: &Path, owner: &str) -> Result<Self> {
        let path = folder.join("lock");
        let file = disk.open(&path, Open::Update).map_err(Error::io("open", &path))?;
        let stat = file.stat().map_err(Error::io("look at", &path))?;
        let marks = [const { None }; 3];
        Ok(Self {
            disk: disk.clone(),
            path,
            file,
            inode: stat.inode,
            owner: owner.to_owned(),
            this_process: slot(&Holder::this_process("write").to_string(), HOLDER_SIZE),
            marks,
            others_wait: false,
            whole: false,
            seen: Vec::new(),
        })
    }

    /// Tries to become the holder for as long as `patience`.
    pub(crate) fn acquire(&mut self, what: &dyn Display, patience: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut announced = None;
        while !self.file.try_lock().map_err(Error::io("lock", &self.path))? {
            if begun.elapsed() >= patience {
                let holder = self.holder();
                return Err(Error::Busy { what: what.to_string(), holder, waited: begun.elapsed() });
            }
            if announced.is_none_or(|at: Instant| at.elapsed().as_millis() > FRESH / 4) {
                self.announce();
                announced = Some(Instant::now());
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        if let Err(error) = self.after_locking() {
            self.release();
            return Err(error);
        }
        Ok(())
    }

    /// Returns whether the file that is locked is still the one that others will lock.
    pub(crate) fn is_current(&self) -> bool {
        Defect::ForgetTheInodeCheck.is_on()
            || self.disk.extent(&self.path).is_ok_and(|found| found.inode == self.inode)
    }

    fn after_locking(&mut self) -> Result<()> {
        if !self.whole {
            let length = self.file.stat().map_err(Error::io("look at", &self.path))?.length;
            if length < PAGE as u64 {
                let blank = vec![b' '; PAGE - length as usize];
                write_all_at(&*self.file, &blank, length).map_err(Error::io("write", &self.path))?;
            }
            self.whole = true;
        }
        let mut page = [0; WAITING + WAITING_SIZE];
        read_into(&mut page, &*self.file, 0).map_err(Error::io("read", &self.path))?;
        let marks = &page[MARKS..MARKS + self.marks.len() * MARK_SIZE];
        if self.seen != marks {
            for (slot, mark) in marks.chunks(MARK_SIZE).zip(&mut self.marks) {
                *mark = read_mark(slot);
            }
            self.seen = marks.to_vec();
        }
        self.others_wait = is_fresh(&page[WAITING..], &self.owner);
        if page[HOLDER..HOLDER + HOLDER_SIZE] == *self.this_process {
            return Ok(());
        }
        write_all_at(&*self.file, &self.this_process, HOLDER as u64).map_err(Error::io("write", &self.path))
    }

    /// Returns what is not known to be durable in a log.
    pub(crate) fn mark(&self, log: LogName) -> Option<&Mark> {
        self.marks[log as usize].as_ref()
    }

    /// Returns whether somebody else's mark stands there.
    pub(crate) fn is_anothers(&self, log: LogName) -> bool {
        self.mark(log).is_some_and(|mark| mark.owner != self.owner)
    }

    /// Returns whether our own mark stands there.
    pub(crate) fn is_ours(&self, log: LogName) -> bool {
        self.mark(log).is_some_and(|mark| mark.owner == self.owner)
    }

    /// Returns whether there was a mark when the lock was last held.
    pub(crate) fn is_marked(&self) -> bool {
        self.marks.iter().any(Option::is_some)
    }

    /// Returns whether somebody waits for the lock.
    pub(crate) fn others_wait(&self) -> bool {
        self.others_wait
    }

    /// Says that bytes are about to be written.
    pub(crate) fn begin(&mut self, log: LogName, segment: u32, from: u64) -> Result<()> {
        self.set_mark(log, Some(Mark { segment, from, owner: self.owner.clone(), condemned: false }))
    }

    /// Says that a sync of them failed, from some byte on where there is no mark yet.
    pub(crate) fn condemn(&mut self, log: LogName, segment: u32, from: u64) -> Result<()> {
        let (segment, from) = self.mark(log).map_or((segment, from), |mark| (mark.segment, mark.from));
        self.set_mark(log, Some(Mark { segment, from, owner: self.owner.clone(), condemned: true }))
    }

    /// Makes somebody else's mark our own.
    pub(crate) fn take_over(&mut self, log: LogName) -> Result<()> {
        let mark = self.mark(log).cloned();
        self.set_mark(log, mark.map(|mark| Mark { owner: self.owner.clone(), ..mark }))
    }

    /// Says that all of them are durable.
    pub(crate) fn clear(&mut self, log: LogName) -> Result<()> {
        self.set_mark(log, None)
    }

    fn set_mark(&mut self, log: LogName, mark: Option<Mark>) -> Result<()> {
        if self.marks[log as usize] == mark {
            return Ok(());
        }
        let text = mark.as_ref().map_or(String::new(), |mark| {
            let failed = if mark.condemned { FAILED } else { "" };
            format!("{} {} {} {failed}", mark.segment, mark.from, mark.owner)
        });
        // Should this fail, nobody knows what the page says.
        self.seen.clear();
        self.write(&text, MARKS + log as usize * MARK_SIZE, MARK_SIZE)?;
        self.marks[log as usize] = mark;
        Ok(())
    }

    /// Gives the lock back, and lets others in if they wait.
    pub(crate) fn release(&mut self) {
        // A lock that cannot be given back is given back when the file is closed; there is nothing else to do.
        let _ = self.file.unlock();
        if Defect::UnlinkTheLock.is_on() {
            let _ = self.disk.remove_file(&self.path);
        }
        if std::mem::take(&mut self.others_wait) {
            std::thread::sleep(COURTESY);
        }
    }

    fn announce(&self) {
        // Only a courtesy: without it this process waits a little longer.
        let _ = self.write(&format!("{} {}", now(), self.owner), WAITING, WAITING_SIZE);
    }

    fn holder(&self) -> String {
        let text = read_range(&*self.file, HOLDER as u64, HOLDER_SIZE as u64).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        if text.is_empty() { "another process".into() } else { text }
    }

    fn write(&self, text: &str, at: usize, size: usize) -> Result<()> {
        write_all_at(&*self.file, &slot(text, size), at as u64).map_err(Error::io("write", &self.path))
    }
}

fn slot(text: &str, size: usize) -> Vec<u8> {
    let mut slot = text.as_bytes().to_vec();
    slot.resize(size - 1, b' ');
    slot.push(b'\n');
    slot
}

fn read_mark(slot: &[u8]) -> Option<Mark> {
    let mut fields = std::str::from_utf8(slot).ok()?.split_whitespace();
    let (segment, from) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let owner = fields.next()?.to_owned();
    Some(Mark { segment, from, owner, condemned: fields.next() == Some(FAILED) })
}

fn is_fresh(slot: &[u8], owner: &str) -> bool {
    if slot.first().is_none_or(|first| !first.is_ascii_digit()) {
        return false;
    }
    let text = String::from_utf8_lossy(slot);
    let mut fields = text.split_whitespace();
    let at: Option<u128> = fields.next().and_then(|at| at.parse().ok());
    at.is_some_and(|at| now().abs_diff(at) < FRESH) && fields.next().is_some_and(|waiting| waiting != owner)
}

fn now() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

//! One session's folder as this process holds it: its lock and the writing ends of its logs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::disk::{Disk, look};
use super::headroom::Headroom;
use super::journal::{self, Journal, Journaling};
use super::lock::LockFile;
use super::log::LogFile;
use super::quarantine::{Quarantine, make_folder};
use super::{rewrite, segment};
use crate::backend::{Append, Damage, Durability, Known, LogKey, Position, Rewrite};
use crate::error::{Error, Result};
use crate::id::{EntryId, SessionId};
use crate::stamp::Line;

/// How often a lock file that was replaced under us is opened again.
const REOPENINGS: usize = 16;

/// One session's folder.
#[derive(Debug)]
pub(crate) struct Folder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    session: SessionId,
    owner: String,
    quarantine: Quarantine,
    journaling: Journaling,
    /// As every log has it that is opened.
    headroom: Headroom,
    state: Mutex<State>,
}

/// Whether a log that has no file gets one. One that was moved away may come back, and must find its place free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    IfAbsent,
    Never,
}

#[derive(Debug, Default)]
struct State {
    lock: Option<LockFile>,
    logs: [Option<LogFile>; 3],
}

impl Folder {
    pub(crate) fn new(
        disk: &Arc<dyn Disk>,
        root: &Path,
        session: &SessionId,
        owner: &str,
        journaling: Journaling,
        headroom: Headroom,
    ) -> Self {
        Self {
            disk: disk.clone(),
            path: root.join("sessions").join(session.as_str()),
            session: session.clone(),
            owner: owner.to_owned(),
            quarantine: Quarantine::new(disk, root, session),
            journaling,
            headroom,
            state: Mutex::default(),
        }
    }

    /// Appends at a position, or says where the log ends; to a log that begins with some record, if one is named.
    pub(crate) fn append(
        &self,
        key: &LogKey,
        first: Option<&EntryId>,
        at: Position,
        lines: &[Line],
        durability: Durability,
        patience: Duration,
    ) -> Result<Append> {
        if at == 0 {
            make_folder(&*self.disk, &self.path)?;
        }
        let done = self.locked(patience, |lock, logs, folder| {
            let mut found = Vec::new();
            let begin = if at == 0 { Begin::IfAbsent } else { Begin::Never };
            let Some(log) = folder.open_log(key, lock, logs, &mut found, begin)? else {
                return Ok(Append::Moved { next: 0 });
            };
            if log.is_condemned() {
                log.settle(lock)?;
            }
            if log.next() != at || log.is_another_than(first)? {
                return Ok(Append::Moved { next: log.next() });
            }
            let count = log.append(lines, durability, lock)?;
            Ok(match count == lines.len() {
                true => Append::Done { durability, found },
                false => Append::Part { count, durability, found },
            })
        });
        done.map(|done| done.unwrap_or(Append::Moved { next: 0 }))
    }

    /// Makes a log durable as it is now.
    pub(crate) fn settle(&self, key: &LogKey, patience: Duration) -> Result<()> {
        let done = self.locked(patience, |lock, logs, folder| {
            match folder.open_log(key, lock, logs, &mut Vec::new(), Begin::Never)? {
                Some(log) => {
                    log.settle(lock)?;
                    log.close_journal();
                    log.write_index();
                    Ok(())
                }
                None => Ok(()),
            }
        });
        done.map(Option::unwrap_or_default)
    }

    /// Runs something while no process writes to this session.
    pub(crate) fn exclusively<T>(&self, patience: Duration, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = self.locked(patience, |_, _, _| work())?;
        done.ok_or_else(|| Error::Gone(self.session.clone()))
    }

    /// Mends a log.
    pub(crate) fn rewrite(&self, key: &LogKey, known: &Known, patience: Duration) -> Result<Rewrite> {
        let done = self.locked(patience, |lock, logs, folder| {
            logs[key.name as usize] = None;
            // Whoever finds a mark that is not theirs has no journal any more.
            lock.take_over(key.name)?;
            let done = rewrite::rewrite(&*folder.disk, &folder.path, &folder.quarantine, key.name, known)?;
            journal::remove(&*folder.disk, &folder.path, key.name)?;
            Ok(done)
        })?;
        done.ok_or_else(|| Error::Gone(self.session.clone()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes journals, and takes back marks that say no more than that this process was here.
    fn leave(&mut self) {
        let State { lock, logs } = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(lock) = lock.as_mut().filter(|lock| lock.is_marked()) else {
            return;
        };
        // Who finds them afterwards makes sure of what is durable already: no more than a waste of time.
        if lock.acquire(&"a session", Duration::ZERO).is_err() {
            return;
        }
        // What is at the path now may be another session's.
        let is_there = lock.is_current();
        for log in logs.iter_mut().flatten() {
            let is_ours = is_there && lock.is_ours(log.name());
            if is_ours {
                log.give_back();
            }
            if is_ours && log.is_safe() && log.settle(lock).is_ok() {
                log.close_journal();
            }
        }
        lock.release();
    }

    fn is_missing(&self) -> bool {
        matches!(self.disk.stat(&self.path), Err(error) if error.kind() == std::io::ErrorKind::NotFound)
    }

    fn open_log<'a>(
        &self,
        key: &LogKey,
        lock: &mut LockFile,
        logs: &'a mut [Option<LogFile>; 3],
        found: &mut Vec<Damage>,
        begin: Begin,
    ) -> Result<Option<&'a mut LogFile>> {
        let slot = &mut logs[key.name as usize];
        let is_anothers = lock.is_anothers(key.name);
        // Others may have lines in their journal that the log lacks; those are looked for when it is opened.
        if let Some(log) = slot
            && (is_anothers && journal::exists(&*self.disk, &self.path, key.name)?
                || !log.refresh(lock, found, &self.quarantine)?)
        {
            *slot = None;
        }
        if let Some(log) = slot {
            if is_anothers {
                log.inherit_headroom();
                log.recover(lock)?;
            }
            return Ok(Some(log));
        }
        let first = segment::path(&self.path, key.name, 0);
        if begin == Begin::Never && look(&*self.disk, &first)?.is_none() {
            return Ok(None);
        }
        // Before their journal is removed: whoever finds a mark that is not theirs has none any more.
        lock.take_over(key.name)?;
        let journal = Journal::new(&self.disk, &self.path, key.name, self.journaling);
        let mut log = LogFile::open(&self.disk, &self.path, journal, self.headroom, found, &self.quarantine)?;
        if is_anothers {
            log.inherit_headroom();
        }
        let recovered = log.recover(lock);
        // A mark of our own means nothing to do only as long as we remember what it stands for.
        if recovered.is_ok() || log.is_condemned() {
            *slot = Some(log);
        }
        recovered.map(|()| slot.as_mut())
    }

    /// Runs something under the lock; `None` if there is no such folder.
    fn locked<T>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut LockFile, &mut [Option<LogFile>; 3], &Self) -> Result<T>,
    ) -> Result<Option<T>> {
        // A thread that panicked while it held the state left files that the next look at them checks anyway.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { lock: slot, logs } = &mut *state;
        for _ in 0..REOPENINGS {
            let lock = match slot {
                Some(lock) => lock,
                None if self.is_missing() => return Ok(None),
                None => slot.insert(LockFile::open(&self.disk, &self.path, &self.owner)?),
            };
            lock.acquire(&format_args!("session {}", self.session), patience)?;
            // Whoever deletes or replaces the lock file makes two holders; only the file at the path counts.
            if lock.is_current() {
                let done = work(lock, logs, self);
                lock.release();
                return done.map(Some);
            }
            lock.release();
            *slot = None;
            *logs = Default::default();
        }
        Err(Error::Contended(self.path.display().to_string()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.leave();
    }
}

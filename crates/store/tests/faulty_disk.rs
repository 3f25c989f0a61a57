//! A disk that fails when it is told to: the real one, with a fault before the call.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rethread_store::{Disk, DiskFile, Open, RealDisk, Stat};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The next syncs of a log file fail, so many of them.
    Sync(u32),
    /// The next sync of a log file fails, and so many changing calls later the process dies.
    SyncThenDie(u64),
    /// The next sync of a log file fails, and from then on every changing call does.
    SyncThenReadOnly,
    /// Appends fail once this many more bytes are written, in the middle of a record if need be.
    Full(u64),
    /// Every changing call fails: the file system turned read-only.
    ReadOnly,
    /// The process dies before the n-th changing call: that one and all after it do nothing.
    DieBefore(u64),
    /// The same, but the n-th call itself still happens, if it is an append then only half of it.
    DieAfter(u64),
}

#[derive(Debug, Default)]
struct Shared {
    fault: Mutex<Option<Fault>>,
    calls: AtomicU64,
    dead: AtomicBool,
    syncs: AtomicU64,
    /// How many syncs of log files were let through, for tests that count them.
    appends: AtomicU64,
    synced_folders: Mutex<Vec<PathBuf>>,
    opened: Mutex<Vec<PathBuf>>,
    read: AtomicU64,
}

/// The real disk with a fault.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultyDisk {
    shared: Arc<Shared>,
}

impl FaultyDisk {
    pub(crate) fn set(&self, fault: Fault) {
        *self.shared.fault.lock().expect("no test panics here") = Some(fault);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::SeqCst)
    }

    /// How many changing calls were made.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// How many appends and syncs of log files got through.
    pub(crate) fn appends_and_syncs(&self) -> (u64, u64) {
        (self.shared.appends.load(Ordering::SeqCst), self.shared.syncs.load(Ordering::SeqCst))
    }

    /// Which files were opened since the last time this was asked.
    pub(crate) fn opened(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *self.shared.opened.lock().expect("no test panics here"))
    }

    /// How many bytes of log files were read since the last time this was asked.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.shared.read.swap(0, Ordering::SeqCst)
    }

    /// Which folders were synced, in order.
    pub(crate) fn synced_folders(&self) -> Vec<PathBuf> {
        self.shared.synced_folders.lock().expect("no test panics here").clone()
    }

    fn fault(&self) -> Fault {
        self.shared.fault.lock().expect("no test panics here").unwrap_or(Fault::None)
    }

    /// Counts a changing call. `Ok(true)`: do it, and die then.
    fn before_change(&self) -> io::Result<bool> {
        let call = self.shared.calls.fetch_add(1, Ordering::SeqCst);
        if self.is_dead() {
            return Err(io::Error::from_raw_os_error(5));
        }
        match self.fault() {
            Fault::ReadOnly => Err(io::Error::from_raw_os_error(30)),
            Fault::DieBefore(n) if call >= n => {
                self.shared.dead.store(true, Ordering::SeqCst);
                Err(io::Error::from_raw_os_error(5))
            }
            Fault::DieAfter(n) if call >= n => {
                self.shared.dead.store(true, Ordering::SeqCst);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn change<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let dies = self.before_change()?;
        let done = call();
        if dies { Err(io::Error::from_raw_os_error(5)) } else { done }
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        self.shared.opened.lock().expect("no test panics here").push(path.to_owned());
        let open = || RealDisk.open(path, how);
        let inner = if how == Open::Read { open()? } else { self.change(open)? };
        let log = path.extension().is_some_and(|extension| extension == "jsonl");
        Ok(Box::new(FaultyFile { disk: self.clone(), inner, log }))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        RealDisk.stat(path)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        RealDisk.names(folder)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.make_folder(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|| RealDisk.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.remove_file(path))
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.remove_tree(path))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.shared.synced_folders.lock().expect("no test panics here").push(path.to_owned());
        self.change(|| RealDisk.sync_folder(path))
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.touch(path))
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    inner: Box<dyn DiskFile>,
    log: bool,
}

impl DiskFile for FaultyFile {
    fn stat(&self) -> io::Result<Stat> {
        self.inner.stat()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.inner.read_at(buffer, offset)?;
        if self.log {
            self.disk.shared.read.fetch_add(count as u64, Ordering::SeqCst);
        }
        Ok(count)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let dies = self.disk.before_change()?;
        if dies {
            self.inner.append(&bytes[..bytes.len() / 2])?;
            return Err(io::Error::from_raw_os_error(5));
        }
        self.disk.shared.appends.fetch_add(1, Ordering::SeqCst);
        if let Fault::Full(room) = self.disk.fault() {
            if room == 0 {
                return Err(io::Error::from_raw_os_error(28));
            }
            let count = self.inner.append(&bytes[..bytes.len().min(room as usize)])?;
            self.disk.set(Fault::Full(room - count as u64));
            return Ok(count);
        }
        self.inner.append(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.change(|| self.inner.write_at(bytes, offset))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.disk.change(|| self.inner.truncate(length))
    }

    fn sync(&self) -> io::Result<()> {
        if self.log {
            self.disk.shared.syncs.fetch_add(1, Ordering::SeqCst);
            if self.disk.fault() == Fault::SyncThenReadOnly {
                self.disk.set(Fault::ReadOnly);
                return Err(io::Error::from_raw_os_error(5));
            }
            if let Fault::SyncThenDie(calls) = self.disk.fault() {
                self.disk.set(Fault::DieBefore(self.disk.calls() + calls));
                return Err(io::Error::from_raw_os_error(5));
            }
            if let Fault::Sync(left) = self.disk.fault()
                && left > 0
            {
                self.disk.set(Fault::Sync(left - 1));
                return Err(io::Error::from_raw_os_error(5));
            }
        }
        self.disk.change(|| self.inner.sync())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }
}

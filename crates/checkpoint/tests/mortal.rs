//! A machine that dies at a given call: the store's disk and the hands that change the tree share one life.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rethread_checkpoint::{Hands, RealHands};
use rethread_store::{Disk, DiskFile, Open, RealDisk, Stat};

/// When it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Never,
    /// Before the n-th call that changes something.
    Before(usize),
    /// After it.
    After(usize),
    /// It does not die, but the n-th call fails with this error.
    Fails(usize, i32),
    /// It does not die, but from the n-th on all calls fail with this error.
    FailsFrom(usize, i32),
}

#[derive(Debug)]
struct Life {
    death: Death,
    calls: usize,
    dead: bool,
    /// What the hands did, in order.
    done: Vec<&'static str>,
}

/// The real machine, for as long as it lives.
#[derive(Clone, Debug)]
pub(crate) struct Mortal(Arc<Mutex<Life>>);

type At<'a> = (BorrowedFd<'a>, &'a OsStr);

impl Mortal {
    pub(crate) fn new(death: Death) -> Self {
        Self(Arc::new(Mutex::new(Life { death, calls: 0, dead: false, done: Vec::new() })))
    }

    /// Counts from here on.
    pub(crate) fn set(&self, death: Death) {
        *self.0.lock().unwrap() = Life { death, calls: 0, dead: false, done: Vec::new() };
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.lock().unwrap().calls
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.lock().unwrap().dead
    }

    /// What the hands did to the tree, in order.
    pub(crate) fn done(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().done.clone()
    }

    fn hand<T>(&self, what: &'static str, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.0.lock().unwrap().done.push(what);
        self.change(call)
    }

    fn change<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let gone = || io::Error::from_raw_os_error(5);
        let dies_after = {
            let mut life = self.0.lock().unwrap();
            life.calls += 1;
            let here = life.calls - 1;
            match life.death {
                _ if life.dead => return Err(gone()),
                Death::Fails(at, error) if at == here => return Err(io::Error::from_raw_os_error(error)),
                Death::FailsFrom(at, error) if at <= here => {
                    return Err(io::Error::from_raw_os_error(error));
                }
                Death::Before(at) if at == here => {
                    life.dead = true;
                    return Err(gone());
                }
                Death::After(at) => {
                    life.dead = at == here;
                    life.dead
                }
                _ => false,
            }
        };
        let done = call();
        if dies_after { Err(gone()) } else { done }
    }
}

impl Hands for Mortal {
    fn make_file(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
        self.hand("make_file", || RealHands.make_file(folder, name))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        self.hand("write", || RealHands.write(file, bytes))
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
        self.hand("set_mode", || RealHands.set_mode(file, mode))
    }

    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.hand("sync", || RealHands.sync(file))
    }

    fn sync_all(&self, folder: BorrowedFd<'_>) -> io::Result<()> {
        self.hand("sync_all", || RealHands.sync_all(folder))
    }

    fn make_link(&self, folder: BorrowedFd<'_>, name: &OsStr, target: &OsStr) -> io::Result<()> {
        self.hand("make_link", || RealHands.make_link(folder, name, target))
    }

    fn rename(&self, from: At<'_>, to: At<'_>) -> io::Result<()> {
        self.hand("rename", || RealHands.rename(from, to))
    }

    fn exchange(&self, one: At<'_>, other: At<'_>) -> io::Result<()> {
        self.hand("exchange", || RealHands.exchange(one, other))
    }

    fn replace(&self, from: At<'_>, to: At<'_>) -> io::Result<()> {
        self.hand("replace", || RealHands.replace(from, to))
    }

    fn remove(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        self.hand("remove", || RealHands.remove(folder, name))
    }

    fn make_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        self.hand("make_folder", || RealHands.make_folder(folder, name))
    }

    fn remove_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        self.hand("remove_folder", || RealHands.remove_folder(folder, name))
    }
}

impl Disk for Mortal {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let open = || RealDisk.open(path, how);
        let inner = if how == Open::Read { open()? } else { self.change(open)? };
        Ok(Box::new(MortalFile { life: self.clone(), inner }))
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
        self.change(|| Disk::rename(&RealDisk, from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.remove_file(path))
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.remove_tree(path))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.sync_folder(path))
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        self.change(|| RealDisk.touch(path))
    }

    fn sync_all(&self, folder: &Path) -> io::Result<bool> {
        self.change(|| Disk::sync_all(&RealDisk, folder))
    }
}

#[derive(Debug)]
struct MortalFile {
    life: Mortal,
    inner: Box<dyn DiskFile>,
}

impl DiskFile for MortalFile {
    fn stat(&self) -> io::Result<Stat> {
        self.inner.stat()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.life.change(|| self.inner.append(bytes))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.life.change(|| self.inner.write_at(bytes, offset))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.life.change(|| self.inner.truncate(length))
    }

    fn sync(&self) -> io::Result<()> {
        self.life.change(|| self.inner.sync())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }
}

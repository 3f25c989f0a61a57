//! A disk that notes what is read from logs and what is written to them.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rethread_store::{Disk, DiskFile, Open, RealDisk, Stat};

/// The real disk, watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingDisk {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    /// How many records each write had.
    writes: Mutex<Vec<usize>>,
}

#[derive(Debug)]
struct CountingFile {
    file: Box<dyn DiskFile>,
    /// `None` for what is neither a log nor its journal.
    counts: Option<Arc<Counts>>,
}

impl CountingDisk {
    /// Returns how many bytes of logs were read.
    pub(crate) fn log_bytes_read(&self) -> u64 {
        self.counts.read.load(Ordering::Relaxed)
    }

    /// Returns how many records each write to a log had since the last call.
    pub(crate) fn take_log_writes(&self) -> Vec<usize> {
        std::mem::take(&mut *self.counts.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Disk for CountingDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let is = |kind: &str| path.extension().is_some_and(|extension| extension == kind);
        // What a journal has is read instead of what the log has.
        let counts = (is("jsonl") || is("journal")).then(|| self.counts.clone());
        Ok(Box::new(CountingFile { file: RealDisk.open(path, how)?, counts }))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        RealDisk.stat(path)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        RealDisk.names(folder)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_folder(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_tree(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(path)
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        RealDisk.touch(path)
    }
}

impl DiskFile for CountingFile {
    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.file.read_at(buffer, offset)?;
        if let Some(counts) = &self.counts {
            counts.read.fetch_add(count as u64, Ordering::Relaxed);
        }
        Ok(count)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.append_pieces(&[IoSlice::new(bytes)])
    }

    fn append_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.file.append_pieces(pieces)?;
        if let Some(counts) = &self.counts {
            let mut left = written;
            let records = pieces.iter().map(|piece| {
                let there = &piece[..left.min(piece.len())];
                left -= there.len();
                memchr::memchr_iter(b'\n', there).count()
            });
            counts.writes.lock().unwrap_or_else(PoisonError::into_inner).push(records.sum());
        }
        Ok(written)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn reserve(&self, offset: u64, size: u64) -> io::Result<()> {
        self.file.reserve(offset, size)
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

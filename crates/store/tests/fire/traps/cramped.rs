//! A disk with so many blocks and no more: what is removed makes room again.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rethread_store::{Disk, DiskFile, Open, RealDisk, Stat};

const BLOCK: u64 = 4096;

/// The real disk, with room for so many more blocks.
#[derive(Clone, Debug)]
pub(super) struct Cramped {
    free: Arc<AtomicU64>,
}

impl Cramped {
    pub(super) fn new() -> Self {
        Self { free: Arc::new(AtomicU64::new(u64::MAX / 2)) }
    }

    pub(super) fn leave(&self, blocks: u64) {
        self.free.store(blocks, Ordering::SeqCst);
    }

    fn take(&self, blocks: u64) -> io::Result<()> {
        let taken =
            self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |free| free.checked_sub(blocks));
        taken.map(drop).map_err(|_| io::Error::from_raw_os_error(28))
    }

    fn give_back(&self, path: &Path) {
        let blocks = RealDisk.stat(path).map_or(0, |stat| stat.length.div_ceil(BLOCK));
        self.free.fetch_add(blocks, Ordering::SeqCst);
    }
}

impl Disk for Cramped {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(CrampedFile { disk: self.clone(), inner: RealDisk.open(path, how)? }))
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
        self.give_back(path);
        RealDisk.remove_file(path)
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        for name in RealDisk.names(path)? {
            self.give_back(&path.join(name));
        }
        RealDisk.remove_tree(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(path)
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        RealDisk.touch(path)
    }
}

#[derive(Debug)]
struct CrampedFile {
    disk: Cramped,
    inner: Box<dyn DiskFile>,
}

impl CrampedFile {
    /// Takes the blocks that the file lacks to reach as far as this.
    fn reach(&self, end: u64) -> io::Result<()> {
        let has = self.inner.stat()?.length.div_ceil(BLOCK);
        self.disk.take(end.div_ceil(BLOCK).saturating_sub(has))
    }
}

impl DiskFile for CrampedFile {
    fn stat(&self) -> io::Result<Stat> {
        self.inner.stat()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.reach(self.inner.stat()?.length + bytes.len() as u64)?;
        self.inner.append(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.reach(offset + bytes.len() as u64)?;
        self.inner.write_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }
}

//! A disk that never syncs: what is measured later need not be made slowly.

use std::io;
use std::path::Path;

use rethread_store::{Disk, DiskFile, Open, RealDisk, Stat};

/// The real disk without its syncs.
#[derive(Debug)]
pub(crate) struct CarelessDisk;

#[derive(Debug)]
struct CarelessFile(Box<dyn DiskFile>);

impl Disk for CarelessDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(CarelessFile(RealDisk.open(path, how)?)))
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

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        RealDisk.touch(path)
    }
}

impl DiskFile for CarelessFile {
    fn stat(&self) -> io::Result<Stat> {
        self.0.stat()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

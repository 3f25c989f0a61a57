//! A file of the disk in memory.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rethread_store::{DiskFile, Stat};

/// The largest file, as a real disk has one too.
const LARGEST: u64 = 64 << 20;

static HANDLES: AtomicU64 = AtomicU64::new(1);

/// A file in memory, open.
#[derive(Debug)]
pub struct MemoryFile {
    content: Arc<Mutex<Content>>,
    handle: u64,
}

impl MemoryFile {
    /// Opens a file.
    pub fn new(content: Arc<Mutex<Content>>) -> Self {
        Self { content, handle: HANDLES.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        held(&self.content).locked_by.take_if(|holder| *holder == self.handle);
    }
}

impl DiskFile for MemoryFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(held(&self.content).stat())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = held(&self.content);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.bytes.len());
        let count = buffer.len().min(content.bytes.len() - from);
        buffer[..count].copy_from_slice(&content.bytes[from..from + count]);
        Ok(count)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut content = held(&self.content);
        let end = content.bytes.len() as u64;
        content.write(bytes, end)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        held(&self.content).write(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        held(&self.content).bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut content = held(&self.content);
        let holder = *content.locked_by.get_or_insert(self.handle);
        Ok(holder == self.handle)
    }

    fn unlock(&self) -> io::Result<()> {
        held(&self.content).locked_by.take_if(|holder| *holder == self.handle);
        Ok(())
    }
}

/// A file in memory.
#[derive(Debug)]
pub struct Content {
    pub(super) inode: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) modified: i128,
    locked_by: Option<u64>,
}

impl Content {
    /// Makes a file.
    pub fn new(inode: u64, bytes: &[u8]) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { inode, bytes: bytes.to_vec(), modified: now(), locked_by: None }))
    }

    /// Returns what it is.
    pub fn stat(&self) -> Stat {
        Stat { inode: self.inode, length: self.bytes.len() as u64, modified: self.modified, folder: false }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(bytes.len() as u64);
        if end > LARGEST {
            return Err(ErrorKind::FileTooLarge.into());
        }
        if self.bytes.len() < end as usize {
            self.bytes.resize(end as usize, 0);
        }
        self.bytes[offset as usize..end as usize].copy_from_slice(bytes);
        self.modified = now();
        Ok(bytes.len())
    }
}

/// Returns what a lock guards; a target that panicked ends the process anyway.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time as file systems count it.
pub fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}

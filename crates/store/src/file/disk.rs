//! The system calls that the file backend makes, as a seam: the real ones here, faulty ones in tests.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::defect::Defect;
use crate::error::{Error, Result};

/// How many pieces one call takes.
const MOST_PIECES: usize = 1024;
/// How many times as much as is reserved must be free: nobody is to miss it.
#[cfg(target_os = "linux")]
const PLENTY: u64 = 64;

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>>;
    /// Returns what is at a path, without following a link.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// Returns which file is at a path and how long it is, without following a link.
    fn extent(&self, path: &Path) -> io::Result<Extent> {
        self.stat(path).map(Extent::from)
    }
    /// Returns the names in a folder, in no order.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// Makes one folder, for its owner only.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Renames a file or folder, replacing a file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder and what is in it.
    fn remove_tree(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Sets a file's modification time to now.
    fn touch(&self, path: &Path) -> io::Result<()>;
    /// Makes everything on a folder's file system durable, and answers whether it did: not every disk can.
    fn sync_all(&self, folder: &Path) -> io::Result<bool> {
        let _ = folder;
        Ok(false)
    }
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Returns what the file is.
    fn stat(&self) -> io::Result<Stat>;
    /// Returns which file it is and how long.
    fn extent(&self) -> io::Result<Extent> {
        self.stat().map(Extent::from)
    }
    /// Reads some bytes; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some bytes at the end ([`Open::Append`]).
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Writes some bytes of several pieces at the end, with one call ([`Open::Append`]).
    fn append_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.append(&in_one(pieces))
    }
    /// Writes some bytes in place (not for [`Open::Append`]).
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts the file.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Has room set aside for what will be written from an offset on, if there is plenty; the file's length stays. It lasts
    /// until the file is cut, were it to where it ends.
    fn reserve(&self, offset: u64, size: u64) -> io::Result<()> {
        let _ = (offset, size);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes content and length durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes the file's advisory lock if it is free.
    fn try_lock(&self) -> io::Result<bool>;
    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// For reading; it must exist.
    Read,
    /// For reading and for writing at its end; made if absent.
    Append,
    /// For reading and for writing in place; made if absent.
    Update,
    /// For writing in place; it must exist.
    Existing,
    /// A new file; an error if it exists.
    New,
}

/// What a path or an open file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Identifies the file on its file system.
    pub inode: u64,
    /// Its length in bytes.
    pub length: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified: i128,
    /// Whether it is a folder.
    pub folder: bool,
}

/// The part of a [`Stat`] that a writer needs.
///
/// It leaves the times out: a file whose times were asked for gets new ones with its next write, however soon that is,
/// and the next sync, be it of another file, has to write them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Identifies the file on its file system.
    pub inode: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl From<Stat> for Extent {
    fn from(Stat { inode, length, .. }: Stat) -> Self {
        Self { inode, length }
    }
}

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(if Defect::LeaveModesToTheUmask.is_on() { 0o666 } else { 0o600 });
        let file = match how {
            Open::Read => options.open(path)?,
            Open::Existing => options.write(true).open(path)?,
            Open::New => create(options.write(true), path)?,
            Open::Append => open_or_create(options.append(true), path)?,
            Open::Update => open_or_create(options.write(true), path)?,
        };
        Ok(Box::new(RealFile(file)))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(stat_of(&fs::symlink_metadata(path)?))
    }

    #[cfg(target_os = "linux")]
    fn extent(&self, path: &Path) -> io::Result<Extent> {
        extent_of(rustix::fs::CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is none of ours.
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name().into_string().ok()))
            .filter_map(|name: io::Result<_>| name.transpose())
            .collect()
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o700))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().append(true).open(path)?.set_modified(std::time::SystemTime::now())
    }

    #[cfg(target_os = "linux")]
    fn sync_all(&self, folder: &Path) -> io::Result<bool> {
        rustix::fs::syncfs(File::open(folder)?)?;
        Ok(true)
    }
}

/// The mode given at creation passes through the umask, so it is set again on what was made just now.
fn create(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.create_new(true).open(path)?;
    if !Defect::LeaveModesToTheUmask.is_on() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn open_or_create(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    loop {
        match options.clone().open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match create(&mut options.clone(), path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
    }
}

fn stat_of(metadata: &fs::Metadata) -> Stat {
    Stat {
        inode: metadata.ino(),
        length: metadata.len(),
        modified: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        folder: metadata.is_dir(),
    }
}

#[cfg(target_os = "linux")]
fn extent_of(folder: impl std::os::fd::AsFd, path: &Path, flags: rustix::fs::AtFlags) -> io::Result<Extent> {
    use rustix::fs::{StatxFlags, statx};
    let found = statx(folder, path, flags, StatxFlags::INO | StatxFlags::SIZE)?;
    Ok(Extent { inode: found.stx_ino, length: found.stx_size })
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(stat_of(&self.0.metadata()?))
    }

    #[cfg(target_os = "linux")]
    fn extent(&self) -> io::Result<Extent> {
        extent_of(&self.0, Path::new(""), rustix::fs::AtFlags::EMPTY_PATH)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut &self.0, bytes)
    }

    fn append_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match pieces.len() {
            // More would be cut off, and cost a second call.
            count if count > MOST_PIECES => self.append(&in_one(pieces)),
            _ => io::Write::write_vectored(&mut &self.0, pieces),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, size: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
        let disk = fstatvfs(&self.0)?;
        if disk.f_bavail.saturating_mul(disk.f_frsize) < size.saturating_mul(PLENTY) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(fallocate(&self.0, FallocateFlags::KEEP_SIZE, offset, size)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

fn in_one(pieces: &[IoSlice<'_>]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole
}

/// Returns what is at a path, `None` only if nothing is: what cannot be looked at is not absent.
pub(crate) fn look(disk: &dyn Disk, path: &Path) -> Result<Option<Stat>> {
    there(disk.stat(path), path)
}

/// The same for a writer.
pub(crate) fn look_at_extent(disk: &dyn Disk, path: &Path) -> Result<Option<Extent>> {
    there(disk.extent(path), path)
}

fn there<T>(found: io::Result<T>, path: &Path) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

/// Reads a range, less if the file ends before.
pub(crate) fn read_range(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<Vec<u8>> {
    read_onto(&[], file, from, to)
}

/// Reads a range, less if the file ends before, behind what was read already.
pub(crate) fn read_onto(before: &[u8], file: &dyn DiskFile, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    // Made anew: fresh memory is zero without being written to.
    let mut buffer = vec![0; before.len().saturating_add(size)];
    buffer[..before.len()].copy_from_slice(before);
    let filled = read_into(&mut buffer[before.len()..], file, from)?;
    buffer.truncate(before.len() + filled);
    Ok(buffer)
}

/// Fills a buffer, or less of it if the file ends before. Returns how much was read.
pub(crate) fn read_into(buffer: &mut [u8], file: &dyn DiskFile, from: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes everything at an offset.
pub(crate) fn write_all_at(file: &dyn DiskFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

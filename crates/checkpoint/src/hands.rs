//! The calls that change a tree, as a seam: the real ones here, hands that fail or die in tests.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};

/// Changes a tree. Every name is one name in a folder that is held open, so that no link can lead anywhere else.
pub trait Hands: Debug + Send + Sync {
    /// Makes a new file, for its owner only.
    fn make_file(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<File>;
    /// Adds bytes to a file.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()>;
    /// Sets a file's or folder's permissions, whatever the umask.
    fn set_mode(&self, file: BorrowedFd<'_>, mode: u32) -> io::Result<()>;
    /// Makes a file's content, or a folder's names, durable.
    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()>;
    /// Makes everything on a file system durable.
    fn sync_all(&self, folder: BorrowedFd<'_>) -> io::Result<()>;
    /// Makes a symbolic link.
    fn make_link(&self, folder: BorrowedFd<'_>, name: &OsStr, target: &OsStr) -> io::Result<()>;
    /// Gives a file another name, where nothing is.
    fn rename(&self, from: (BorrowedFd<'_>, &OsStr), to: (BorrowedFd<'_>, &OsStr)) -> io::Result<()>;
    /// Has two files change names.
    fn exchange(&self, one: (BorrowedFd<'_>, &OsStr), other: (BorrowedFd<'_>, &OsStr)) -> io::Result<()>;
    /// Gives a file the name of another, which is gone then: where names cannot be exchanged.
    fn replace(&self, from: (BorrowedFd<'_>, &OsStr), to: (BorrowedFd<'_>, &OsStr)) -> io::Result<()>;
    /// Removes a file or link.
    fn remove(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()>;
    /// Makes a folder, for its owner only.
    fn make_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()>;
    /// Removes a folder that is empty.
    fn remove_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()>;
}

/// The machine's own calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealHands;

impl Hands for RealHands {
    fn make_file(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o777))?)
    }

    fn sync(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        Ok(rustix::fs::fsync(file)?)
    }

    #[cfg(target_os = "linux")]
    fn sync_all(&self, folder: BorrowedFd<'_>) -> io::Result<()> {
        Ok(rustix::fs::syncfs(folder)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_all(&self, _: BorrowedFd<'_>) -> io::Result<()> {
        rustix::fs::sync();
        Ok(())
    }

    fn make_link(&self, folder: BorrowedFd<'_>, name: &OsStr, target: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, folder, name)?)
    }

    fn rename(&self, from: (BorrowedFd<'_>, &OsStr), to: (BorrowedFd<'_>, &OsStr)) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE)?)
    }

    fn exchange(&self, one: (BorrowedFd<'_>, &OsStr), other: (BorrowedFd<'_>, &OsStr)) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(one.0, one.1, other.0, other.1, RenameFlags::EXCHANGE)?)
    }

    fn replace(&self, from: (BorrowedFd<'_>, &OsStr), to: (BorrowedFd<'_>, &OsStr)) -> io::Result<()> {
        Ok(rustix::fs::renameat(from.0, from.1, to.0, to.1)?)
    }

    fn remove(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn make_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(folder, name, Mode::RWXU)?)
    }

    fn remove_folder(&self, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }
}

/// Makes several files durable: each on its own if they are few, else everything at once.
pub(crate) fn sync_each_or_all<T: AsFd>(
    hands: &dyn Hands,
    root: BorrowedFd<'_>,
    files: &[T],
) -> io::Result<()> {
    // Where the two meet was measured; a sync of everything also waits for what others wrote.
    const FEW: usize = 4;
    match files.len() {
        0..=FEW => files.iter().try_for_each(|file| hands.sync(file.as_fd())),
        _ => hands.sync_all(root),
    }
}

//! The folder that a tree is beneath, held open: nothing is ever reached by a path that could change meanwhile.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::path::TreePath;

/// How long one waits for a rewind, or for captures, of others.
const PATIENCE: Duration = Duration::from_secs(10);

/// A tree's root.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    folder: File,
}

/// What keeps rewinds beneath a root apart from each other and from captures. It ends with its process.
#[derive(Debug)]
pub(crate) struct Hold(#[expect(dead_code, reason = "closing it gives the lock back")] File);

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let path = path.canonicalize().map_err(Error::io("find", path))?;
        let folder = File::open(&path).map_err(Error::io("open", &path))?;
        match folder.metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(Self { path, folder }),
            Ok(_) => Err(Error::BadPath { path, rule: "is no folder" }),
            Err(error) => Err(Error::io("look at", &path)(error)),
        }
    }

    /// Returns the root's canonical path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Returns which folder of which file system this is.
    pub(crate) fn place(&self) -> Result<String> {
        let stat = rustix::fs::fstat(&self.folder).map_err(Error::io("look at", &self.path))?;
        Ok(format!("{}:{}", stat.st_dev, stat.st_ino))
    }

    /// Keeps rewinds out, for a capture.
    pub(crate) fn share(&self) -> Result<Hold> {
        self.hold(File::try_lock_shared)
    }

    /// Keeps rewinds and captures out, for a rewind.
    pub(crate) fn claim(&self) -> Result<Hold> {
        self.hold(File::try_lock)
    }

    fn hold(&self, lock: fn(&File) -> std::result::Result<(), std::fs::TryLockError>) -> Result<Hold> {
        // A handle of its own: locks belong to the handle, and several callers may share this root.
        let handle = File::open(&self.path).map_err(Error::io("open", &self.path))?;
        let which = |folder: &File| {
            Ok::<_, Errno>((rustix::fs::fstat(folder)?.st_dev, rustix::fs::fstat(folder)?.st_ino))
        };
        let look = Error::io("look at", &self.path);
        match (which(&handle), which(&self.folder)) {
            (Ok(now), Ok(then)) if now == then => {}
            // Whoever goes on would look at one folder and speak of another.
            (Ok(_), Ok(_)) => {
                return Err(Error::BadPath {
                    path: self.path.clone(),
                    rule: "was replaced by another folder",
                });
            }
            (Err(error), _) | (_, Err(error)) => return Err(look(error)),
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match lock(&handle) {
                Ok(()) => return Ok(Hold(handle)),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(Error::Busy { root: self.path.clone() });
                }
                // A file system without locks has no other way to keep them apart; one user alone is still safe.
                Err(std::fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Hold(handle));
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(Error::io("lock", &self.path)(error)),
            }
        }
    }

    /// Opens the folder that a path is in.
    pub(crate) fn parent_of(&self, path: &TreePath) -> io::Result<OwnedFd> {
        match path.parent() {
            Some(parent) => self.open_folder(&parent),
            None => self.folder.as_fd().try_clone_to_owned(),
        }
    }

    /// Opens a folder beneath the root without following any link.
    pub(crate) fn open_folder(&self, path: &TreePath) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open_beneath(self.folder(), path.as_path(), flags)
    }

    pub(crate) fn full(&self, path: &TreePath) -> PathBuf {
        self.path.join(path.as_path())
    }
}

/// Opens what is beneath a folder, without following any link on the way or at the end.
fn open_beneath(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    if Defect::FollowLinks.is_on() {
        return Ok(rustix::fs::openat(folder, path, flags, Mode::empty())?);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(folder, path, flags | OFlags::NOFOLLOW, Mode::empty(), resolve) {
                // A rename somewhere on the way; nothing is wrong, and it tells nothing either.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A kernel before 5.6, or a sandbox that does not know the call.
                Err(Errno::NOSYS) => return step_by_step(folder, path, flags),
                opened => return Ok(opened?),
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    step_by_step(folder, path, flags)
}

/// The same by one call for each name: no name of a [`TreePath`] can lead upwards, and none is followed.
fn step_by_step(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut opened = folder.try_clone_to_owned()?;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let how = match names.peek() {
            Some(_) => OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            None => flags,
        };
        opened = rustix::fs::openat(&opened, name, how | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(opened)
}

/// Returns what a name in a folder is, without following it.
pub(crate) fn stat_in(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Stat> {
    let flags = if Defect::FollowLinks.is_on() { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    Ok(rustix::fs::statat(folder, name, flags)?)
}

/// Opens a file in a folder for reading. It never waits for whoever is at the other end of a pipe.
pub(crate) fn open_in(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open_beneath(folder, Path::new(name), flags)?.into())
}

/// Returns whether an error says for certain that nothing is there. That something on the way is no folder does not:
/// a symbolic link, behind which something may be, is none either.
pub(crate) fn says_absent(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) || Defect::TakeErrorsForAbsent.is_on()
}

/// Returns whether an error says that there is no such folder, whatever else is there.
pub(crate) fn says_no_folder(error: &io::Error) -> bool {
    let no_folder = [Errno::NOTDIR, Errno::LOOP].map(|errno| Some(errno.raw_os_error()));
    no_folder.contains(&error.raw_os_error()) || says_absent(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_openat2_links_are_not_followed_either() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        assert!(step_by_step(root.folder(), Path::new("a/b"), flags).is_ok());
        for path in ["link/b", "link"] {
            assert!(step_by_step(root.folder(), Path::new(path), flags).is_err(), "{path}");
        }
    }
}

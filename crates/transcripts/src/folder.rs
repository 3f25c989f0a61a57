//! A folder that is held open: what is done in it is done there, whatever somebody puts in its path's place meanwhile.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::claude_folder::Links;
use crate::error::{Error, Result};

/// A folder, by its handle.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
    /// Where it was found, for messages.
    path: PathBuf,
    links: Links,
}

impl Folder {
    /// Opens a folder, which may itself be a link.
    pub(crate) fn open(path: &Path, links: Links) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty());
        let handle = handle.map_err(|errno| Error::io("open", path)(errno.into()))?;
        Ok(Self { handle, path: path.to_owned(), links })
    }

    /// Opens the folder beneath this one that a path leads to, one name after the other.
    pub(crate) fn beneath(self, path: &Path) -> Result<Self> {
        self.descend(path, |folder, name| folder.folder(name))
    }

    /// Opens a folder beneath this one as [`beneath`](Self::beneath) does, and makes what is missing.
    pub(crate) fn made_beneath(self, path: &Path) -> Result<Self> {
        self.descend(path, |folder, name| folder.made_folder(name))
    }

    fn descend(self, path: &Path, step: impl Fn(&Self, &OsStr) -> Result<Self>) -> Result<Self> {
        path.components().try_fold(self, |folder, part| match part {
            Component::Normal(name) => step(&folder, name),
            _ => Err(Error::io("open", path)(io::ErrorKind::NotFound.into())),
        })
    }

    /// Opens a folder in this one.
    pub(crate) fn folder(&self, name: impl AsRef<OsStr>) -> Result<Self> {
        let path = self.path.join(name.as_ref());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | self.no_link();
        let handle = rustix::fs::openat(&self.handle, name.as_ref(), flags, Mode::empty());
        let handle = handle.map_err(|errno| Error::io("open", &path)(self.refusal(errno)))?;
        Ok(Self { handle, path, links: self.links })
    }

    /// Opens a folder in this one, and makes it if it is not there.
    pub(crate) fn made_folder(&self, name: impl AsRef<OsStr>) -> Result<Self> {
        match rustix::fs::mkdirat(&self.handle, name.as_ref(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(errno) => Err(Error::io("make", self.path.join(name.as_ref()))(errno.into())),
        }
    }

    /// Opens a file in this folder for reading.
    pub(crate) fn read(&self, name: impl AsRef<OsStr>) -> Result<File> {
        self.file("open", name.as_ref(), OFlags::RDONLY)
    }

    /// Opens a file in this folder for reading, and for writing at its end.
    pub(crate) fn append(&self, name: impl AsRef<OsStr>) -> Result<File> {
        self.file("append to", name.as_ref(), OFlags::RDWR | OFlags::APPEND)
    }

    fn file(&self, action: &'static str, name: &OsStr, flags: OFlags) -> Result<File> {
        let path = self.path.join(name);
        // A pipe could keep whoever opens it waiting for ever.
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | self.no_link();
        let opened = rustix::fs::openat(&self.handle, name, flags, Mode::empty());
        let file = File::from(opened.map_err(|errno| Error::io(action, &path)(self.refusal(errno)))?);
        match file.metadata().map_err(Error::io(action, &path))?.is_file() {
            true => Ok(file),
            false => Err(Error::io(action, &path)(io::ErrorKind::NotFound.into())),
        }
    }

    /// Puts a file in this folder, whole or not at all, in the place of one that is there.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write(name, bytes, RenameFlags::empty())
    }

    /// Puts a file in this folder, whole or not at all, if there is none of that name.
    pub(crate) fn add(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write(name, bytes, RenameFlags::NOREPLACE)
    }

    fn write(&self, name: &str, bytes: &[u8], flags: RenameFlags) -> Result<()> {
        let path = self.path.join(name);
        let fail = |error: io::Error| Error::io("write", &path)(error);
        let aside = format!(".{name}.{}", uuid::Uuid::new_v4().simple());
        // Made for its owner only, as Claude Code's own are. One that is there is none of ours.
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.handle, &aside, create, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(|errno| fail(errno.into()))?);
        let written = file
            .write_all(bytes)
            .and_then(|()| Ok(rustix::fs::renameat_with(&self.handle, &aside, &self.handle, name, flags)?));
        written.map_err(|error| {
            // It is of no use to anybody; the failure is told in any case.
            let _ = rustix::fs::unlinkat(&self.handle, &aside, AtFlags::empty());
            fail(error)
        })
    }

    /// Moves a file or a folder to another folder, over to another file system too; links are moved as links. What is not
    /// there needs no moving.
    pub(crate) fn carry(&self, name: &OsStr, to: &Folder, new: &str) -> Result<()> {
        let path = self.path.join(name);
        match rustix::fs::renameat(&self.handle, name, &to.handle, new) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::XDEV) => {
                self.copy(name, to, new.as_ref()).map_err(Error::io("copy", &path))?;
                self.remove(name).map_err(Error::io("remove", &path))
            }
            Err(errno) => Err(Error::io("move", &path)(errno.into())),
        }
    }

    fn copy(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        let stat = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                rustix::fs::mkdirat(&to.handle, new, Mode::RWXU)?;
                let (from, to) = (self.own(name)?, to.own(new)?);
                from.names()?.iter().try_for_each(|name| from.copy(name, &to, name))
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&self.handle, name, Vec::new())?;
                Ok(rustix::fs::symlinkat(&*target, &to.handle, new)?)
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut from = File::from(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?);
                let create =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(stat.st_mode);
                let mut copy = File::from(rustix::fs::openat(&to.handle, new, create, mode)?);
                io::copy(&mut from, &mut copy)?;
                copy.set_modified(from.metadata()?.modified()?)
            }
            // Pipes and the like hold nothing.
            _ => Ok(()),
        }
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        let stat = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?);
        }
        let folder = self.own(name)?;
        folder.names()?.iter().try_for_each(|name| folder.remove(name))?;
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
    }

    /// Gives every file of this folder a second name in another one.
    pub(crate) fn link_all(&self, to: &Folder) -> Result<()> {
        for name in self.names().map_err(Error::io("read", &self.path))? {
            let linked = rustix::fs::linkat(&self.handle, &*name, &to.handle, &*name, AtFlags::empty());
            linked.map_err(|errno| Error::io("link", to.path.join(&*name))(errno.into()))?;
        }
        Ok(())
    }

    /// Opens a folder in this one that is no link, in any case.
    fn own(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        Ok(Self { handle, path: self.path.join(name), links: self.links })
    }

    fn names(&self) -> io::Result<Vec<std::ffi::OsString>> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    fn no_link(&self) -> OFlags {
        if self.links == Links::Refuse { OFlags::NOFOLLOW } else { OFlags::empty() }
    }

    /// Returns why something was not opened: a link that is not followed leads nowhere.
    fn refusal(&self, errno: Errno) -> io::Error {
        match errno {
            Errno::LOOP | Errno::NOTDIR if self.links == Links::Refuse => io::ErrorKind::NotFound.into(),
            errno => errno.into(),
        }
    }
}

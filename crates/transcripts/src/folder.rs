//! A folder that is held open: what is done in it is done there, whatever somebody puts in its path's place meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
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
        self.replace_with(name, &mut &*bytes)
    }

    /// Does the same with what a reader gives.
    pub(crate) fn replace_with(&self, name: &str, content: &mut dyn io::Read) -> Result<()> {
        self.write(name, content, RenameFlags::empty())
    }

    /// Puts a file in this folder, whole or not at all, if there is none of that name.
    pub(crate) fn add(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write(name, &mut &*bytes, RenameFlags::NOREPLACE)
    }

    fn write(&self, name: &str, content: &mut dyn io::Read, flags: RenameFlags) -> Result<()> {
        let path = self.path.join(name);
        let fail = |error: io::Error| Error::io("write", &path)(error);
        let aside = format!(".{name}.{}", uuid::Uuid::new_v4().simple());
        // Made for its owner only, as Claude Code's own are. One that is there is none of ours.
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.handle, &aside, create, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(|errno| fail(errno.into()))?);
        let written = io::copy(content, &mut file)
            .and_then(|_| Ok(rustix::fs::renameat_with(&self.handle, &aside, &self.handle, name, flags)?));
        written.map_err(|error| {
            // It is of no use to anybody; the failure is told in any case.
            let _ = rustix::fs::unlinkat(&self.handle, &aside, AtFlags::empty());
            fail(error)
        })
    }

    /// Moves a file or a folder to another folder, over to another file system too; links are moved as links. What is not
    /// there needs no moving, and what is there already stays as it is. Called again after it was cut short, it goes on.
    pub(crate) fn carry(&self, name: impl AsRef<OsStr>, to: &Folder, new: impl AsRef<OsStr>) -> Result<()> {
        let (name, new) = (name.as_ref(), new.as_ref());
        let path = self.path.join(name);
        match rustix::fs::renameat_with(&self.handle, name, &to.handle, new, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // Another file system, one that cannot be asked so, or something of that name is there.
            Err(Errno::XDEV | Errno::INVAL | Errno::EXIST | Errno::NOTEMPTY) => {
                self.copy(name, to, new).map_err(Error::io("move", &path))?;
                self.remove(name).map_err(Error::io("remove", &path))
            }
            Err(errno) => Err(Error::io("move", &path)(errno.into())),
        }
    }

    fn copy(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        let stat = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                match rustix::fs::mkdirat(&to.handle, new, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                let (from, to) = (self.own(name)?, to.own(new)?);
                from.names()?.iter().try_for_each(|name| from.copy(name, &to, name))?;
                // Its names are to be on disk before the others go.
                Ok(rustix::fs::fsync(&to.handle)?)
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&self.handle, name, Vec::new())?;
                let there = rustix::fs::readlinkat(&to.handle, new, Vec::new());
                if there.is_ok_and(|there| there == target) {
                    return Ok(());
                }
                Ok(rustix::fs::symlinkat(&*target, &to.handle, new)?)
            }
            FileType::RegularFile => self.copy_file(name, to, new, Mode::from_raw_mode(stat.st_mode)),
            // Pipes and the like hold nothing.
            _ => Ok(()),
        }
    }

    /// Copies a file, whole or not at all. The same file may be there already, another may not.
    fn copy_file(&self, name: &OsStr, to: &Folder, new: &OsStr, mode: Mode) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut from = File::from(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?);
        if let Ok(there) = rustix::fs::openat(&to.handle, new, flags, Mode::empty()) {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            from.read_to_end(&mut one)?;
            File::from(there).read_to_end(&mut other)?;
            return if one == other { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) };
        }
        let aside = format!(".{}", uuid::Uuid::new_v4().simple());
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut copy = File::from(rustix::fs::openat(&to.handle, &aside, create, mode)?);
        let copied = io::copy(&mut from, &mut copy)
            .and_then(|_| copy.set_modified(from.metadata()?.modified()?))
            // It is to be on disk before the other goes.
            .and_then(|()| copy.sync_all())
            .and_then(|()| Ok(rustix::fs::renameat(&to.handle, &aside, &to.handle, new)?));
        copied.inspect_err(|_| {
            // It is of no use to anybody; the failure is told in any case.
            let _ = rustix::fs::unlinkat(&to.handle, &aside, AtFlags::empty());
        })
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
            // Left by one of the same name that is no more, if there is any.
            let _ = rustix::fs::unlinkat(&to.handle, &*name, AtFlags::empty());
            // Not every file system has links.
            if rustix::fs::linkat(&self.handle, &*name, &to.handle, &*name, AtFlags::empty()).is_err() {
                self.copy(&name, to, &name).map_err(Error::io("copy", to.path.join(&*name)))?;
            }
        }
        Ok(())
    }

    /// Opens a folder in this one that is no link, in any case.
    fn own(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        Ok(Self { handle, path: self.path.join(name), links: self.links })
    }

    /// Returns the names of files and folders in this folder, in order, and which are folders.
    pub(crate) fn entries(&self) -> Result<Vec<(OsString, bool)>> {
        let kind = |name: OsString| {
            let stat = rustix::fs::statat(&self.handle, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => Some((name, true)),
                FileType::RegularFile => Some((name, false)),
                _ => None,
            }
        };
        let names = self.names().map_err(Error::io("read", &self.path))?;
        let mut entries: Vec<(OsString, bool)> = names.into_iter().filter_map(kind).collect();
        entries.sort_unstable();
        Ok(entries)
    }

    fn names(&self) -> io::Result<Vec<OsString>> {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn carry(from: &Path, to: &Path) -> Result<()> {
        let open = |path: &Path| Folder::open(path.parent().unwrap(), Links::Follow).unwrap();
        open(from).carry(from.file_name().unwrap(), &open(to), to.file_name().unwrap())
    }

    #[test]
    fn what_is_there_already_is_kept_and_the_rest_follows() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for place in [&from, &to] {
            fs::create_dir_all(place.join("deep")).unwrap();
            fs::write(place.join("deep/same"), "same").unwrap();
        }
        fs::write(from.join("deep/new"), "new").unwrap();
        carry(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("deep/new")).unwrap(), b"new");
        assert!(!from.try_exists().unwrap());
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/same"), "another").unwrap();
        carry(&from, &to).unwrap_err();
        assert_eq!(fs::read(to.join("deep/same")).unwrap(), b"same");
        assert_eq!(fs::read(from.join("deep/same")).unwrap(), b"another");
    }

    #[test]
    fn another_file_system_gets_the_same_with_its_times_and_modes() {
        use std::os::unix::fs::PermissionsExt as _;
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), other.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink("kept", from.join("link")).unwrap();
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::options().append(true).open(from.join("kept")).unwrap().set_modified(at).unwrap();
        fs::set_permissions(from.join("kept"), fs::Permissions::from_mode(0o444)).unwrap();
        carry(&from, &to).unwrap();
        let there = fs::metadata(to.join("kept")).unwrap();
        assert_eq!((there.modified().unwrap(), there.permissions().mode() & 0o777), (at, 0o444));
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("kept"));
        assert!(!from.try_exists().unwrap());
    }
}

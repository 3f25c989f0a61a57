//! Claude Code's files, opened without ever leaving its folder: nothing beneath it is followed if it is a link.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::defect::Defect;

/// The folder of projects. The folder itself may be a link.
#[derive(Debug)]
pub(crate) struct ClaudeFiles {
    projects: PathBuf,
}

impl ClaudeFiles {
    pub(crate) fn new(projects: PathBuf) -> Self {
        Self { projects }
    }

    /// Opens a file for reading that lies beneath the folder.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        if Defect::FollowLinks.is_on() {
            return File::open(path);
        }
        let file = open_within(&self.projects, path)?;
        // A pipe or a device could keep a reader waiting for ever.
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Opens whatever lies beneath a folder for reading; no link beneath it is followed.
pub(crate) fn open_within(folder: &Path, path: &Path) -> io::Result<File> {
    let within = path.strip_prefix(folder).map_err(|_| io::ErrorKind::NotFound)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open_beneath(rustix::fs::open(folder, flags, Mode::empty())?, within)
}

/// Opens one component after the other, none of which may be a link.
fn open_beneath(mut folder: OwnedFd, path: &Path) -> io::Result<File> {
    use std::path::Component;
    let refuse = || io::Error::from(io::ErrorKind::NotFound);
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(refuse()) };
        if parts.peek().is_none() {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            return Ok(File::from(rustix::fs::openat(&folder, name, flags, Mode::empty())?));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    }
    Err(refuse())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_beneath_the_folder_is_followed_and_the_folder_itself_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("real/a")).unwrap();
        fs::write(at("real/a/x.jsonl"), "x").unwrap();
        fs::write(at("secret"), "s").unwrap();
        symlink(at("real"), at("projects")).unwrap();
        symlink(at("secret"), at("real/a/y.jsonl")).unwrap();
        symlink(at("real/a"), at("real/b")).unwrap();
        let files = ClaudeFiles::new(at("projects"));
        assert!(files.open(&at("projects/a/x.jsonl")).is_ok());
        for refused in
            ["projects/a/y.jsonl", "projects/b/x.jsonl", "projects/a/../../secret", "secret", "projects/a"]
        {
            assert!(files.open(&at(refused)).is_err(), "{refused}");
        }
    }
}

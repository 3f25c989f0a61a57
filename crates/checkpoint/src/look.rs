//! Looking at one path: what it is now, for certain or not at all.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File as OpenFile;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use rethread_store::BlobId;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::path::TreePath;
use crate::root::{Root, open_in, says_absent, says_no_folder, stat_in};
use crate::state::{File, Present, State, Target};

/// Up to this size a file is read once and held in memory.
pub(crate) const SMALL: u64 = 1 << 20;
/// How often a file that changes while it is read is read again.
const TRIES: usize = 3;
const BUFFER: usize = 256 << 10;

/// What is at a path now.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) state: State,
    /// By what a change is noticed without reading.
    pub(crate) print: Option<Print>,
    /// The content of a small file.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Why it could not be looked at, where that says nothing about the path and passes.
    pub(crate) shortage: Option<Errno>,
}

/// By what a change of a file is noticed without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Print {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) changed: i64,
    pub(crate) names: u64,
}

impl Print {
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            mode: stat.st_mode as u32,
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            names: stat.st_nlink as u64,
        }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode as rustix::fs::RawMode)
    }

    pub(crate) fn rwx(&self) -> u32 {
        self.mode & 0o777
    }

    /// Returns whether this is still the file that was seen. A rename changes the time of change, nothing else.
    pub(crate) fn is_still(&self, seen: &Print) -> bool {
        Print { changed: 0, ..*self } == Print { changed: 0, ..*seen }
    }
}

/// Looks at a path beneath a root; a file larger than `limit` is not read.
pub(crate) fn look(root: &Root, path: &TreePath, limit: u64) -> Seen {
    match root.parent_of(path) {
        Ok(parent) => look_in(parent.as_fd(), path.name(), limit),
        Err(error) if says_no_folder(&error) => Seen { state: without_folder(root, path), ..Seen::absent() },
        Err(error) => Seen::failed(&error),
    }
}

/// The same for a path whose folder may be about to come back in place of a link or a file: until then nothing is
/// there.
pub(crate) fn look_past(root: &Root, path: &TreePath, replaced: &BTreeSet<TreePath>, limit: u64) -> Seen {
    for folder in path.ancestors().filter(|folder| replaced.contains(folder)) {
        let seen = look(root, &folder, 0);
        match seen.state.is_folder() {
            true => {}
            false if seen.shortage.is_some() => return seen,
            false => return Seen::absent(),
        }
    }
    look(root, path, limit)
}

/// Returns what a path is whose folder is not there, or is no folder.
fn without_folder(root: &Root, path: &TreePath) -> State {
    let unknown = |why: &str| State::Unknown { why: why.into() };
    match path.parent().map(|folder| look(root, &folder, 0).state) {
        // Behind a link there may be something; nobody goes there to look.
        Some(State::Present(Present::Symlink(_))) => unknown("a folder on the way is a symbolic link"),
        Some(State::Present(Present::Folder { .. })) | None => unknown("a folder on the way changes"),
        Some(State::Unknown { why }) => State::Unknown { why },
        Some(State::Absent | State::Skipped { .. } | State::Present(Present::File(_))) => State::Absent,
    }
}

/// Looks at a name in a folder.
pub(crate) fn look_in(folder: BorrowedFd<'_>, name: &OsStr, limit: u64) -> Seen {
    let mut seen = Seen::unknown("it changes while it is read".into());
    for _ in 0..TRIES {
        match try_look(folder, name, limit) {
            Ok(Some(stable)) => return stable,
            Ok(None) => {}
            Err(error) => seen = Seen::failed(&error),
        }
        // What vanished between two calls is looked at once more, so that it is absent for certain or not at all.
        if matches!(seen.state, State::Absent) {
            return seen;
        }
    }
    seen
}

/// Returns nothing if the file changed under our eyes.
fn try_look(folder: BorrowedFd<'_>, name: &OsStr, limit: u64) -> io::Result<Option<Seen>> {
    let print = Print::of(&stat_in(folder, name)?);
    let (state, bytes) = match print.kind() {
        FileType::RegularFile if print.size > limit => {
            (skipped(format!("{} bytes are more than the limit of {limit}", print.size)), None)
        }
        FileType::RegularFile => {
            let mut file = open_in(folder, name)?;
            let (hash, size, bytes) = read(&mut file, print.size)?;
            let after = Print::of(&rustix::fs::fstat(&file)?);
            if after != print || size != print.size {
                return Ok(None);
            }
            let (mode, names) = (Some(print.rwx()), print.names);
            (State::Present(Present::File(File { hash, size, mode, names, place: None })), bytes)
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            (State::Present(Present::Symlink(Target(target.as_bytes().into()))), None)
        }
        FileType::Directory => (State::Present(Present::Folder { mode: Some(print.rwx()) }), None),
        FileType::Fifo => (skipped("a pipe".into()), None),
        FileType::Socket => (skipped("a socket".into()), None),
        FileType::CharacterDevice | FileType::BlockDevice => (skipped("a device".into()), None),
        _ => (skipped("neither a file nor a link nor a folder".into()), None),
    };
    Ok(Some(Seen { state, print: Some(print), bytes, shortage: None }))
}

/// Reads a file to its end: its hash, its size, and its content if that is small.
fn read(file: &mut OpenFile, expected: u64) -> io::Result<(BlobId, u64, Option<Vec<u8>>)> {
    if expected <= SMALL {
        let mut bytes = Vec::with_capacity(expected as usize + 1);
        file.take(SMALL + 1).read_to_end(&mut bytes)?;
        return Ok((BlobId::of(&bytes), bytes.len() as u64, Some(bytes)));
    }
    let (mut hasher, mut size, mut buffer) = (Sha256::new(), 0, vec![0; BUFFER]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((BlobId::of_hasher(hasher), size, None)),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn skipped(reason: String) -> State {
    State::Skipped { reason }
}

impl Seen {
    pub(crate) fn failed(error: &io::Error) -> Self {
        match says_absent(error) {
            true => Self::absent(),
            false => Self { shortage: shortage(error), ..Self::unknown(error.to_string()) },
        }
    }

    /// Returns it, unless there was too little of something to look.
    pub(crate) fn or_short_of(self, root: &Root, path: &TreePath) -> Result<Self> {
        match self.shortage {
            None => Ok(self),
            Some(shortage) => Err(Error::io("look at", root.full(path))(io::Error::from(shortage))),
        }
    }

    fn absent() -> Self {
        Self { state: State::Absent, print: None, bytes: None, shortage: None }
    }

    pub(crate) fn unknown(why: String) -> Self {
        Self { state: State::Unknown { why }, ..Self::absent() }
    }
}

/// Returns what there is too little of, if an error says that.
pub(crate) fn shortage(error: &io::Error) -> Option<Errno> {
    let errno = Errno::from_io_error(error)?;
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS].contains(&errno).then_some(errno)
}

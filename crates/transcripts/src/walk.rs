//! Every transcript beneath Claude Code's folder, as the file system knows it.

use std::borrow::Cow;
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use crate::claude_folder::Links;

/// How many folders are held open at most: a process may not have many more than a thousand files.
const MOST_HANDLES: usize = 128;

/// A session's file, and the folder beside it if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    /// The folder it was found in, held open.
    folder: Option<Arc<OwnedFd>>,
    pub(crate) state: State,
    pub(crate) has_folder: bool,
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
    pub(crate) inode: u64,
}

impl State {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        Self { size: metadata.len(), modified, inode: metadata.ino() }
    }

    fn of_file(stat: &Stat) -> Self {
        let modified = stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64);
        Self { size: stat.st_size as u64, modified, inode: stat.st_ino }
    }
}

/// What a walk through the folders of projects came upon.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) found: Vec<Found>,
    /// Folders that the system does not let us look into.
    pub(crate) unreadable: Vec<PathBuf>,
}

/// Looks at every folder of projects, two at a time. What vanishes meanwhile is left out.
pub(crate) fn walk(projects: &Path, links: Links) -> io::Result<Walked> {
    let folders: Vec<PathBuf> = match fs::read_dir(projects) {
        Ok(entries) => {
            let may_be = |entry: &DirEntry| links == Links::Follow || !is_link(entry);
            entries.flatten().filter(may_be).map(|entry| entry.path()).collect()
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Walked::default()),
        Err(error) => return Err(error),
    };
    let (next, handles) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut walked = Walked::default();
        while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            match look_into(folder, links, &handles) {
                Ok(found) => walked.found.extend(found),
                // A file among the folders holds no sessions, and neither does one that is gone by now.
                Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => {}
                Err(_) => walked.unreadable.push(folder.clone()),
            }
        }
        walked
    };
    Ok(thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut walked = work();
        let other = other.join().unwrap_or_default();
        walked.found.extend(other.found);
        walked.unreadable.extend(other.unreadable);
        walked
    }))
}

/// Looks into a folder. Its handle stays with what is found there, as long as there are not too many of them.
fn look_into(folder: &Path, links: Links, handles: &AtomicUsize) -> io::Result<Vec<Found>> {
    let (mut found, mut folders) = (Vec::new(), Vec::new());
    let (no_link, of_itself) = match links {
        Links::Follow => (OFlags::empty(), AtFlags::empty()),
        Links::Refuse => (OFlags::NOFOLLOW, AtFlags::SYMLINK_NOFOLLOW),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | no_link;
    let handle = Arc::new(rustix::fs::open(folder, flags, Mode::empty())?);
    let kept = (handles.fetch_add(1, Ordering::Relaxed) < MOST_HANDLES).then_some(&handle);
    for entry in Dir::read_from(&*handle)?.flatten() {
        let Ok(name) = entry.file_name().to_str() else { continue };
        let stat = |flags| rustix::fs::statat(&*handle, entry.file_name(), flags).ok();
        let is_link = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        match name.strip_suffix(".jsonl") {
            Some(id) if is_uuid(id) => found.extend(stat(of_itself).filter(is_file).map(|stat| Found {
                id: id.to_owned(),
                path: joined(folder, name),
                folder: kept.cloned(),
                state: State::of_file(&stat),
                has_folder: false,
            })),
            None if is_uuid(name)
                && (links == Links::Follow || !stat(AtFlags::SYMLINK_NOFOLLOW).is_none_or(is_link)) =>
            {
                folders.push(name.to_owned())
            }
            _ => {}
        }
    }
    folders.sort_unstable();
    for session in &mut found {
        session.has_folder = folders.binary_search(&session.id).is_ok();
    }
    Ok(found)
}

/// Joins a name to a folder, in memory that is asked for once.
fn joined(folder: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::with_capacity(folder.as_os_str().len() + 1 + name.len());
    path.push(folder);
    path.push(name);
    path
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

impl Found {
    /// Returns its path beneath the folder of projects.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        let path = self.path.as_os_str().as_bytes();
        let within = path.len().saturating_sub(self.id.len() + "/.jsonl".len());
        let begin = memchr::memrchr(b'/', &path[..within]).map_or(0, |slash| slash + 1);
        String::from_utf8_lossy(&path[begin..])
    }

    /// Opens it for reading.
    pub(crate) fn open(&self, links: Links) -> io::Result<File> {
        let no_link = if links == Links::Refuse { OFlags::NOFOLLOW } else { OFlags::empty() };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | no_link;
        let opened = match (&self.folder, self.path.file_name()) {
            (Some(folder), Some(name)) => rustix::fs::openat(folder, name, flags, Mode::empty()),
            _ => rustix::fs::open(&self.path, flags, Mode::empty()),
        };
        Ok(File::from(opened?))
    }

    /// Looks at one file.
    pub(crate) fn at(path: &Path, id: &str, links: Links) -> Option<Self> {
        let look = |path: &Path| match links {
            Links::Follow => fs::metadata(path),
            Links::Refuse => fs::symlink_metadata(path),
        };
        let metadata = look(path).ok().filter(Metadata::is_file)?;
        let has_folder = look(&path.with_extension("")).is_ok_and(|beside| beside.is_dir());
        let state = State::of(&metadata);
        Some(Self { id: id.to_owned(), path: path.to_owned(), folder: None, state, has_folder })
    }
}

fn is_link(entry: &DirEntry) -> bool {
    entry.file_type().map_or(true, |kind| kind.is_symlink())
}

/// Returns a session's path beneath the folder of projects.
pub(crate) fn name_of(project: &str, id: &str) -> String {
    [project, "/", id, ".jsonl"].concat()
}

/// Returns whether a text has the form of a UUID, in either case.
pub(crate) fn is_uuid(text: &str) -> bool {
    let is_dash = |at| matches!(at, 8 | 13 | 18 | 23);
    text.len() == 36
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if is_dash(at) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

//! Every transcript beneath Claude Code's folder, as the file system knows it.

use std::fs::{self, DirEntry, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::claude_folder::Links;

/// A session's file, and the folder beside it if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) id: String,
    /// Its path beneath the folder of projects.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
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
    let next = AtomicUsize::new(0);
    let work = || {
        let mut walked = Walked::default();
        while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            match look_into(folder, links) {
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

fn look_into(folder: &Path, links: Links) -> io::Result<Vec<Found>> {
    let (mut found, mut folders) = (Vec::new(), Vec::new());
    let project = folder.file_name().unwrap_or_default().to_string_lossy();
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        match name.strip_suffix(".jsonl") {
            Some(id) if is_uuid(id) => found.extend(stat(&entry, &project, id, links)),
            None if is_uuid(name) && (links == Links::Follow || !is_link(&entry)) => {
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

impl Found {
    /// Looks at one file.
    pub(crate) fn at(path: &Path, id: &str, links: Links) -> Option<Self> {
        let look = |path: &Path| match links {
            Links::Follow => fs::metadata(path),
            Links::Refuse => fs::symlink_metadata(path),
        };
        let metadata = look(path).ok().filter(Metadata::is_file)?;
        let has_folder = look(&path.with_extension("")).is_ok_and(|beside| beside.is_dir());
        let project = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let (name, state) = (name_of(&project, id), State::of(&metadata));
        Some(Self { id: id.to_owned(), name, path: path.to_owned(), state, has_folder })
    }
}

fn is_link(entry: &DirEntry) -> bool {
    entry.file_type().map_or(true, |kind| kind.is_symlink())
}

fn stat(entry: &DirEntry, project: &str, id: &str, links: Links) -> Option<Found> {
    // Not `DirEntry::metadata`: Claude Code follows a link, so that is a session too.
    let is_link = entry.file_type().ok()?.is_symlink();
    if is_link && links == Links::Refuse {
        return None;
    }
    let metadata = if is_link { fs::metadata(entry.path()) } else { entry.metadata() }.ok()?;
    let state = State::of(&metadata);
    let name = name_of(project, id);
    metadata.is_file().then(|| Found {
        id: id.to_owned(),
        name,
        path: entry.path(),
        state,
        has_folder: false,
    })
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

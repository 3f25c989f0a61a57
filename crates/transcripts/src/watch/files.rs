//! How much of each file was delivered.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::{Change, Event, From};
use crate::envelope::Envelope;
use crate::lines::each_line;
use crate::node::Span;
use crate::recover::remains;
use crate::walk::State;

/// How much of what was delivered last must still be the same.
const FINGERPRINT: u64 = 64;

/// The files that are followed.
#[derive(Debug)]
pub(super) struct Files {
    which: Which,
    known: HashMap<PathBuf, Delivered>,
}

#[derive(Debug)]
enum Which {
    /// All transcripts beneath a folder of projects.
    Beneath(PathBuf),
    Only(PathBuf),
}

/// What was delivered of one file.
#[derive(Clone, Debug, Default)]
struct Delivered {
    /// Up to here.
    offset: u64,
    state: State,
    /// What stands just before that place.
    fingerprint: Vec<u8>,
}

impl Files {
    pub(super) fn beneath(projects: PathBuf) -> Self {
        Self { which: Which::Beneath(projects), known: HashMap::new() }
    }

    pub(super) fn only(path: PathBuf) -> Self {
        Self { which: Which::Only(path), known: HashMap::new() }
    }

    /// Returns the folder that holds everything.
    pub(super) fn root(&self) -> &Path {
        match &self.which {
            Which::Beneath(projects) => projects,
            Which::Only(path) => path.parent().unwrap_or(Path::new(".")),
        }
    }

    /// Returns every folder in which a transcript may appear or change.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.root().to_owned()];
        if let Which::Beneath(projects) = &self.which {
            for project in folders_in(projects) {
                for session in folders_in(&project) {
                    let subagents = session.join("subagents");
                    folders.push(session);
                    folders.extend(subagents.is_dir().then_some(subagents));
                }
                folders.push(project);
            }
        }
        folders
    }

    /// Returns whether all that happens to the files happens in those folders, and not elsewhere, where a link leads.
    pub(super) fn are_all_in_folders(&self) -> bool {
        match &self.which {
            Which::Beneath(_) => true,
            Which::Only(path) => !path.is_symlink(),
        }
    }

    /// Takes note of what is there, and delivers it if that is wanted.
    pub(super) fn begin(&mut self, from: From, take: &mut impl FnMut(Change)) {
        for path in self.transcripts() {
            let start = match from {
                From::Beginning => Some(0),
                From::Offset(offset) => Some(offset),
                From::Now => None,
            };
            // One that cannot be read now is looked at again with the next notice.
            if let Ok(delivered) = Delivered::at(&path, start) {
                self.known.insert(path.clone(), delivered);
            }
            if start.is_some() {
                self.look_at(&path, take);
            }
        }
    }

    fn transcripts(&self) -> Vec<PathBuf> {
        match &self.which {
            Which::Only(path) => vec![path.clone()],
            Which::Beneath(_) => {
                let files = self.folders().into_iter().flat_map(|folder| entries(&folder));
                files.filter(|path| self.is_ours(path)).collect()
            }
        }
    }

    fn is_ours(&self, path: &Path) -> bool {
        match &self.which {
            Which::Only(only) => path == only,
            Which::Beneath(_) => path.extension().is_some_and(|extension| extension == "jsonl"),
        }
    }

    /// Looks at every file that is there or was.
    pub(super) fn look_at_all(&mut self, take: &mut impl FnMut(Change)) {
        let mut all: HashSet<PathBuf> = self.transcripts().into_iter().collect();
        all.extend(self.known.keys().cloned());
        for path in all {
            let state = fs::metadata(&path).ok().map(|metadata| State::of(&metadata));
            if self.known.get(&path).map(|known| known.state) != state || state.is_none() {
                self.look_at(&path, take);
            }
        }
    }

    /// Delivers what is new in a file.
    pub(super) fn look_at(&mut self, path: &Path, take: &mut impl FnMut(Change)) {
        if !self.is_ours(path) {
            return;
        }
        let mut tell = |event, more| take(Change { path: path.to_owned(), event, more });
        match self.advance(path, &mut tell) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.known.remove(path).is_some() {
                    tell(Event::Removed, false);
                }
            }
            // What cannot be read now may be readable at the next notice; nothing is passed over.
            Err(_) => {}
        }
    }

    fn advance(&mut self, path: &Path, tell: &mut impl FnMut(Event, bool)) -> io::Result<()> {
        let file = open(path)?;
        loop {
            let state = State::of(&file.metadata()?);
            let known = self.known.get(path).filter(|known| known.still_holds(&file, state)).cloned();
            if known.is_none() && self.known.remove(path).is_some() {
                tell(Event::Restarted, true);
                continue;
            }
            let mut next = known.clone().unwrap_or_default();
            next.state = state;
            let mut events = Vec::new();
            each_line(&file, next.offset, state.size, |at, line, is_ended| {
                if is_ended {
                    deliver(at, line, &mut |event| events.push(event));
                    next.take(line);
                }
            })?;
            // Another file's middle may have been read if this one was replaced meanwhile.
            if known.is_some_and(|known| !known.still_holds(&file, state)) {
                continue;
            }
            self.known.insert(path.to_owned(), next);
            let mut events = events.into_iter();
            while let Some(event) = events.next() {
                tell(event, events.len() > 0);
            }
            return Ok(());
        }
    }
}

impl Delivered {
    /// Takes note of a file as if it had been delivered up to a place; up to its last whole line if none is given.
    fn at(path: &Path, start: Option<u64>) -> io::Result<Self> {
        let file = open(path)?;
        let state = State::of(&file.metadata()?);
        let offset = match start {
            Some(offset) => offset.min(state.size),
            None => last_line_end(&file, state.size)?,
        };
        let fingerprint = fingerprint_at(&file, offset)?;
        // Its time is that of no file, so that it is looked at in any case.
        let state = if start.is_some() { State { modified: i64::MIN, ..state } } else { state };
        Ok(Self { offset, state, fingerprint })
    }

    /// Goes on past a line. What stands before the new place is what was read, not what is there by now.
    fn take(&mut self, line: &[u8]) {
        self.offset += line.len() as u64 + 1;
        self.fingerprint.extend_from_slice(&line[line.len().saturating_sub(FINGERPRINT as usize)..]);
        self.fingerprint.push(b'\n');
        let surplus = self.fingerprint.len().saturating_sub(FINGERPRINT as usize);
        self.fingerprint.drain(..surplus);
    }

    /// Returns whether what was delivered is still what stands there.
    fn still_holds(&self, file: &File, state: State) -> bool {
        self.state.inode == state.inode
            && self.offset <= state.size
            && fingerprint_at(file, self.offset).is_ok_and(|there| there == self.fingerprint)
    }
}

fn deliver(at: u64, line: &[u8], tell: &mut impl FnMut(Event)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut give = |offset: u64, raw: &[u8]| {
        let span = Span { offset, length: u32::try_from(raw.len()).unwrap_or(u32::MAX) };
        tell(Event::Added { span, raw: raw.to_vec() });
    };
    if is_entry(line) {
        return give(at, line);
    }
    for range in remains(line, false).into_iter().flat_map(|remains| remains.entries) {
        give(at + range.start as u64, &line[range]);
    }
}

/// Returns whether a line can be read as an entry. Nearly all are plain JSON, which is quicker to see.
fn is_entry(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
        || Envelope::of(line).is_some()
}

/// Opens a file for reading. A pipe of that name would keep us waiting, and cannot be read from the middle anyway.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

fn fingerprint_at(file: &File, place: u64) -> io::Result<Vec<u8>> {
    let length = place.min(FINGERPRINT);
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, place - length)?;
    Ok(bytes)
}

/// Returns where the last line ends that has its newline.
fn last_line_end(file: &File, size: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut end = size;
    while end > 0 {
        let begin = end.saturating_sub(buffer.len() as u64);
        let part = &mut buffer[..(end - begin) as usize];
        file.read_exact_at(part, begin)?;
        if let Some(newline) = memchr::memrchr(b'\n', part) {
            return Ok(begin + newline as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

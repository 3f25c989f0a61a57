//! How much of each file was delivered.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{From, Happening, News};
use crate::line::Line;
use crate::node::Span;
use crate::recover::remains;
use crate::walk::State;

/// How much is read at a time.
const CHUNK: u64 = 1 << 18;
/// How much of what was delivered last must still be the same. Enough for an id or a time of the last entry to be in it: the
/// very end of an entry is the same in all of a session.
const FINGERPRINT: u64 = 512;

/// The files that are followed.
#[derive(Debug)]
pub(super) struct Files {
    which: Which,
    known: HashMap<PathBuf, Delivered>,
    /// What was read last, kept for its room.
    buffer: Vec<u8>,
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
        Self { which: Which::Beneath(projects), known: HashMap::new(), buffer: Vec::new() }
    }

    pub(super) fn only(path: PathBuf) -> Self {
        Self { which: Which::Only(path), known: HashMap::new(), buffer: Vec::new() }
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
    pub(super) fn begin(&mut self, from: From, take: &mut impl FnMut(News<'_>)) {
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
    pub(super) fn look_at_all(&mut self, take: &mut impl FnMut(News<'_>)) {
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
    pub(super) fn look_at(&mut self, path: &Path, take: &mut impl FnMut(News<'_>)) {
        if !self.is_ours(path) {
            return;
        }
        let mut tell = |event: Happening<'_>| take(News { path, event });
        match self.advance(path, &mut tell) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.known.remove(path).is_some() {
                    tell(Happening::Removed);
                }
            }
            // What cannot be read now may be readable at the next notice; nothing is passed over.
            Err(_) => {}
        }
        tell(Happening::Rested);
    }

    fn advance(&mut self, path: &Path, tell: &mut impl FnMut(Happening<'_>)) -> io::Result<()> {
        let file = open(path)?;
        loop {
            let state = State::of(&file.metadata()?);
            let known = self.known.get(path).filter(|known| known.still_holds(&file, state)).cloned();
            if known.is_none() && self.known.remove(path).is_some() {
                tell(Happening::Restarted);
                continue;
            }
            let mut next = known.clone().unwrap_or_default();
            next.state = state;
            let is_all = read_lines(&file, next.offset, state.size, &mut self.buffer)?;
            // Another file's middle may have been read if this one was replaced meanwhile.
            if known.is_some_and(|known| !known.still_holds(&file, state)) {
                continue;
            }
            deliver(next.offset, &self.buffer, tell);
            next.take(&self.buffer);
            self.known.insert(path.to_owned(), next);
            if is_all {
                // One long line need not cost its room for ever.
                self.buffer.shrink_to(CHUNK as usize);
                return Ok(());
            }
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

    /// Goes on past some bytes. What stands before the new place is what was read, not what is there by now.
    fn take(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.fingerprint.extend_from_slice(&bytes[bytes.len().saturating_sub(FINGERPRINT as usize)..]);
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

/// Reads whole lines between two places, a chunk of them or one that is longer; returns whether those are all.
fn read_lines(file: &File, from: u64, to: u64, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut room = CHUNK;
    loop {
        let length = to.saturating_sub(from).min(room);
        buffer.resize(length as usize, 0);
        let mut read = 0;
        while read < buffer.len() {
            match file.read_at(&mut buffer[read..], from + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        let is_all = read < buffer.len() || from + length >= to;
        let end = memchr::memrchr(b'\n', &buffer[..read]).map_or(0, |newline| newline + 1);
        buffer.truncate(end);
        if end > 0 || is_all {
            return Ok(is_all);
        }
        // A line that is longer than this.
        room *= 2;
    }
}

/// Tells of each entry in whole lines.
fn deliver(from: u64, bytes: &[u8], tell: &mut impl FnMut(Happening<'_>)) {
    let mut at = 0;
    for newline in memchr::memchr_iter(b'\n', bytes) {
        each_entry_in(from + at as u64, &bytes[at..newline], |entry| tell(Happening::Added(entry)));
        at = newline + 1;
    }
}

/// Hands out the entries of a line: nearly always the line itself.
fn each_entry_in<'a>(at: u64, line: &'a [u8], mut give: impl FnMut(Line<'a>)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let span =
        |offset: u64, raw: &[u8]| Span { offset, length: u32::try_from(raw.len()).unwrap_or(u32::MAX) };
    if let Some(whole) = Line::of(line, span(at, line)) {
        return give(whole);
    }
    for range in remains(line, false).into_iter().flat_map(|remains| remains.entries) {
        let raw = &line[range.clone()];
        let entry = Line::of(raw, span(at + range.start as u64, raw));
        entry.into_iter().for_each(&mut give);
    }
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

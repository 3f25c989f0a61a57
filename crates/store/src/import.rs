//! Sessions that an older store wrote as plain files, taken over into this one.
//!
//! Two layouts are known. Both have a folder for each session with `metadata.json`, `messages.jsonl`,
//! `transcript.jsonl` and `checkpoints/<id>/manifest.json`:
//!
//! * `<project>/sessions/<id>/`, contents in `checkpoints/<user message>/files/<sha256>`, and
//!   `<project>/memory/summary.md` beside the sessions;
//! * `<base>/<id>/`, contents in `checkpoints/<checkpoint>/blobs/<sha256>`.
//!
//! # Contract
//!
//! * The source is only read.
//! * A session is imported as a whole, with everything of it that can be read, or not at all; one that is there
//!   already is left alone. What could not be read is named, with its file and place.
//! * Entries are taken over byte for byte, without the white space around them.

pub(crate) mod arrival;
mod checkpoint;
mod find;
pub(crate) mod lines;
mod source;

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Map;

use self::arrival::{Arriving, Placement};
use self::lines::{Found, Lines};
use self::source::Source;
use crate::backend::{Expect, LogName};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::{EntryId, SessionId};
use crate::note::{Arrival, Note};
use crate::stamp::Kind;
use crate::store::Store;

const BUFFER: usize = 256 << 10;
/// After how many bytes somebody who watches hears of it.
const STEP: u64 = 4 << 20;

/// How far an import of a folder has got.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The session's folder.
    pub folder: PathBuf,
    /// Which session it is, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// How many bytes of this session's logs were read.
    pub bytes: u64,
    /// How many there are.
    pub of_bytes: u64,
}

/// What became of every session in a folder.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FolderImport {
    /// The sessions, in order of their folders.
    pub sessions: Vec<FolderSession>,
    /// Project memories that were taken over.
    pub memories: Vec<PathBuf>,
    /// What could not be read, apart from sessions.
    pub issues: Vec<Issue>,
}

/// What became of one session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FolderSession {
    /// Its folder.
    pub folder: PathBuf,
    /// What became of it.
    pub outcome: FolderOutcome,
    /// What could not be read of it.
    pub issues: Vec<Issue>,
}

/// What became of a session in a folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FolderOutcome {
    /// It is in this store now.
    Imported {
        /// Its id.
        session_id: SessionId,
        /// Entries of the conversation.
        messages: u64,
        /// Entries of the transcript.
        transcript: u64,
        /// Captures of files.
        checkpoints: u64,
    },
    /// There was one of that id already, and it was left alone.
    Exists(SessionId),
    /// It could not be imported at all.
    Refused(Error),
}

/// Something that could not be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issue {
    /// The file.
    pub file: PathBuf,
    /// Where in it, if it is about one place.
    pub offset: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl Issue {
    pub(crate) fn new(file: &Path, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), offset: None, reason: reason.into() }
    }

    fn at(file: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self { offset: Some(offset), ..Self::new(file, reason) }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, reason) = (self.file.display(), &self.reason);
        match self.offset {
            Some(offset) => write!(f, "{file}: at byte {offset}: {reason}"),
            None => write!(f, "{file}: {reason}"),
        }
    }
}

impl Store {
    /// Takes over the sessions of an older store: all below a folder, or the one that the folder is.
    ///
    /// One session that cannot be imported does not keep the others out. Calling it again imports what is new.
    pub async fn import_folder(
        &self,
        path: &Path,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<FolderImport> {
        self.check_format().await?;
        let mut import = FolderImport::default();
        let found = find::sessions(path, &mut import.issues)?;
        let of = found.len();
        for (index, folder) in found.iter().enumerate() {
            let mut issues = Vec::new();
            let start = Progress { folder: folder.clone(), number: index + 1, of, bytes: 0, of_bytes: 0 };
            let outcome = match self.import_session(folder, &mut issues, start, progress).await {
                Ok(outcome) => outcome,
                Err(Error::SessionExists(id)) => FolderOutcome::Exists(id),
                Err(error) => FolderOutcome::Refused(error),
            };
            import.sessions.push(FolderSession { folder: folder.clone(), outcome, issues });
        }
        self.import_memories(&found, &mut import).await?;
        Ok(import)
    }

    async fn import_session(
        &self,
        folder: &Path,
        issues: &mut Vec<Issue>,
        start: Progress,
        tell: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<FolderOutcome> {
        let source = Source::open(folder, issues)?;
        // Looked at again when it is written; here it saves reading what is there already.
        let there = self.fold(&source.session_id).await?;
        if there.next > 0 && there.arrival.is_none() {
            return Err(Error::SessionExists(source.session_id));
        }
        let progress = Progress { of_bytes: source.size(), ..start };
        let mut watch = Watch { progress, tell };
        watch.advance(0);
        let last = EntryId::generate();
        let created = Note::Created {
            at: source.created_at,
            set: source.metadata.clone(),
            origin: None,
            arrival: None,
        };
        let created = Placement { kind: Kind::Note, parent: None, depth: 0, entry: created.to_entry()? };
        let arrival = Arrival { at: Timestamp::now(), last: last.clone(), position: None, updated_at: None };
        let mut arriving = Arriving::begin(self, source.session_id.clone(), created, &arrival).await?;
        match self.fill(&source, &mut arriving, issues, &mut watch, last).await {
            Ok(outcome) => arriving.finish().await.map(|()| outcome),
            Err(error) => Err(arriving.abandon(error).await),
        }
    }

    async fn fill(
        &self,
        source: &Source,
        arriving: &mut Arriving,
        issues: &mut Vec<Issue>,
        watch: &mut Watch<'_>,
        last: EntryId,
    ) -> Result<FolderOutcome> {
        let messages = self.copy_lines(source, LogName::Messages, arriving, issues, watch).await?;
        let transcript = self.copy_lines(source, LogName::Transcript, arriving, issues, watch).await?;
        let captures = checkpoint::read_all(&*self.inner.backend, source, issues).await?;
        let checkpoints = captures.len() as u64;
        for capture in captures {
            arriving.append(LogName::Checkpoints, capture).await?;
        }
        // Entries that do not say when they were made leave only the file's own time.
        let timeless = arriving.fold().timeless.then_some(source.modified).flatten();
        let mut set = Map::new();
        if let Some(at) = source.updated_at.or(timeless) {
            set.insert("updated_at".into(), at.to_string().into());
        }
        let note = Note::Set { at: Timestamp::now(), set }.to_entry()?.with_id(last);
        arriving.note(LogName::Messages, note).await?;
        let session_id = source.session_id.clone();
        Ok(FolderOutcome::Imported { session_id, messages, transcript, checkpoints })
    }

    /// Takes over the entries of one log, and names the lines that are none.
    async fn copy_lines(
        &self,
        source: &Source,
        log: LogName,
        arriving: &mut Arriving,
        issues: &mut Vec<Issue>,
        watch: &mut Watch<'_>,
    ) -> Result<u64> {
        let path = source.log(log);
        let file = match source::open(&path) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(0),
            Err(error) => {
                issues.push(Issue::new(&path, error.to_string()));
                return Ok(0);
            }
        };
        let limit = self.inner.backend.capabilities().max_record;
        let mut lines = Lines::new(BufReader::with_capacity(BUFFER, file), limit);
        let mut copied = 0;
        loop {
            let offset = lines.offset();
            match next_entry(&mut lines, limit) {
                Ok(None) => return Ok(copied),
                Ok(Some(None)) => {}
                Ok(Some(Some(Ok(entry)))) => {
                    arriving.append(log, entry).await?;
                    copied += 1;
                }
                Ok(Some(Some(Err(reason)))) => issues.push(Issue::at(&path, offset, reason)),
                Err(error) => {
                    issues.push(Issue::at(&path, offset, format!("cannot be read from here on: {error}")));
                    return Ok(copied);
                }
            }
            watch.advance(lines.offset() - offset);
        }
    }

    /// Takes over what projects wanted to remember, where this store remembers nothing yet.
    async fn import_memories(&self, found: &[PathBuf], import: &mut FolderImport) -> Result<()> {
        for (path, cwd) in find::memories(found) {
            match self.import_memory(&path, cwd.as_deref()).await {
                Ok(true) => import.memories.push(path),
                Ok(false) => {}
                Err(Error::BadImport { reason, .. }) => import.issues.push(Issue::new(&path, reason)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn import_memory(&self, path: &Path, cwd: Option<&Path>) -> Result<bool> {
        let bad = |reason: String| Error::BadImport { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let cwd = cwd.ok_or_else(|| bad("no session says which project it belongs to".into()))?;
        match self.project_memory(cwd).await? {
            Some(there) if there.text == self.redacted_text(&text) => Ok(false),
            Some(_) => Err(bad("this project has another memory here already, which was kept".into())),
            None => self.set_project_memory(cwd, &text, Expect::Absent).await.map(|_| true),
        }
    }
}

/// An entry, or why a line is none; `None` for a blank line.
type Read = Option<Result<Entry, String>>;

/// Reads the next line; `None` at the end of the file.
fn next_entry(lines: &mut Lines<BufReader<File>>, limit: usize) -> std::io::Result<Option<Read>> {
    let (line, ended) = match lines.next()? {
        None => return Ok(None),
        Some(Found::Whole(line)) => (line, true),
        Some(Found::Unended(line)) => (line, false),
        Some(Found::TooLong(length)) => {
            return Ok(Some(Some(Err(format!("a line of {length} bytes is over the limit of {limit}")))));
        }
    };
    if line.trim_ascii().is_empty() {
        return Ok(Some(None));
    }
    let entry = Entry::parse(bytes::Bytes::copy_from_slice(line));
    Ok(Some(Some(entry.map_err(|error| match ended {
        true => error.to_string(),
        false => "the file ends in the middle of a line".into(),
    }))))
}

/// Somebody who wants to know how far it has got.
struct Watch<'a> {
    progress: Progress,
    tell: &'a mut (dyn FnMut(Progress) + Send),
}

impl Watch<'_> {
    fn advance(&mut self, bytes: u64) {
        let before = self.progress.bytes / STEP;
        self.progress.bytes += bytes;
        if bytes == 0 || self.progress.bytes / STEP > before {
            (self.tell)(self.progress.clone());
        }
    }
}

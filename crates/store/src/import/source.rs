//! One session as an older store left it.

use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Issue;
use super::lines::{Found, Lines};
use crate::backend::LogName;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::stamp::Line;
use crate::store::{canonical, project_of};

/// A metadata file or manifest over this size is not one.
const SMALL: u64 = 64 << 20;
/// What a session's id is called in its metadata.
const ID: [&str; 3] = ["session_id", "id", "sessionId"];
/// What follows from the log itself, or has a place of its own.
const DERIVED: [&str; 6] =
    ["created_at", "updated_at", "first_prompt", "message_count", "entry_count", "trashed_at"];
/// What an older store left empty where it had nothing to say.
const OPTIONAL: [&str; 9] = [
    "project",
    "cwd",
    "model",
    "provider",
    "name",
    "exit_reason",
    "agent_name",
    "parent_id",
    "fork_message_id",
];

/// A session's folder.
#[derive(Debug)]
pub(super) struct Source {
    folder: PathBuf,
    pub(super) session_id: SessionId,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Option<Timestamp>,
    /// When its conversation was last written to, as far as the file system knows.
    pub(super) modified: Option<Timestamp>,
    /// What else its metadata says, in our words.
    pub(super) metadata: Map<String, Value>,
}

impl Source {
    /// Returns whether a folder is that of a session.
    pub(super) fn is_at(folder: &Path) -> bool {
        let has = |name: &str| folder.join(name).is_file();
        has("messages.jsonl")
            || has("transcript.jsonl")
            || (has("metadata.json")
                // Metadata that cannot be read is some session's, and is reported as that.
                && read_object(&folder.join("metadata.json"))
                    .map_or(true, |metadata| ID.iter().any(|name| metadata.contains_key(*name))))
    }

    /// Reads what there is to know before its logs are read.
    pub(super) fn open(folder: &Path, issues: &mut Vec<Issue>) -> Result<Self> {
        let path = folder.join("metadata.json");
        let mut metadata = read_object(&path).unwrap_or_else(|reason| {
            issues.push(Issue::new(&path, reason));
            Map::new()
        });
        let messages = folder.join(LogName::Messages.as_str()).with_extension("jsonl");
        let first = first_line(&messages);
        if metadata.contains_key("_fold") || first.as_ref().is_some_and(|line| is_stamped(line)) {
            let reason = "it belongs to a store of this program: export it there".into();
            return Err(Error::BadImport { path: folder.to_owned(), reason });
        }
        let session_id = id_of(folder, &metadata).parse()?;
        ID.iter().for_each(|name| drop(metadata.remove(*name)));
        let time = |metadata: &Map<String, Value>, name: &str| {
            let at: Timestamp = metadata.get(name)?.as_str()?.parse().ok()?;
            // Go writes the year 1 where it has no time.
            (at > Timestamp::UNIX_EPOCH).then_some(at)
        };
        let (created_at, updated_at) = (time(&metadata, "created_at"), time(&metadata, "updated_at"));
        let modified = modified(&messages);
        let first_entry = || Entry::parse(first?).ok()?.timestamp();
        let created_at = created_at.or_else(first_entry).or(modified).or(self::modified(folder));
        DERIVED.iter().for_each(|name| drop(metadata.remove(*name)));
        metadata.retain(|name, value| value.as_str() != Some("") || !OPTIONAL.contains(&name.as_str()));
        place_in_project(&mut metadata);
        Ok(Self {
            folder: folder.to_owned(),
            session_id,
            created_at: created_at.unwrap_or_else(Timestamp::now),
            updated_at,
            modified,
            metadata,
        })
    }

    /// Returns the file of a log.
    pub(super) fn log(&self, name: LogName) -> PathBuf {
        self.folder.join(name.as_str()).with_extension("jsonl")
    }

    /// Returns the folder of its checkpoints.
    pub(super) fn checkpoints(&self) -> PathBuf {
        self.folder.join("checkpoints")
    }

    /// Returns its working directory.
    pub(super) fn cwd(&self) -> Option<&str> {
        self.metadata.get("cwd")?.as_str()
    }

    /// Returns how many bytes its logs have.
    pub(super) fn size(&self) -> u64 {
        let logs = [LogName::Messages, LogName::Transcript].map(|name| self.log(name));
        logs.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|file| file.len()).sum()
    }
}

/// Returns when a session was last written to, and where it worked.
pub(super) fn place(folder: &Path) -> Option<(Option<Timestamp>, PathBuf)> {
    let metadata = read_object(&folder.join("metadata.json")).ok()?;
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let at = text("updated_at").or(text("created_at")).and_then(|at| at.parse().ok());
    Some((at, text("cwd")?.into()))
}

/// Opens a file for reading, or says that there is none. Anything but a plain file is an error: reading from a pipe
/// might never end.
pub(super) fn open(path: &Path) -> std::io::Result<Option<File>> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => File::open(path).map(Some),
        Ok(_) => Err(std::io::Error::other("not a plain file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a small file that holds one JSON object, or says why that is not possible.
pub(super) fn read_object(path: &Path) -> Result<Map<String, Value>, String> {
    let file = open(path).map_err(|error| error.to_string())?.ok_or("is missing")?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, SMALL), &mut text)
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| format!("is not a JSON object: {error}"))
}

fn id_of(folder: &Path, metadata: &Map<String, Value>) -> String {
    let said = ID.iter().find_map(|name| metadata.get(*name)).map(|id| match id {
        Value::String(id) => id.clone(),
        other => other.to_string(),
    });
    let name = || folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    said.filter(|id| !id.is_empty()).unwrap_or_else(name)
}

/// Sessions are found by their canonical directory and its repository.
fn place_in_project(metadata: &mut Map<String, Value>) {
    let Some(cwd) = metadata.get("cwd").and_then(Value::as_str).map(PathBuf::from) else {
        return;
    };
    if !cwd.is_absolute() {
        return;
    }
    let cwd = canonical(&cwd);
    metadata.entry("project").or_insert_with(|| project_of(&cwd).display().to_string().into());
    metadata.insert("cwd".into(), cwd.display().to_string().into());
}

fn first_line(path: &Path) -> Option<Vec<u8>> {
    let mut lines = Lines::new(std::io::BufReader::new(open(path).ok()??), 1 << 20);
    match lines.next().ok()?? {
        Found::Whole(line) | Found::Unended(line) => Some(line.to_vec()),
        Found::TooLong(_) => None,
    }
}

fn is_stamped(line: &[u8]) -> bool {
    Line::parse(bytes::Bytes::copy_from_slice(line)).is_ok()
}

fn modified(path: &Path) -> Option<Timestamp> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    modified.try_into().ok()
}

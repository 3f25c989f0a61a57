//! What files were before a prompt, as Claude Code kept them: its file history.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use serde::Deserialize;

use crate::claude_folder::ClaudeFolder;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::lines::each_entry;
use crate::text::lossy;

/// What was kept before one prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NativeCheckpoint {
    /// The prompt.
    pub message_uuid: String,
    /// When it was taken.
    pub timestamp: Option<String>,
    /// The files that were tracked by then, or that were first changed after the prompt.
    pub files: Vec<KeptFile>,
}

/// One file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptFile {
    /// Where the file is.
    pub path: PathBuf,
    /// Where its content was kept; `None` if there was no such file.
    pub backup: Option<PathBuf>,
}

/// What became of a file since a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDifference {
    /// Where the file is.
    pub path: PathBuf,
    /// What it was; `None` if there was no such file.
    pub before: Option<Vec<u8>>,
    /// What it is; `None` if there is no such file.
    pub after: Option<Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    message_id: String,
    snapshot: Option<Snapshot>,
    snapshot_message_id: Option<String>,
    tracking_path: Option<String>,
    backup: Option<Backup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot {
    /// The prompt; an update's own line names the answer that brought it about.
    message_id: Option<String>,
    #[serde(default)]
    tracked_file_backups: BTreeMap<String, Backup>,
    timestamp: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Backup {
    backup_file_name: Option<String>,
}

impl ClaudeFolder {
    /// Returns the checkpoints of a session, in the order they were taken.
    pub fn checkpoints(&self, session: &str) -> Result<Vec<NativeCheckpoint>> {
        let path = self.find(session)?;
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        let length = file.metadata().map_err(Error::io("look at", &path))?.len();
        let history = self.file_history(session);
        let (mut checkpoints, mut cwd) = (Vec::<NativeCheckpoint>::new(), PathBuf::new());
        let keep = |path: &str, backup: &Backup| KeptFile {
            path: path.into(),
            backup: backup.backup_file_name.as_ref().map(|name| history.join(name)),
        };
        each_entry(&file, length, |_, raw| {
            let Some(envelope) = Envelope::of(raw) else { return };
            if !envelope.kind().starts_with("file-history-") {
                if cwd.as_os_str().is_empty() && envelope.kind() == "user" {
                    cwd = Cwd::of(raw).unwrap_or_default();
                }
                return;
            }
            let Ok(line) = serde_json::from_str::<Line>(&lossy(raw)) else { return };
            if let Some(snapshot) = line.snapshot {
                let message_uuid = snapshot.message_id.unwrap_or(line.message_id);
                let files = snapshot.tracked_file_backups.iter();
                let files = files.map(|(path, backup)| keep(path, backup)).collect();
                let new = NativeCheckpoint { message_uuid, timestamp: snapshot.timestamp, files };
                // Written again when it was updated: the last one counts.
                match checkpoints.iter_mut().find(|old| old.message_uuid == new.message_uuid) {
                    Some(old) => *old = new,
                    None => checkpoints.push(new),
                }
            } else if let (Some(owner), Some(path), Some(backup)) =
                (line.snapshot_message_id, line.tracking_path, line.backup)
                && let Some(checkpoint) = checkpoints.iter_mut().find(|it| it.message_uuid == owner)
            {
                let file = keep(&path, &backup);
                // The first state of a file is the one before the prompt.
                if !checkpoint.files.iter().any(|known| known.path == file.path) {
                    checkpoint.files.push(file);
                }
            }
        })
        .map_err(Error::io("read", &path))?;
        // Where the session worked may be said later than what was kept.
        for file in checkpoints.iter_mut().flat_map(|checkpoint| &mut checkpoint.files) {
            file.path = cwd.join(&file.path);
        }
        Ok(checkpoints)
    }
}

#[derive(Deserialize)]
struct Cwd {
    cwd: PathBuf,
}

impl Cwd {
    fn of(raw: &[u8]) -> Option<PathBuf> {
        serde_json::from_slice::<Cwd>(raw).ok().map(|line| line.cwd)
    }
}

impl NativeCheckpoint {
    /// Returns the files that are not what they were. A backup that is gone is an error.
    pub fn differences(&self) -> Result<Vec<FileDifference>> {
        let mut differences = Vec::new();
        for file in &self.files {
            let before = match &file.backup {
                Some(backup) => Some(fs::read(backup).map_err(Error::io("read", backup))?),
                None => None,
            };
            let after = match fs::read(&file.path) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(Error::io("read", &file.path)(error)),
            };
            if before != after {
                differences.push(FileDifference { path: file.path.clone(), before, after });
            }
        }
        Ok(differences)
    }
}

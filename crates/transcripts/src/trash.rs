//! Sessions that were thrown away, in a folder of the caller's, until they are restored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claude_folder::ClaudeFolder;
use crate::error::{Error, Result};
use crate::session::folder_of;

const TRANSCRIPT: &str = "transcript.jsonl";
const BESIDE: &str = "beside";
const FILE_HISTORY: &str = "file-history";
const ORIGIN: &str = "origin.json";

/// A session in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trashed {
    /// Its id.
    pub session_id: String,
    /// Where its transcript was.
    pub path: PathBuf,
    /// Since when it is in the trash.
    pub trashed_at: Timestamp,
}

impl ClaudeFolder {
    /// Moves a session with everything that belongs to it to a folder of the caller's. One that a process is at work on
    /// is refused: that process would write its file anew.
    pub fn delete(&self, session: &str, trash: &Path) -> Result<Trashed> {
        let path = self.find(session)?;
        if let Some(live) = self.live_on(session) {
            return Err(Error::InUse { session: session.into(), pid: live.pid });
        }
        let place = trash.join(session);
        if place.join(ORIGIN).try_exists().map_err(Error::io("look at", &place))? {
            return Err(Error::SessionExists(session.into()));
        }
        fs::create_dir_all(&place).map_err(Error::io("make", &place))?;
        let trashed =
            Trashed { session_id: session.into(), path: path.clone(), trashed_at: Timestamp::now() };
        // First of all, so that whatever happens next can be undone.
        let origin = place.join(ORIGIN);
        let note = serde_json::to_vec(&trashed).unwrap_or_default();
        fs::write(&origin, note).map_err(Error::io("write", &origin))?;
        carry(&self.file_history(session), &place.join(FILE_HISTORY))?;
        carry(&folder_of(&path), &place.join(BESIDE))?;
        carry(&path, &place.join(TRANSCRIPT))?;
        Ok(trashed)
    }

    /// Takes a session out of the trash.
    pub fn restore(&self, session: &str, trash: &Path) -> Result<PathBuf> {
        let place = trash.join(session);
        let note = fs::read(place.join(ORIGIN)).map_err(|_| Error::SessionNotFound(session.into()))?;
        let trashed: Trashed =
            serde_json::from_slice(&note).map_err(|_| Error::SessionNotFound(session.into()))?;
        if trashed.path.try_exists().map_err(Error::io("look at", &trashed.path))? {
            return Err(Error::SessionExists(session.into()));
        }
        if let Some(folder) = trashed.path.parent() {
            fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
        }
        carry(&place.join(BESIDE), &folder_of(&trashed.path))?;
        carry(&place.join(FILE_HISTORY), &self.file_history(session))?;
        carry(&place.join(TRANSCRIPT), &trashed.path)?;
        fs::remove_dir_all(&place).map_err(Error::io("remove", &place))?;
        Ok(trashed.path)
    }

    /// Returns what is in the trash, the newest first.
    pub fn trashed(trash: &Path) -> Vec<Trashed> {
        let entries = fs::read_dir(trash).into_iter().flatten().flatten();
        let notes = entries.filter_map(|entry| fs::read(entry.path().join(ORIGIN)).ok());
        let mut trashed: Vec<Trashed> = notes.filter_map(|note| serde_json::from_slice(&note).ok()).collect();
        trashed.sort_by_key(|trashed| std::cmp::Reverse(trashed.trashed_at));
        trashed
    }

    /// Returns where a session's transcript is in the trash.
    pub fn trashed_transcript(trash: &Path, session: &str) -> PathBuf {
        trash.join(session).join(TRANSCRIPT)
    }

    pub(crate) fn file_history(&self, session: &str) -> PathBuf {
        self.path().join("file-history").join(session)
    }
}

/// Moves a file or a folder, over to another file system too. What is not there needs no moving.
fn carry(from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.try_exists().unwrap_or(true) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_all(from, to).map_err(Error::io("copy", from))?;
            let remove = if from.is_dir() { fs::remove_dir_all(from) } else { fs::remove_file(from) };
            remove.map_err(Error::io("remove", from))
        }
        Err(error) => Err(Error::io("move", from)(error)),
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::copy(from, to)?;
        let modified = fs::metadata(from)?.modified()?;
        return fs::File::options().append(true).open(to)?.set_modified(modified);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

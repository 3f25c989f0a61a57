//! Sessions that were thrown away, in a folder of the caller's, until they are restored.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claude_folder::{ClaudeFolder, Links};
use crate::error::{Error, Result};
use crate::folder::Folder;

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
        let (folder, name) = self.place(&path)?;
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
        let to = Folder::open(&place, Links::Follow)?;
        if let Ok(history) = self.open()?.folder(FILE_HISTORY) {
            history.carry(session.as_ref(), &to, FILE_HISTORY)?;
        }
        folder.carry(session.as_ref(), &to, BESIDE)?;
        folder.carry(name, &to, TRANSCRIPT)?;
        Ok(trashed)
    }

    /// Takes a session out of the trash.
    pub fn restore(&self, session: &str, trash: &Path) -> Result<PathBuf> {
        let place = trash.join(session);
        let note = fs::read(place.join(ORIGIN)).map_err(|_| Error::SessionNotFound(session.into()))?;
        let trashed: Trashed =
            serde_json::from_slice(&note).map_err(|_| Error::SessionNotFound(session.into()))?;
        // By the names of its project and its file: the way to this folder may be called otherwise by now.
        let project = trashed.path.parent().and_then(Path::file_name).unwrap_or_default();
        let within = Path::new("projects").join(project);
        let path = self.path().join(&within).join(format!("{session}.jsonl"));
        if path.try_exists().map_err(Error::io("look at", &path))? {
            return Err(Error::SessionExists(session.into()));
        }
        let (from, to) = (Folder::open(&place, Links::Follow)?, self.open()?.made_beneath(&within)?);
        from.carry(BESIDE.as_ref(), &to, session)?;
        if place.join(FILE_HISTORY).is_dir() {
            from.carry(FILE_HISTORY.as_ref(), &self.open()?.made_folder(FILE_HISTORY)?, session)?;
        }
        from.carry(TRANSCRIPT.as_ref(), &to, &format!("{session}.jsonl"))?;
        fs::remove_dir_all(&place).map_err(Error::io("remove", &place))?;
        Ok(path)
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

//! Sessions that were thrown away, in a folder of the caller's, until they are restored.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claude_folder::{ClaudeFolder, Links};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::path_text;

/// What a session's transcript, what is beside it and its file history are called where no path is.
pub(crate) const TRANSCRIPT: &str = "transcript.jsonl";
pub(crate) const BESIDE: &str = "beside";
pub(crate) const FILE_HISTORY: &str = "file-history";
const ORIGIN: &str = "origin.json";

/// A session in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trashed {
    /// Its id.
    pub session_id: String,
    /// Where its transcript was.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Since when it is in the trash.
    pub trashed_at: Timestamp,
    /// Where its transcript is now.
    #[serde(skip)]
    pub transcript: PathBuf,
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
        let place = free_place(trash, session)?;
        fs::create_dir_all(&place).map_err(Error::io("make", &place))?;
        let (trashed_at, transcript) = (Timestamp::now(), place.join(TRANSCRIPT));
        let trashed = Trashed { session_id: session.into(), path: path.clone(), trashed_at, transcript };
        // First of all, so that whatever happens next can be undone.
        let origin = place.join(ORIGIN);
        let note =
            serde_json::to_vec(&trashed).unwrap_or_else(|_| unreachable!("made of what JSON can hold"));
        fs::write(&origin, note).map_err(Error::io("write", &origin))?;
        let to = Folder::open(&place, Links::Follow)?;
        let history = self.open()?.folder(FILE_HISTORY).ok();
        let history = history.as_ref().map(|history| (history, OsStr::new(session), FILE_HISTORY));
        let own = [(&folder, OsStr::new(session), BESIDE), (&folder, name, TRANSCRIPT)];
        let moves: Vec<(&Folder, &OsStr, &str)> = history.into_iter().chain(own).collect();
        for (at, (from, name, new)) in moves.iter().enumerate() {
            if let Err(error) = from.carry(name, &to, new) {
                // All or nothing. What cannot be put back stays where the next try finds it.
                let back = |(from, name, new): &(&Folder, &OsStr, &str)| to.carry(new, from, name);
                if moves[..at].iter().rev().try_for_each(back).is_ok() {
                    drop(fs::remove_file(&origin).and_then(|()| fs::remove_dir(&place)));
                }
                return Err(error);
            }
        }
        Ok(trashed)
    }

    /// Takes a session out of the trash; the one that was thrown away last, if there are several of that id.
    pub fn restore(&self, session: &str, trash: &Path) -> Result<PathBuf> {
        let (place, trashed) = places(trash)
            .into_iter()
            .find(|(_, trashed)| trashed.session_id == session)
            .ok_or_else(|| Error::SessionNotFound(session.into()))?;
        // By the names of its project and its file: the way to this folder may be called otherwise by now.
        let project = trashed.path.parent().and_then(Path::file_name).unwrap_or_default();
        let within = Path::new("projects").join(project);
        let path = self.path().join(&within).join(format!("{session}.jsonl"));
        if path.try_exists().map_err(Error::io("look at", &path))? {
            return Err(Error::SessionExists(session.into()));
        }
        let (from, to) = (Folder::open(&place, Links::Follow)?, self.open()?.made_beneath(&within)?);
        from.carry(BESIDE, &to, session)?;
        if place.join(FILE_HISTORY).is_dir() {
            from.carry(FILE_HISTORY, &self.open()?.made_folder(FILE_HISTORY)?, session)?;
        }
        from.carry(TRANSCRIPT, &to, format!("{session}.jsonl"))?;
        fs::remove_dir_all(&place).map_err(Error::io("remove", &place))?;
        Ok(path)
    }

    /// Returns what is in the trash, the newest first.
    pub fn trashed(trash: &Path) -> Vec<Trashed> {
        places(trash).into_iter().map(|(_, trashed)| trashed).collect()
    }

    pub(crate) fn file_history(&self, session: &str) -> PathBuf {
        self.path().join("file-history").join(session)
    }
}

/// Returns the folders of sessions in the trash, the newest first. One whose transcript has not come is not there yet.
fn places(trash: &Path) -> Vec<(PathBuf, Trashed)> {
    let places = fs::read_dir(trash).into_iter().flatten().flatten().map(|entry| entry.path());
    let noted = places.filter_map(|place| {
        let note = fs::read(place.join(ORIGIN)).ok()?;
        let trashed = Trashed { transcript: place.join(TRANSCRIPT), ..serde_json::from_slice(&note).ok()? };
        trashed.transcript.is_file().then_some((place, trashed))
    });
    let mut places: Vec<(PathBuf, Trashed)> = noted.collect();
    places.sort_by_key(|(_, trashed)| std::cmp::Reverse(trashed.trashed_at));
    places
}

/// Returns a folder for a session: of its name, or with a number behind it if one of that id is in the trash already.
/// One that was cut short while it was moved here is gone on with.
fn free_place(trash: &Path, session: &str) -> Result<PathBuf> {
    let names = std::iter::once(session.to_owned()).chain((2_u32..).map(|at| format!("{session}.{at}")));
    for name in names {
        let place = trash.join(name);
        let transcript = place.join(TRANSCRIPT);
        if !transcript.try_exists().map_err(Error::io("look at", &transcript))? {
            return Ok(place);
        }
    }
    unreachable!("there are more numbers than sessions")
}

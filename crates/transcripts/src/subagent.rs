//! The subagents of a session, each with a transcript of its own.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir};
use serde::{Deserialize, Serialize};

use crate::claude_folder::Links;
use crate::path_text;
use crate::session::folder_of;
use crate::side_file;

/// A subagent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Subagent {
    /// Its id.
    pub agent_id: String,
    /// What kind of agent it is.
    pub agent_type: Option<String>,
    /// What it was sent for.
    pub description: Option<String>,
    /// The call that sent it.
    pub tool_use_id: Option<String>,
    /// Its transcript.
    #[serde(serialize_with = "path_text::readable")]
    pub path: PathBuf,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    agent_type: Option<String>,
    description: Option<String>,
    tool_use_id: Option<String>,
}

impl Subagent {
    /// Returns the subagents of a session, given its transcript, by their ids.
    pub fn all_of(transcript: &Path) -> Vec<Self> {
        let folder = folder_of(transcript);
        let Some(there) = open(&folder) else { return Vec::new() };
        ids_in(&there).into_iter().map(|id| Self::read(&there, &folder, id)).collect()
    }

    /// Returns where a subagent's transcript is, given that of its session and its id.
    pub fn path_of(transcript: &Path, agent_id: &str) -> PathBuf {
        beside(&folder_of(transcript), agent_id)
    }

    fn read(there: &OwnedFd, folder: &Path, agent_id: String) -> Self {
        let path = beside(folder, &agent_id);
        let meta = format!("agent-{agent_id}.meta.json");
        let meta = side_file::read_in(there, Path::new(&meta), Links::Refuse);
        // Without it the transcript is still there to be read.
        let meta: Meta = meta.and_then(|meta| serde_json::from_slice(&meta).ok()).unwrap_or_default();
        let Meta { agent_type, description, tool_use_id } = meta;
        Self { agent_id, agent_type, description, tool_use_id, path }
    }
}

fn beside(folder: &Path, agent_id: &str) -> PathBuf {
    folder.join("subagents").join(format!("agent-{agent_id}.jsonl"))
}

/// Returns the ids of a session's subagents, given the folder beside its transcript.
pub(crate) fn ids(folder: &Path) -> Vec<String> {
    open(folder).map(|there| ids_in(&there)).unwrap_or_default()
}

/// Opens the folder of a session's subagents, given the one beside its transcript. Neither may be a link.
fn open(folder: &Path) -> Option<OwnedFd> {
    side_file::open_folder(side_file::open_folder(CWD, folder)?, Path::new("subagents"))
}

fn ids_in(there: &OwnedFd) -> Vec<String> {
    let Ok(entries) = Dir::read_from(there) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let id = |name: String| name.strip_prefix("agent-")?.strip_suffix(".jsonl").map(str::to_owned);
    let mut ids: Vec<String> = names.filter_map(id).collect();
    ids.sort_unstable();
    ids
}

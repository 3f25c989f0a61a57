//! What is known of a session without reading its conversation.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::damage::Damage;
use crate::live::Live;
use crate::path_text;

/// A session as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Session {
    /// Its id, a UUID.
    pub session_id: String,
    /// Where it worked, as its entries say, or where it was moved to.
    #[serde(serialize_with = "path_text::readable_if_any")]
    pub cwd: Option<PathBuf>,
    /// Whether that directory is still there.
    pub directory: Directory,
    /// The repository that the directory is or was in, worktrees included, else the directory.
    #[serde(serialize_with = "path_text::readable_if_any")]
    pub project: Option<PathBuf>,
    /// What to call it: the name it was given, else the one the model gave it, else its last prompt, a summary, its
    /// first prompt.
    pub name: Option<String>,
    /// The name that a person gave it.
    pub custom_title: Option<String>,
    /// What it was asked first.
    pub first_prompt: Option<String>,
    /// How many messages its active conversation has; unknown until somebody counted.
    pub message_count: Option<u64>,
    /// When it began.
    pub created_at: Option<Timestamp>,
    /// When its file was last written to.
    pub updated_at: Timestamp,
    /// The branch it was last on.
    pub git_branch: Option<String>,
    /// The model that answered last.
    pub model: Option<String>,
    /// Its tag.
    pub tag: Option<String>,
    /// Put away.
    pub archived: bool,
    /// The size of its file in bytes.
    pub size: u64,
    /// What the ends of its file look like.
    pub health: Health,
    /// What of it is damaged; unknown until somebody counted its messages.
    pub damage: Option<Damage>,
    /// The process that is at work on it.
    pub live: Option<Live>,
    /// Its subagents' ids.
    pub subagents: Vec<String>,
    /// The session that it was forked from.
    pub forked_from: Option<String>,
    /// The sessions that were forked from it.
    pub forks: Vec<String>,
    /// The version of Claude Code that began it.
    pub version: Option<String>,
    /// Its file.
    #[serde(serialize_with = "path_text::readable")]
    pub path: PathBuf,
}

impl Session {
    /// Returns the folder of what belongs to the session, whether it is there or not.
    pub fn folder(&self) -> PathBuf {
        folder_of(&self.path)
    }
}

/// Returns the folder beside a transcript.
pub(crate) fn folder_of(transcript: &Path) -> PathBuf {
    transcript.with_extension("")
}

/// What became of a working directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Directory {
    /// It is there.
    Present,
    /// It is not there any more.
    Vanished,
    /// The session was moved to another one, which is there.
    Moved,
    /// The session does not say.
    Unknown,
}

/// What a glance at a transcript tells of its state. [`Transcript::faults`](crate::Transcript::faults) tells all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Nothing strange at either end.
    Sound,
    /// It ends in the middle of a line: its writer died, or is just writing.
    Torn,
    /// There is nothing in it that can be read.
    Garbage,
    /// There is nothing in it.
    Empty,
    /// The system refuses to read it.
    Unreadable,
}

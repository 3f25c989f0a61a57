//! A session as lists show it: the same object over REST, in events and from `rethread list --json`.

use jiff::Timestamp;
use rethread_store::Metadata;
use rethread_transcripts as transcripts;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::drive::Begin;

/// Where a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    /// In Claude Code's own folder, which is the truth of it.
    Native,
    /// In a store.
    Stored,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionState {
    /// It was begun here, and has no transcript yet.
    Pending,
    /// Nothing.
    #[default]
    Idle,
    /// A turn runs.
    Running,
    /// A person is asked for something.
    Waiting,
    /// Another program drives it.
    Elsewhere,
    /// Its last turn ended with an error.
    Failed,
}

/// Whether a session can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionHealth {
    /// The short answer.
    pub status: HealthStatus,
    /// How many lines are damaged; unknown until somebody read all of it.
    pub bad_lines: Option<u64>,
    /// Where the first of them is.
    pub first_bad_offset: Option<u64>,
    /// What is wrong, in words.
    pub reason: Option<String>,
}

/// Whether a session can be read, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HealthStatus {
    /// All of it, as far as is known.
    Ok,
    /// Some of it.
    Degraded,
    /// Nothing of it.
    Unreadable,
}

impl SessionHealth {
    /// Returns that nothing is wrong.
    pub fn ok() -> Self {
        Self { status: HealthStatus::Ok, bad_lines: None, first_bad_offset: None, reason: None }
    }

    pub(crate) fn unreadable(reason: impl Into<String>) -> Self {
        Self { status: HealthStatus::Unreadable, reason: Some(reason.into()), ..Self::ok() }
    }

    /// Returns what is known of a native session.
    fn of(session: &transcripts::Session) -> Self {
        use transcripts::Health;
        match (session.health, &session.damage) {
            (Health::Empty, _) => Self::unreadable("the file is empty"),
            (Health::Unreadable, _) => Self::unreadable("the system refuses to read the file"),
            (Health::Garbage, None) => Self::unreadable("nothing in the file can be read"),
            // Whoever is at work on it may be in the middle of a line.
            (Health::Torn, None) if session.live.is_none() => Self {
                status: HealthStatus::Degraded,
                reason: Some("the file ends in the middle of a line".into()),
                ..Self::ok()
            },
            // Whoever counted its messages has read all of it.
            (_, None) if session.message_count.is_none() => Self::ok(),
            (_, damage) => Self::of_damage(damage.as_ref()),
        }
    }

    /// Returns what is known of a session that was read whole.
    pub(crate) fn of_damage(damage: Option<&transcripts::Damage>) -> Self {
        Self {
            status: match damage {
                None => HealthStatus::Ok,
                Some(damage) if damage.is_total => HealthStatus::Unreadable,
                Some(_) => HealthStatus::Degraded,
            },
            bad_lines: Some(damage.map_or(0, |damage| damage.places)),
            first_bad_offset: damage.map(|damage| damage.first_offset),
            reason: damage.map(|damage| damage.reason.clone()),
        }
    }
}

/// A session, without its conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionCard {
    /// Its id. A session that was imported has the same id in both homes.
    pub session_id: String,
    /// Which home this one is in.
    pub home: Home,
    /// Where it works.
    pub cwd: Option<String>,
    /// The repository that is in, worktrees included, else the directory.
    pub project: Option<String>,
    /// What to call it.
    pub name: Option<String>,
    /// What it was asked first.
    pub first_prompt: Option<String>,
    /// How many messages its conversation has; null until somebody counted.
    pub message_count: Option<u64>,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub created_at: Option<Timestamp>,
    /// When it was last written to.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// The branch it was last on.
    pub git_branch: Option<String>,
    /// The model that answered last.
    pub model: Option<String>,
    /// How it was begun to ask before it acts, as far as that is known here: `bypassPermissions` asks nobody.
    pub permission_mode: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Put away.
    pub archived: bool,
    /// What it is doing.
    pub state: SessionState,
    /// Whether it can be read.
    pub health: SessionHealth,
    /// The session that it was forked from.
    pub parent: Option<String>,
    /// The sessions that were forked from it.
    pub forks: Vec<String>,
    /// How many subagents it has.
    pub subagents: u64,
    /// How many bytes it has.
    pub size: Option<u64>,
    /// The process of another program that is at work on it.
    pub driver_pid: Option<u32>,
    /// The machine whose keeper drives it, where that is another keeper of the same store.
    pub driver_host: Option<String>,
}

impl From<&transcripts::Session> for SessionCard {
    fn from(session: &transcripts::Session) -> Self {
        let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
        let live = session.live.as_ref();
        Self {
            session_id: session.session_id.clone(),
            home: Home::Native,
            cwd: session.cwd.as_ref().map(text),
            project: session.project.as_ref().map(text),
            name: session.name.clone(),
            first_prompt: session.first_prompt.clone(),
            message_count: session.message_count,
            created_at: session.created_at,
            updated_at: session.updated_at,
            git_branch: session.git_branch.clone(),
            model: session.model.clone(),
            permission_mode: None,
            tags: session.tag.iter().cloned().collect(),
            archived: session.archived,
            state: if live.is_some() { SessionState::Elsewhere } else { SessionState::Idle },
            health: SessionHealth::of(session),
            parent: session.forked_from.clone(),
            forks: session.forks.clone(),
            subagents: session.subagents.len() as u64,
            size: Some(session.size),
            driver_pid: live.map(|live| live.pid),
            driver_host: None,
        }
    }
}

impl From<&Metadata> for SessionCard {
    fn from(metadata: &Metadata) -> Self {
        let branch = metadata.extra.get("git_branch").and_then(|branch| branch.as_str());
        Self {
            session_id: metadata.session_id.to_string(),
            home: Home::Stored,
            cwd: metadata.cwd.clone(),
            project: metadata.project.clone(),
            name: metadata.name.clone(),
            first_prompt: metadata.first_prompt.clone(),
            message_count: Some(metadata.message_count),
            created_at: Some(metadata.created_at),
            updated_at: metadata.updated_at,
            git_branch: branch.map(str::to_owned),
            model: metadata.model.clone(),
            permission_mode: Begin::mode_of(metadata),
            tags: metadata.tags.clone(),
            archived: metadata.archived,
            state: SessionState::Idle,
            health: SessionHealth::ok(),
            parent: metadata.parent_id.as_ref().map(ToString::to_string),
            forks: Vec::new(),
            subagents: 0,
            size: None,
            driver_pid: None,
            driver_host: None,
        }
    }
}

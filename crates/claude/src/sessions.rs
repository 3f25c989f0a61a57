//! Sessions that are not running: list, read, name, put away and fork them; with the feature `sessions`.
//!
//! This is the [`rethread_transcripts`] crate behind one door, with the official SDKs' calls. What is not here, such as
//! following a transcript or telling what is damaged in it, is there.

use std::path::{Path, PathBuf};

use rethread_transcripts::{ClaudeFolder, Error, History, ListOptions, NativeFork, Shelf};

pub use rethread_transcripts::{self, Message, Result, Session, Subagent, Trashed, Written};

/// The sessions in one of Claude Code's configuration folders.
///
/// The calls read and write files, and so take a moment; an async program makes them on a thread for blocking work.
///
/// ```no_run
/// use rethread_claude::sessions::Sessions;
///
/// let sessions = Sessions::at("/home/ada/.claude");
/// for session in sessions.list()? {
///     println!("{} {}", session.session_id, session.name.unwrap_or_default());
/// }
/// # Ok::<(), rethread_claude::sessions::rethread_transcripts::Error>(())
/// ```
#[derive(Debug)]
pub struct Sessions {
    folder: ClaudeFolder,
}

impl Sessions {
    /// Returns the sessions in a configuration folder: `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub fn at(config: impl Into<PathBuf>) -> Self {
        Self { folder: ClaudeFolder::new(config) }
    }

    /// Returns the folder, for everything that can be done with it.
    pub fn folder(&self) -> &ClaudeFolder {
        &self.folder
    }

    /// Returns all sessions, the newest first.
    pub fn list(&self) -> Result<Vec<Session>> {
        Ok(self.folder.list(&ListOptions::default())?.sessions)
    }

    /// Returns what is known of a session.
    pub fn info(&self, session: &str) -> Result<Session> {
        let found = self.list()?.into_iter().find(|known| known.session_id == session);
        found.ok_or_else(|| Error::SessionNotFound(session.to_owned()))
    }

    /// Returns the messages of the conversation that a resume would go on with.
    pub fn messages(&self, session: &str) -> Result<Vec<Message>> {
        read(&self.folder.find(session)?)
    }

    /// Returns a session's subagents.
    pub fn subagents(&self, session: &str) -> Result<Vec<Subagent>> {
        Ok(Subagent::all_of(&self.folder.find(session)?))
    }

    /// Returns the messages of a subagent.
    pub fn subagent_messages(&self, session: &str, agent_id: &str) -> Result<Vec<Message>> {
        let found = self.subagents(session)?.into_iter().find(|known| known.agent_id == agent_id);
        read(&found.ok_or_else(|| Error::SessionNotFound(agent_id.to_owned()))?.path)
    }

    /// Names a session, so that Claude Code shows the name, too.
    pub fn rename(&self, session: &str, title: &str) -> Result<()> {
        self.folder.rename(session, title).map(drop)
    }

    /// Tags a session, or takes its tag off.
    pub fn tag(&self, session: &str, tag: Option<&str>) -> Result<()> {
        self.folder.tag(session, tag)
    }

    /// Puts a session away.
    pub fn archive(&self, session: &str) -> Result<()> {
        self.folder.archive(session, Shelf::Archive)
    }

    /// Takes a session out again.
    pub fn unarchive(&self, session: &str) -> Result<()> {
        self.folder.archive(session, Shelf::List)
    }

    /// Moves a session with everything that belongs to it to a folder of the caller's. One that is being driven is refused.
    pub fn delete(&self, session: &str, trash: &Path) -> Result<Trashed> {
        self.folder.delete(session, trash)
    }

    /// Moves a deleted session back.
    pub fn restore(&self, session: &str, trash: &Path) -> Result<PathBuf> {
        self.folder.restore(session, trash)
    }

    /// Writes the conversation, up to a message if one is named, as a session of its own that Claude Code can resume.
    pub fn fork(&self, session: &str, up_to: Option<&str>, title: Option<&str>) -> Result<Written> {
        let mut fork = NativeFork::default();
        fork.at = up_to.map(str::to_owned);
        fork.name = title.map(str::to_owned);
        self.folder.fork(session, &fork)
    }
}

fn read(transcript: &Path) -> Result<Vec<Message>> {
    let history = History::open(transcript, None)?;
    history.first(history.count())
}

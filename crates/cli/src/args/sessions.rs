//! Sessions: read, written to, forked, named and put away.

use std::path::PathBuf;

use clap::Args as Arguments;
use rethread_store::SessionId;

use crate::named::{NamedEntry, NamedSession};

/// List sessions, the newest first
#[derive(Debug, Arguments)]
pub(crate) struct List {
    /// Also those that are archived or in the trash, children and digests
    #[arg(long, short, conflicts_with_all = ["archived", "trash"])]
    pub(crate) all: bool,
    /// Only archived ones
    #[arg(long, conflicts_with = "trash")]
    pub(crate) archived: bool,
    /// Only those in the trash
    #[arg(long)]
    pub(crate) trash: bool,
    /// Only those of this working directory
    #[arg(long, value_name = "DIR", conflicts_with = "project")]
    pub(crate) cwd: Option<PathBuf>,
    /// Only those of the repository that this directory is in
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Only those with this tag
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// Only those with this text in their name, first prompt or id
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Only Claude Code's own
    #[arg(long, conflicts_with = "stored")]
    pub(crate) native: bool,
    /// Only those of the store
    #[arg(long)]
    pub(crate) stored: bool,
    /// First count the messages of Claude Code's own that nobody has counted yet; the counts are remembered
    #[arg(long)]
    pub(crate) count: bool,
    /// Print each session's metadata as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a conversation: what resuming the session would restore
#[derive(Debug, Arguments)]
pub(crate) struct Show {
    /// The session
    #[arg(required_unless_present = "latest", conflicts_with = "latest")]
    pub(crate) id: Option<NamedSession>,
    /// The session that was used last in this directory: what `continue` picks
    #[arg(long)]
    pub(crate) latest: bool,
    /// Look for the latest one in the whole repository
    #[arg(long, requires = "latest")]
    pub(crate) project: bool,
    /// Look for the latest one there instead of in this directory
    #[arg(long, requires = "latest", value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Only up to this entry: what resuming at it would restore
    #[arg(long, visible_alias = "branch", value_name = "UUID", conflicts_with_all = ["all", "transcript"])]
    pub(crate) at: Option<NamedEntry>,
    /// Every entry of every branch, and which of them are not on the active one; of Claude Code's own also lines that only say something about the session
    #[arg(long, conflicts_with = "transcript")]
    pub(crate) all: bool,
    /// The agent's full message stream instead of the conversation
    #[arg(long)]
    pub(crate) transcript: bool,
    /// Print the lines as they are stored, stamps included; with --all notes too
    #[arg(long, conflicts_with = "json")]
    pub(crate) stamped: bool,
    /// Print the lines of the conversation as they stand in Claude Code's own file; with --all every line of it, damaged ones too
    #[arg(long, conflicts_with_all = ["json", "stamped"])]
    pub(crate) raw: bool,
    /// First make sure that everything shown would survive a power cut
    #[arg(long)]
    pub(crate) durable: bool,
    /// One subagent instead, by its id or the beginning of one; for old versions, by its first entry's
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["at", "all", "transcript", "stamped", "latest"])]
    pub(crate) subagent: Option<String>,
    /// List the branches of one of Claude Code's own instead: each by its last message, which --branch takes
    #[arg(long, conflicts_with_all = ["at", "all", "transcript", "stamped", "raw", "subagent", "subagents", "latest"])]
    pub(crate) branches: bool,
    /// List the subagents instead
    #[arg(long, conflicts_with_all = ["at", "all", "transcript", "stamped", "raw", "subagent", "latest"])]
    pub(crate) subagents: bool,
    /// Write everything at once: without, a person at a terminal gets it through $PAGER, else `less`
    #[arg(long)]
    pub(crate) no_pager: bool,
    /// Print the entries as they were appended, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Begin a session and print its id
#[derive(Debug, Arguments)]
pub(crate) struct New {
    /// Its id instead of a new one
    #[arg(long)]
    pub(crate) id: Option<SessionId>,
    /// Its working directory instead of this one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// A name for it
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The model that answers in it
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Print its metadata as JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// Append JSON lines from standard input, and acknowledge each when it is durable
///
/// Each entry is one JSON object on one line. For each one, in order, a line {"uuid":…,"position":…,"durable":true}
/// is printed as soon as the entry would survive a power cut, and never before.
#[derive(Debug, Arguments)]
pub(crate) struct Append {
    /// The session
    pub(crate) id: NamedSession,
    /// Go on after this entry instead of after the last: makes a branch
    #[arg(long, value_name = "UUID", conflicts_with = "transcript")]
    pub(crate) at: Option<NamedEntry>,
    /// Append to the agent's full message stream instead of the conversation
    #[arg(long)]
    pub(crate) transcript: bool,
}

/// Begin a session from an entry of another and print its id; nothing is copied
#[derive(Debug, Arguments)]
pub(crate) struct Fork {
    /// The session to fork
    pub(crate) id: NamedSession,
    /// After this entry instead of after the last
    #[arg(long, value_name = "UUID")]
    pub(crate) at: Option<NamedEntry>,
    /// Only remember the parent; begin with an empty conversation
    #[arg(long)]
    pub(crate) detached: bool,
    /// The new session's id instead of a new one
    #[arg(long = "id", value_name = "NEW")]
    pub(crate) new: Option<SessionId>,
    /// A name for the new session
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Print the new session's metadata as JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// Copy what a fork inherits into it, so that it no longer needs its parent
#[derive(Debug, Arguments)]
pub(crate) struct Materialize {
    /// The session
    pub(crate) id: NamedSession,
}

/// Put a session away: it is no longer listed nor picked as the latest
#[derive(Debug, Arguments)]
pub(crate) struct Archive {
    /// The session
    pub(crate) id: NamedSession,
    /// Take it out again
    #[arg(long)]
    pub(crate) undo: bool,
}

/// Move a session to the trash; its forks go on
#[derive(Debug, Arguments)]
pub(crate) struct Delete {
    /// The session
    pub(crate) id: NamedSession,
}

/// Take a session out of the trash
#[derive(Debug, Arguments)]
pub(crate) struct Restore {
    /// The session
    pub(crate) id: NamedSession,
}

/// Remove a session for good; its forks keep what they inherit
///
/// A session that is not in the trash must be named by its whole id.
#[derive(Debug, Arguments)]
pub(crate) struct Purge {
    /// The session
    pub(crate) id: NamedSession,
}

/// Destroy the key of a session in an encrypted store: copies of the session cannot be read any more
///
/// That goes for backups too, unless they also have the store's keys of that time (its folder `keys`, or its documents).
/// Its forks get copies of what they inherit. The session must be named by its whole id.
#[derive(Debug, Arguments)]
pub(crate) struct Erase {
    /// The session
    pub(crate) id: NamedSession,
}

/// Follow a session as it grows
#[derive(Debug, Arguments)]
pub(crate) struct Tail {
    /// The session
    pub(crate) id: NamedSession,
    /// Begin with this many of its last entries
    #[arg(long = "lines", short = 'n', value_name = "N", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Print the entries as they were appended, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Go on with a session in Claude Code
///
/// Runs `claude --resume` in the session's directory. A stored session is first written out as one of Claude Code's own.
#[derive(Debug, Arguments)]
pub(crate) struct Resume {
    /// The session
    pub(crate) id: NamedSession,
    /// Only print the command
    #[arg(long)]
    pub(crate) print: bool,
    /// The program to run instead of `claude`
    #[arg(long, value_name = "PROGRAM", default_value = "claude")]
    pub(crate) program: PathBuf,
}

/// Give a session a name
#[derive(Debug, Arguments)]
pub(crate) struct Rename {
    /// The session
    pub(crate) id: NamedSession,
    /// The name
    pub(crate) name: String,
}

/// Give a session a tag, or take it off
#[derive(Debug, Arguments)]
pub(crate) struct Tag {
    /// The session
    pub(crate) id: NamedSession,
    /// The tag
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    pub(crate) tag: Option<String>,
    /// Take the tag off
    #[arg(long)]
    pub(crate) remove: bool,
}

//! From one store, machine or layout to another.

use std::path::PathBuf;

use clap::Args as Arguments;
use rethread_store::SessionId;

use crate::named::NamedSession;

/// Import a session, a store of another layout, or Claude Code's own sessions
#[derive(Debug, Arguments)]
pub(crate) struct Import {
    /// The file that `export` wrote (- for standard input), or the folder of an older store
    #[arg(required_unless_present = "claude", conflicts_with = "claude")]
    pub(crate) path: Option<PathBuf>,
    /// The session's id here instead of its own
    #[arg(long = "id", value_name = "NEW", conflicts_with = "claude")]
    pub(crate) new: Option<SessionId>,
    /// Copy Claude Code's own sessions into the store, or what is new of them; all of them if none is named
    #[arg(long, value_name = "ID", num_args = 0..)]
    pub(crate) claude: Option<Vec<NamedSession>>,
    /// Print what became of each session as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a session as one file
#[derive(Debug, Arguments)]
pub(crate) struct Export {
    /// The session
    pub(crate) id: NamedSession,
    /// Where to; standard output if not given
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write it as a session of Claude Code's own, which `claude --resume` takes
    #[arg(long, conflicts_with = "output")]
    pub(crate) claude: bool,
    /// Leave out the contents of files that its checkpoints refer to: smaller, but files cannot be rewound from it
    #[arg(long, conflicts_with = "claude")]
    pub(crate) without_files: bool,
}

/// Copy a session into another store: its records, its checkpoints, the contents of files, what it inherits from, and the
/// sessions of its subagents
///
/// When it is run again, it brings the copy up to date.
#[derive(Debug, Arguments)]
pub(crate) struct Copy {
    /// The session
    pub(crate) id: NamedSession,
    /// The store that it is in, instead of --store
    #[arg(long, value_name = "URL")]
    pub(crate) from: Option<String>,
    /// The store that it goes to
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Print what was copied as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bring another store up to date: copy into it whatever it lacks of every session, and memories of projects
///
/// One that is interrupted goes on where it ended. Nothing in the other store is ever changed or removed.
#[derive(Debug, Arguments)]
pub(crate) struct Sync {
    /// The store that is copied, instead of --store
    #[arg(long, value_name = "URL")]
    pub(crate) from: Option<String>,
    /// The store that is brought up to date
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Print what was copied of each session as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Put one of Claude Code's own sessions where another machine can take it, with its checkpoints and all it keeps of it
///
/// When it is run again, it hands over what is new. The session stays here as it is.
#[derive(Debug, Arguments)]
pub(crate) struct Handoff {
    /// The session
    pub(crate) id: NamedSession,
    /// The store that both machines use, if that is not --store
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Print what was handed over as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Go on here with a session that another machine handed over: written to Claude Code's folder, its checkpoints to the store
///
/// One that was taken before is brought up to date. What went on here in another way is never written over.
#[derive(Debug, Arguments)]
pub(crate) struct Take {
    /// The session
    pub(crate) id: NamedSession,
    /// The store that both machines use, if that is not --store
    #[arg(long, value_name = "URL")]
    pub(crate) from: Option<String>,
    /// Where the project is on this machine, if not where it was on the other
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print where it is now as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a new key for a store that is to be encrypted: `--store encrypted+file:DIR`, encrypted+sqlite:FILE and so on
#[derive(Debug, Arguments)]
pub(crate) struct Key {
    /// The file to make; only you can read it
    pub(crate) file: PathBuf,
}

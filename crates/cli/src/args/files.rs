//! What an agent did to files, and taking it back.

use std::path::PathBuf;

use clap::Args as Arguments;
use rethread_store::EntryId;

use crate::named::NamedSession;

/// Record what files are, before a tool changes them, and print the checkpoint's id
///
/// Everything is durable when the id is printed. A folder stands for everything in it. What `.git` holds, and the store
/// itself, is never recorded.
#[derive(Debug, Arguments)]
pub(crate) struct Checkpoint {
    /// The session
    pub(crate) session: NamedSession,
    /// The paths that a tool is about to change, or has changed
    #[arg(required_unless_present_any = ["tree", "pin", "unpin"])]
    pub(crate) paths: Vec<PathBuf>,
    /// The user message whose turn it is
    #[arg(long, value_name = "UUID")]
    pub(crate) message: Option<EntryId>,
    /// The tool call; may be given more than once
    #[arg(long = "tool", value_name = "ID")]
    pub(crate) tools: Vec<String>,
    /// The checkpoint's id instead of a new one
    #[arg(long)]
    pub(crate) id: Option<EntryId>,
    /// Record what the tool left behind
    #[arg(long)]
    pub(crate) after: bool,
    /// Record whatever changed anywhere since the last time; with --after it is taken for the tool's work
    #[arg(long, conflicts_with = "paths")]
    pub(crate) tree: bool,
    /// Keep this checkpoint, and all that came after it, whatever `gc` is told
    #[arg(long, value_name = "ID", conflicts_with_all = ["paths", "tree", "unpin"])]
    pub(crate) pin: Option<EntryId>,
    /// Keep it no longer
    #[arg(long, value_name = "ID", conflicts_with_all = ["paths", "tree"])]
    pub(crate) unpin: Option<EntryId>,
    #[command(flatten)]
    pub(crate) root: Root,
    /// Print the whole record as JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// List a session's checkpoints, the oldest first
#[derive(Debug, Arguments)]
pub(crate) struct Checkpoints {
    /// The session
    pub(crate) session: NamedSession,
    #[command(flatten)]
    pub(crate) root: Root,
    /// Print each record as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what changed since a checkpoint, or since a user message
#[derive(Debug, Arguments)]
pub(crate) struct Diff {
    /// The session
    pub(crate) session: NamedSession,
    /// The checkpoint or the user message
    #[arg(long, value_name = "ID")]
    pub(crate) to: EntryId,
    /// Only these paths
    #[arg(long, value_name = "PATH")]
    pub(crate) only: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) root: Root,
}

/// Take files back to a checkpoint, or to the beginning of a user message's turn
///
/// Only what was recorded is touched. What somebody else changed since is a conflict, and nothing is done until each
/// such path is forced or left out by name. What is replaced is saved first, and the receipt undoes it all.
#[derive(Debug, Arguments)]
pub(crate) struct Rewind {
    /// The session; not needed with --undo
    #[arg(required_unless_present = "undo")]
    pub(crate) session: Option<NamedSession>,
    /// The checkpoint or the user message
    #[arg(long, value_name = "ID", required_unless_present_any = ["undo", "turn"], conflicts_with_all = ["undo", "turn"])]
    pub(crate) to: Option<EntryId>,
    /// Only what this user message's turn changed; what came after it is kept
    #[arg(long, value_name = "MESSAGE", conflicts_with = "undo")]
    pub(crate) turn: Option<EntryId>,
    /// Undo the rewind that gave this receipt
    #[arg(long, value_name = "RECEIPT")]
    pub(crate) undo: Option<EntryId>,
    /// Also fork the conversation before the same message, and print the new session's id
    #[arg(long, conflicts_with_all = ["undo", "turn"])]
    pub(crate) fork: bool,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Only this path; may be given more than once
    #[arg(long, value_name = "PATH")]
    pub(crate) only: Vec<PathBuf>,
    /// This path too, though somebody changed it; what is there is saved first
    #[arg(long, value_name = "PATH")]
    pub(crate) force: Vec<PathBuf>,
    /// Not this path
    #[arg(long, value_name = "PATH")]
    pub(crate) leave: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) root: Root,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The folder that checkpoints are about
#[derive(Debug, Default, Arguments)]
pub(crate) struct Root {
    /// The folder that all paths are beneath, instead of the session's working directory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Where that folder was when it was recorded: on another machine, or before it was moved; may be given more than once
    #[arg(long, value_name = "DIR")]
    pub(crate) formerly: Vec<PathBuf>,
}

//! What was typed. What it means is in `commands`.

mod care;
mod files;
mod keeper;
mod moving;
mod sessions;

use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};

pub(crate) use self::care::{Doctor, Du, Gc, Repair, Scan, Verify};
pub(crate) use self::files::{Checkpoint, Checkpoints, Diff, Rewind, Root};
pub(crate) use self::keeper::{
    Attention, Interrupt, Logs, Manager, Open, Send, Serve, ServeUi, Service, Status, Stop, Tls, Token, Watch,
};
pub(crate) use self::moving::{Copy, Export, Handoff, Import, Key, Sync, Take};
pub(crate) use self::sessions::{
    Append, Archive, Delete, Erase, Fork, List, Materialize, New, Purge, Rename, Restore, Resume, Show, Tag,
    Tail,
};

const EXAMPLE: &str = "\
Example:
  id=$(rethread new --name demo)
  echo '{\"role\":\"user\",\"content\":\"hello\"}' | rethread append $id
  rethread show $id";

/// Resume, fork and rewind coding-agent sessions
///
/// Sessions live in $RETHREAD_STORE or $RETHREAD_HOME, else in $XDG_DATA_HOME/rethread, else in ~/.local/share/rethread;
/// Claude Code's own are found where it keeps them. An id may be shortened to any beginning that no other has; native:ID
/// and stored:ID say which home is meant.
#[derive(Debug, Parser)]
#[command(name = "rethread", version, max_term_width = 110, after_help = EXAMPLE)]
pub(crate) struct Args {
    /// The store to use: a path, file:PATH, sqlite:FILE, postgres://USER@HOST/DATABASE, s3://BUCKET/PREFIX, memory: or off:
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// The key of a store whose URL begins with encrypted+, instead of $RETHREAD_KEY_FILE
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Claude Code's own folder, instead of $CLAUDE_CONFIG_DIR or ~/.claude
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) claude_dir: Option<PathBuf>,

    /// Take secrets out of whatever this command stores; $RETHREAD_REDACT=1 does so for all of them
    #[arg(long, global = true)]
    pub(crate) redact: bool,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    List(List),
    Show(Show),
    New(New),
    Append(Append),
    Fork(Fork),
    Materialize(Materialize),
    Archive(Archive),
    Delete(Delete),
    Restore(Restore),
    Purge(Purge),
    Erase(Erase),
    Verify(Verify),
    Repair(Repair),
    Gc(Gc),
    Checkpoint(Checkpoint),
    Checkpoints(Checkpoints),
    Diff(Diff),
    Rewind(Rewind),
    Du(Du),
    Import(Import),
    Export(Export),
    Copy(Copy),
    Sync(Sync),
    Handoff(Handoff),
    Take(Take),
    Key(Key),
    Tail(Tail),
    Resume(Resume),
    Rename(Rename),
    Tag(Tag),
    Doctor(Doctor),
    Scan(Scan),
    Serve(Serve),
    Ui(ServeUi),
    Open(Open),
    Status(Status),
    Stop(Stop),
    Logs(Logs),
    Send(Send),
    Interrupt(Interrupt),
    Watch(Watch),
    Attention(Attention),
    Token(Token),
    Service(Service),
    Tour(Tour),
    Completions(Completions),
}

impl Verb {
    /// Returns the other store that a command names.
    pub(crate) fn other(&self) -> Option<&str> {
        match self {
            Verb::Copy(Copy { to, .. }) | Verb::Sync(Sync { to, .. }) => Some(to),
            Verb::Handoff(Handoff { to, .. }) => to.as_deref(),
            Verb::Take(Take { from, .. }) => from.as_deref(),
            _ => None,
        }
    }

    /// Returns the store that a command names itself.
    pub(crate) fn from(&self) -> Option<&str> {
        match self {
            Verb::Copy(Copy { from, .. }) | Verb::Sync(Sync { from, .. }) => from.as_deref(),
            _ => None,
        }
    }
}

/// See in half a minute what this does, in a temporary store
#[derive(Debug, Arguments)]
pub(crate) struct Tour {
    /// Without pauses
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the store at the end, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Print a shell's completion script
#[derive(Debug, Arguments)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

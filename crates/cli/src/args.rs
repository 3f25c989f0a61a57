//! What was typed. What it means is in `commands`.

use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};
use rethread_store::{EntryId, SessionId};

use crate::named::{NamedEntry, NamedSession};

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
    /// The store to use: a path, file:PATH, sqlite:FILE, postgres://USER@HOST/DATABASE, memory: or off:
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
    Service(Service),
    Tour(Tour),
    Completions(Completions),
}

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
    /// Every entry of every branch
    #[arg(long, conflicts_with = "transcript")]
    pub(crate) all: bool,
    /// The agent's full message stream instead of the conversation
    #[arg(long)]
    pub(crate) transcript: bool,
    /// Print the lines as they are stored, stamps included; with --all notes too
    #[arg(long, conflicts_with = "json")]
    pub(crate) stamped: bool,
    /// Print the lines as they stand in Claude Code's own file
    #[arg(long, conflicts_with_all = ["json", "stamped"])]
    pub(crate) raw: bool,
    /// First make sure that everything shown would survive a power cut
    #[arg(long)]
    pub(crate) durable: bool,
    /// One subagent instead, by its id or the beginning of one; for old versions, by its first entry's
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["at", "all", "transcript", "stamped", "latest"])]
    pub(crate) subagent: Option<String>,
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

/// Read every byte and say what is damaged
#[derive(Debug, Arguments)]
pub(crate) struct Verify {
    /// The session; all of them if none is given
    pub(crate) id: Option<NamedSession>,
    /// Print each session's report as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Mend a damaged session, or say how; the files as they were are kept
#[derive(Debug, Arguments)]
pub(crate) struct Repair {
    /// The session
    pub(crate) id: NamedSession,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print what was found and done as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Clear away what nothing needs any more
#[derive(Debug, Arguments)]
pub(crate) struct Gc {
    /// Also purge sessions that have been in the trash for this many days
    #[arg(long, value_name = "DAYS")]
    pub(crate) trash_after: Option<u32>,
    /// Also give up checkpoints that are older than this many days
    #[arg(long, value_name = "DAYS")]
    pub(crate) checkpoints_after: Option<u32>,
    /// Also give up all but this many checkpoints of each session, the oldest first
    #[arg(long, value_name = "N")]
    pub(crate) checkpoints_keep: Option<usize>,
    /// Also give up the oldest checkpoints of each session until the rest keep at most so many bytes of contents
    #[arg(long, value_name = "BYTES")]
    pub(crate) checkpoints_bytes: Option<u64>,
    /// Only say what would be cleared away
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print what was cleared away as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

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

/// Show what takes how much of the disk
#[derive(Debug, Arguments)]
pub(crate) struct Du {
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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

/// Copy a session into another store: its records, its checkpoints, the contents of files, and what it inherits from
///
/// Again, it brings the copy up to date.
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

/// Bring another store up to date: copy into it whatever it lacks of every session
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
/// Again, it hands over what is new. The session stays here as it is.
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

impl Verb {
    /// Returns the store that a command names itself.
    pub(crate) fn from(&self) -> Option<&str> {
        match self {
            Verb::Copy(Copy { from, .. }) | Verb::Sync(Sync { from, .. }) => from.as_deref(),
            _ => None,
        }
    }
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

/// Look for everything damaged or surprising in Claude Code's own sessions, and say what to do
#[derive(Debug, Arguments)]
pub(crate) struct Doctor {
    /// The session; all of them if none is given
    pub(crate) id: Option<NamedSession>,
    /// Write what can be read of the session as a new one
    #[arg(long, requires = "id")]
    pub(crate) copy: bool,
    /// Print each session's faults as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look for secrets in sessions: keys, tokens, passwords. Nothing is changed, and no secret is printed
#[derive(Debug, Arguments)]
pub(crate) struct Scan {
    /// The session; all of them, of both homes, if none is given
    pub(crate) id: Option<NamedSession>,
    /// Print each secret's kind and place as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run the keeper: every session in one place, for browsers and scripts on this machine
///
/// Settings also come from $XDG_CONFIG_HOME/rethread/config.toml, table `[serve]`, by the names of these flags; flags win.
#[derive(Debug, Arguments)]
pub(crate) struct Serve {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Show only sessions of this directory and what is beneath it; may be given more than once
    #[arg(long = "allowed-root", value_name = "DIR")]
    pub(crate) allowed_roots: Vec<PathBuf>,
    /// Another name by which this keeper may be called, such as a proxy's; may be given more than once
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allow_hosts: Vec<String>,
    /// Claude Code's program, instead of the one that is found
    #[arg(long, value_name = "PATH")]
    pub(crate) claude_bin: Option<PathBuf>,
    /// Let sessions run without asking anybody, if they are begun so
    #[arg(long)]
    pub(crate) allow_bypass: bool,
    /// Print no address that logs a browser in
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Give the terminal back as soon as it is ready
    #[arg(long)]
    pub(crate) background: bool,
    /// Show around: a temporary project, and an agent without a model that really edits files and asks first
    #[arg(long, conflicts_with_all = ["allowed_roots", "claude_bin", "allow_bypass", "background"])]
    pub(crate) demo: bool,
    /// How much is written to the log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: String,
    /// Also write how long requests, turns and captures took, to `traces.jsonl` beside the log
    #[arg(long)]
    pub(crate) traces: bool,
}

/// Serve the page here, for a keeper that may be on another machine
///
/// A keeper listens on its own machine only. `ssh -L 7717:localhost:7717 HOST` brings it here; then
/// `rethread ui --keeper http://localhost:7717 --token-file F`, with a copy of its `keeper/token` as F, serves its page with
/// logins of its own. The browser never sees the token.
#[derive(Debug, Arguments)]
pub(crate) struct ServeUi {
    /// The keeper's address, such as http://localhost:7717
    #[arg(long, value_name = "URL")]
    pub(crate) keeper: String,
    /// The file with that keeper's token; $RETHREAD_HOME/keeper/token if not given
    #[arg(long, value_name = "F")]
    pub(crate) token_file: Option<PathBuf>,
    /// Where to listen, 127.0.0.1:7718 if not given; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Show only sessions of this directory of the keeper's machine, and what is beneath it; may be given more than once
    #[arg(long = "allowed-root", value_name = "DIR")]
    pub(crate) allowed_roots: Vec<PathBuf>,
    /// Another name by which this page may be called, such as a proxy's; may be given more than once
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allow_hosts: Vec<String>,
    /// Print no address that logs a browser in
    #[arg(long)]
    pub(crate) no_open: bool,
    /// How much is written to the log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: String,
}

/// Print an address that logs a browser in, once
#[derive(Debug, Arguments)]
pub(crate) struct Open {
    /// Show this session
    pub(crate) id: Option<NamedSession>,
}

/// Say whether a keeper runs, and what it can do
#[derive(Debug, Arguments)]
pub(crate) struct Status {
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// End the keeper
#[derive(Debug, Arguments)]
pub(crate) struct Stop {}

/// Show the keeper's log
#[derive(Debug, Arguments)]
pub(crate) struct Logs {
    /// How many lines from its end
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub(crate) lines: usize,
    /// What was done and refused instead: the audit log
    #[arg(long)]
    pub(crate) audit: bool,
}

/// Say something to a session, through the keeper
#[derive(Debug, Arguments)]
pub(crate) struct Send {
    /// The session
    pub(crate) id: NamedSession,
    /// What to say
    pub(crate) text: String,
    /// If a turn runs, wait for its end instead of being refused
    #[arg(long)]
    pub(crate) queue: bool,
    /// Follow the session until the turn ends
    #[arg(long, short)]
    pub(crate) watch: bool,
}

/// End the turn that runs
#[derive(Debug, Arguments)]
pub(crate) struct Interrupt {
    /// The session
    pub(crate) id: NamedSession,
}

/// Follow a session live, through the keeper
#[derive(Debug, Arguments)]
pub(crate) struct Watch {
    /// The session
    pub(crate) id: NamedSession,
    /// Print the events as they come, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// List what waits for a person, and answer it
#[derive(Debug, Arguments)]
pub(crate) struct Attention {
    /// The request, or the beginning of its id
    #[arg(requires = "decision")]
    pub(crate) id: Option<String>,
    /// Allow it
    #[arg(long, group = "decision", requires = "id")]
    pub(crate) allow: bool,
    /// Deny it
    #[arg(long, group = "decision", requires = "id")]
    pub(crate) deny: bool,
    /// Allow the same for the rest of the session
    #[arg(long, requires = "allow")]
    pub(crate) session: bool,
    /// What the model is told
    #[arg(long, requires = "deny", value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Also those that are over
    #[arg(long, short, conflicts_with = "id")]
    pub(crate) all: bool,
    /// Print each request as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a unit that keeps the keeper running
#[derive(Debug, Arguments)]
pub(crate) struct Service {
    /// For which service manager
    #[arg(value_enum)]
    pub(crate) manager: Manager,
}

/// What keeps services running.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Manager {
    /// Linux
    Systemd,
    /// macOS
    Launchd,
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

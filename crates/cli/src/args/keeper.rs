//! The keeper, and what is said to it.

use std::path::PathBuf;

use clap::Args as Arguments;

use crate::named::NamedSession;

/// What protects the way from other machines
#[derive(Clone, Debug, Default, Arguments)]
pub(crate) struct Tls {
    /// Speak TLS, with this certificate in PEM and those that vouch for it; then other machines may be let in: --listen
    /// 0.0.0.0:7717 --allow-host NAME
    #[arg(long, value_name = "F", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, value_name = "F", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Run the keeper: every session in one place, for browsers and scripts on this machine
///
/// Settings also come from $XDG_CONFIG_HOME/rethread/config.toml, by the names of these flags: `store` and `claude-dir`, which
/// hold for every command, and in the table `[serve]` `listen`, `allowed-root`, `allow-host`, `tls-cert`, `tls-key`,
/// `claude-bin`, `allow-bypass` and `no-open`. Flags win, and then the environment.
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
    #[command(flatten)]
    pub(crate) tls: Tls,
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
    #[arg(long, conflicts_with_all = ["allowed_roots", "claude_bin", "allow_bypass", "background", "tls_cert"])]
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
/// `rethread ui --keeper https://HOST:7717 --token-file F`, with a copy of its `keeper/token` as F, serves the page of a keeper
/// that speaks TLS, with logins of its own. One that listens on its own machine only is brought here by
/// `ssh -L 7717:localhost:7717 HOST`, as `http://localhost:7717`. The browser never sees the token.
#[derive(Debug, Arguments)]
pub(crate) struct ServeUi {
    /// The keeper's address, such as `https://keeper.example:7717` or `http://localhost:7717`
    #[arg(long, value_name = "URL")]
    pub(crate) keeper: String,
    /// Who vouches for that keeper, in PEM, beside whom this machine trusts
    #[arg(long, value_name = "F")]
    pub(crate) keeper_ca: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) tls: Tls,
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
    /// Print what became of it as JSON; with --watch, the events as they come, one per line
    #[arg(long)]
    pub(crate) json: bool,
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
///
/// What was lost with a keeper that went away is listed too, until the session asks it again: nothing of it was allowed.
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
    #[arg(long, requires = "allow", conflicts_with = "deny")]
    pub(crate) session: bool,
    /// What the model is told
    #[arg(long, requires = "deny", conflicts_with = "allow", value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Also those that are over
    #[arg(long, short, conflicts_with = "id")]
    pub(crate) all: bool,
    /// Print each request as JSON, one object per line; an answered one too
    #[arg(long)]
    pub(crate) json: bool,
}

/// List, make and end tokens for programs that use the keeper's session store, as the official SDKs do
#[derive(Debug, Arguments)]
pub(crate) struct Token {
    /// Make a token of this name, and print it this once
    pub(crate) name: Option<String>,
    /// The namespace that it opens: programs of different namespaces see nothing of each other
    #[arg(long, requires = "name", conflicts_with = "revoke")]
    pub(crate) namespace: Option<String>,
    /// End it
    #[arg(long, requires = "name")]
    pub(crate) revoke: bool,
    /// Print each token's name and namespace as JSON, one object per line
    #[arg(long, conflicts_with = "name")]
    pub(crate) json: bool,
}

/// Print a unit that keeps the keeper running
#[derive(Debug, Arguments)]
pub(crate) struct Service {
    /// For which service manager; this system's own unless said
    #[arg(value_enum, default_value_t = Manager::HERE)]
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

impl Manager {
    const HERE: Self = if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd };
}

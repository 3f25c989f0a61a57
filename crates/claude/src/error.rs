//! What can go wrong, by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a session could not be driven as asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Claude Code is nowhere to be found.
    #[error("Claude Code was not found{}; install it, or name it with `cli_path` or {variable}", places(searched), variable = crate::locate::VARIABLE)]
    CliNotFound {
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },

    /// The Claude Code that was found is too old.
    #[error("{} is version {found}, at least {needed} is needed; update it with `claude update`", path.display())]
    CliTooOld {
        /// The program.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The oldest one that will do.
        needed: &'static str,
    },

    /// The program that was found does not say that it is Claude Code.
    #[error("{} does not tell its version as Claude Code does: {said:?}", path.display())]
    NotClaude {
        /// The program.
        path: PathBuf,
        /// What it said.
        said: String,
    },

    /// Two options contradict each other, or one makes no sense.
    #[error("{option} {problem}")]
    Contradiction {
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// An option is longer than what the operating system takes.
    #[error(
        "{flag} is longer than the {limit} bytes that an argument may have; name a file instead, or say less"
    )]
    ArgumentTooLong {
        /// The flag that the option becomes.
        flag: String,
        /// How long it may be.
        limit: usize,
    },

    /// The client is not connected, or was closed.
    #[error("the client is not connected")]
    NotConnected,

    /// The CLI has ended.
    #[error("Claude Code ended{}{}", ending.describe(), tail(complaints))]
    Ended {
        /// How it ended.
        ending: crate::transport::Ending,
        /// The last it complained about.
        complaints: String,
    },

    /// The CLI did not answer in time.
    #[error("Claude Code did not answer {request} within {limit:?}{}", tail(complaints))]
    TimedOut {
        /// What it was asked.
        request: &'static str,
        /// How long was waited.
        limit: Duration,
        /// The last it complained about.
        complaints: String,
    },

    /// The CLI refused a control request.
    #[error("Claude Code refused {request}: {message}")]
    Refused {
        /// What it was asked.
        request: &'static str,
        /// Why not.
        message: String,
        /// The kind of refusal, for example `unsupported_request`.
        code: Option<String>,
    },

    /// The CLI answered a control request in a way that cannot be read.
    #[error("the answer to {request} is not what was expected")]
    BadAnswer {
        /// What it was asked.
        request: &'static str,
        /// Why it cannot be read.
        source: Arc<serde_json::Error>,
    },

    /// A line of the CLI's looks like JSON, and is none. The lines after it are read as usual.
    #[error("Claude Code sent a line that is no JSON: {line:?}")]
    BadFrame {
        /// The beginning of the line.
        line: String,
    },

    /// A line of the CLI's was longer than allowed, and was left out. The lines after it are read as usual.
    #[error("Claude Code sent a line of more than {limit} bytes")]
    FrameTooLong {
        /// How long a line may be.
        limit: usize,
    },

    /// So much waits to be read that the answer to a control request cannot be reached.
    #[error("{waiting} bytes of messages wait to be read before the answer to {request}")]
    Congested {
        /// What was asked.
        request: &'static str,
        /// What waits.
        waiting: usize,
    },

    /// The queued message was taken back before it was run.
    #[error("the message was cancelled")]
    Cancelled,

    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
}

impl Error {
    /// Returns a function that gives an I/O error its place: `map_err(Error::io("run", path))`.
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, path: path.as_ref().to_owned(), source: Arc::new(source) }
    }
}

/// Returns where was looked, if that says more than that it was everywhere.
fn places(searched: &[PathBuf]) -> String {
    match searched {
        [] => String::new(),
        [only] => format!(" at {}", only.display()),
        _ => " on PATH or in a usual place".to_owned(),
    }
}

/// Returns what was complained about, as the end of a sentence.
fn tail(complaints: &str) -> String {
    if complaints.trim().is_empty() { String::new() } else { format!("; it said: {}", complaints.trim()) }
}

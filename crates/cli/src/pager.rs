//! What shows long answers a page at a time, where a person reads them at a terminal.

use std::ffi::OsString;
use std::io;
use std::process::{Child, ChildStdin, Command, Stdio};

/// What is used where nobody says otherwise: it ends by itself if one page is enough, and lets colours through.
const USUAL: &str = "less -FRX";

/// A pager that is running.
#[derive(Debug)]
pub(crate) struct Pager(Child);

impl Pager {
    /// Starts the pager that the environment names; none if it names none, `cat`, or one that is not there: what it does
    /// not show nobody would see.
    pub(crate) fn start() -> Option<(Self, ChildStdin)> {
        let set = |name: &str| std::env::var_os(name);
        let wanted = set("RETHREAD_PAGER").or_else(|| set("PAGER")).unwrap_or_else(|| USUAL.into());
        if is_none(&wanted) || !is_installed(&wanted) {
            return None;
        }
        let mut command = Command::new("sh");
        // A pager is named with its options, as a shell reads them.
        command.arg("-c").arg(&wanted).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        // Without one the answer is simply written.
        let mut child = command.spawn().ok()?;
        let input = child.stdin.take()?;
        Some((Self(child), input))
    }

    /// Waits until the person has read enough. Its input must be closed by then.
    pub(crate) fn wait(mut self) -> io::Result<()> {
        self.0.wait().map(drop)
    }
}

/// Returns whether a command's first word is a program that can be found.
fn is_installed(wanted: &OsString) -> bool {
    let word = wanted.to_str().and_then(|wanted| wanted.split_whitespace().next()).unwrap_or_default();
    // What a shell alone understands is left to it.
    if word.contains(['=', '$', '"', '\'', '/']) {
        return true;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(word).is_file())
}

fn is_none(wanted: &OsString) -> bool {
    wanted.to_str().is_some_and(|wanted| matches!(wanted.trim(), "" | "cat"))
}

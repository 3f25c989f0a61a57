//! Whether the CLI is new enough.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::error::{Error, Result};
use crate::options::Launch;

/// The oldest version whose protocol this crate speaks.
const OLDEST: &str = "2.0.0";

/// How many bytes of its answer are read. A program that says more does not only tell its version.
const ENOUGH: u64 = 4096;

/// Programs that were asked already, as they were then.
type Known = HashMap<PathBuf, Option<SystemTime>>;
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Refuses a program that is too old, or no Claude Code at all. Asks each program once, until it changes.
pub(crate) async fn check(path: &Path, launch: &Launch, limit: Duration) -> Result<()> {
    let changed = fs::metadata(path).and_then(|file| file.modified()).ok();
    if known().get(path).is_some_and(|known| *known == changed) {
        return Ok(());
    }
    let mut command = std::process::Command::new(path);
    launch.surroundings(&mut command);
    let mut command = Command::from(command);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let timed_out = |_| Error::TimedOut { request: "--version", limit, complaints: String::new() };
    let said = tokio::time::timeout(limit, first_words(command)).await.map_err(timed_out)?;
    judge(path, &String::from_utf8_lossy(&said.map_err(Error::io("run", path))?))?;
    known().insert(path.to_owned(), changed);
    Ok(())
}

/// Runs a program until it has said enough, or all it has to say.
async fn first_words(mut command: Command) -> io::Result<Vec<u8>> {
    let mut child = command.spawn()?;
    let mut said = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(ENOUGH).read_to_end(&mut said).await?;
    }
    child.kill().await?;
    Ok(said)
}

fn known() -> std::sync::MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads `2.1.325 (Claude Code)`.
fn judge(path: &Path, said: &str) -> Result<()> {
    let found = said.split_ascii_whitespace().next().unwrap_or_default();
    let Some(version) = numbers(found) else {
        return Err(Error::NotClaude {
            path: path.to_owned(),
            said: said.trim().chars().take(200).collect(),
        });
    };
    if Some(version) < numbers(OLDEST) {
        return Err(Error::CliTooOld { path: path.to_owned(), found: found.to_owned(), needed: OLDEST });
    }
    Ok(())
}

fn numbers(text: &str) -> Option<[u32; 3]> {
    let text = text.split(['-', '+']).next()?;
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_never_stops_talking_is_heard_only_for_a_while() {
        let mut command = Command::new("yes");
        command.stdout(Stdio::piped()).kill_on_drop(true);
        assert_eq!(first_words(command).await.unwrap().len(), 4096);
    }

    #[test]
    fn an_old_version_is_refused_with_what_to_do() {
        let path = Path::new("/usr/bin/claude");
        judge(path, "2.0.0 (Claude Code)\n").unwrap();
        judge(path, "10.0.0-beta.1 (Claude Code)\n").unwrap();
        let error = judge(path, "1.0.128 (Claude Code)\n").unwrap_err();
        insta::assert_snapshot!(error, @"/usr/bin/claude is version 1.0.128, at least 2.0.0 is needed; update it with `claude update`");
        assert!(matches!(judge(path, "Python 3.11.2"), Err(Error::NotClaude { .. })));
    }
}

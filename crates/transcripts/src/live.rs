//! Which processes of Claude Code are at work, by its own register.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::claude_folder::Links;
use crate::path_text;
use crate::side_file;

/// A running process of Claude Code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Live {
    /// Its number.
    pub pid: u32,
    /// `busy` or `idle`, if it says.
    pub status: Option<String>,
    /// The session it is at work on.
    #[serde(skip)]
    pub session: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Registered {
    pid: u32,
    session_id: String,
    proc_start: Option<serde_json::Value>,
    status: Option<String>,
}

/// A process that the register speaks of and that has ended: it was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stale {
    /// Its number, which another process may have by now.
    pub pid: u32,
    /// The session it was at work on.
    pub session: String,
    /// What speaks of it.
    #[serde(serialize_with = "path_text::readable")]
    pub path: PathBuf,
}

/// Returns the processes in the register that really run. The register outlives a process that was killed, and the
/// system gives out its number again.
pub(crate) fn live(config: &Path) -> Vec<Live> {
    let running = register(config).into_iter().map(|(_, it)| it).filter(Registered::runs);
    running.map(|it| Live { pid: it.pid, status: it.status, session: it.session_id }).collect()
}

/// Returns those that do not.
pub(crate) fn stale(config: &Path) -> Vec<Stale> {
    let ended = register(config).into_iter().filter(|(_, it)| !it.runs());
    ended.map(|(path, it)| Stale { pid: it.pid, session: it.session_id, path }).collect()
}

/// Returns where processes say that they are at work.
pub(crate) fn register_of(config: &Path) -> PathBuf {
    config.join("sessions")
}

fn register(config: &Path) -> Vec<(PathBuf, Registered)> {
    let Ok(entries) = fs::read_dir(register_of(config)) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path());
    // Beside each register lies a secret of the process, which is none of our business.
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let registered = |path: PathBuf| {
        let bytes = side_file::read(&path, Links::Refuse)?;
        Some((path, serde_json::from_slice(&bytes).ok()?))
    };
    files.filter_map(registered).collect()
}

impl Registered {
    fn runs(&self) -> bool {
        runs(self.pid, self.proc_start.as_ref())
    }
}

#[cfg(target_os = "linux")]
fn runs(pid: u32, started: Option<&serde_json::Value>) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name before it may hold anything, so the fields are counted from its closing parenthesis.
    let start = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19));
    match started {
        Some(serde_json::Value::String(text)) => start == Some(text.as_str()),
        Some(serde_json::Value::Number(number)) => start == Some(number.to_string().as_str()),
        _ => start.is_some(),
    }
}

#[cfg(not(target_os = "linux"))]
fn runs(pid: u32, _: Option<&serde_json::Value>) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

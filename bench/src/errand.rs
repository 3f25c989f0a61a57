//! Work for a process of its own, so that nothing is warm in it and its memory is nobody else's.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::checkpoint::huge;
use crate::claude;
use crate::failure::Outcome;
use crate::keeper::agent;
use crate::store::{branching, killed_writer, listing, loading};
use crate::transcripts;

/// What a process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Errand {
    /// Read a whole session, each entry typed.
    Load { reader: loading::Reader, place: PathBuf },
    /// Read a session's newest entries.
    Last { root: PathBuf, session: String, count: usize },
    /// Read the newest entries from SQLite.
    LastOfSqlite { folder: PathBuf, count: usize },
    /// Fork a session at an entry.
    Fork { root: PathBuf, session: String, at: String },
    /// Find sessions.
    Find { finder: listing::Finder, root: PathBuf },
    /// Do something with Claude Code's own transcripts.
    Transcripts { task: transcripts::Task, place: PathBuf },
    /// Do something with what the CLI says.
    Claude(claude::Task),
    /// Append to a session until somebody kills the process.
    AppendUntilKilled { root: PathBuf, session: String },
    /// Be an agent that says what time it is.
    PlayAgent,
    /// Say what time it is, so many times.
    Speak { lines: usize },
    /// Capture a large file and restore it.
    Huge { folder: PathBuf, size: u64 },
}

/// What came out of an errand.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// How long the work itself took, without the start of the process.
    pub(crate) seconds: f64,
    /// What was found: proof that the work was done.
    pub(crate) found: u64,
    /// How much of the logs was read, where that was counted.
    pub(crate) log_bytes_read: u64,
    /// The most memory that the process ever had.
    pub(crate) peak_mebibytes: f64,
}

impl Errand {
    /// Does the work in this process.
    pub(crate) fn run(self) -> Outcome<Answer> {
        let mut answer = match self {
            Errand::PlayAgent => {
                agent::play()?;
                Answer::default()
            }
            Errand::Speak { lines } => {
                agent::speak(lines, &mut std::io::stdout())?;
                Answer::default()
            }
            Errand::Load { reader, place } => loading::load(reader, &place)?,
            Errand::Last { root, session, count } => branching::last(&root, &session, count)?,
            Errand::LastOfSqlite { folder, count } => branching::last_of_sqlite(&folder, count)?,
            Errand::Fork { root, session, at } => branching::fork(&root, &session, &at)?,
            Errand::Find { finder, root } => listing::find(finder, &root)?,
            Errand::Transcripts { task, place } => transcripts::run(&task, &place)?,
            Errand::Claude(task) => claude::run(&task)?,
            Errand::Huge { folder, size } => huge::work(&folder, size)?,
            Errand::AppendUntilKilled { root, session } => {
                killed_writer::append_until_killed(&root, &session)?
            }
        };
        answer.peak_mebibytes = peak_mebibytes()?;
        Ok(answer)
    }

    /// Has the work done by a new process, and makes sure that it found what there is.
    pub(crate) fn send(&self, expected: u64) -> Outcome<Answer> {
        let output = self.start()?.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("{self:?} failed").into());
        }
        let answer: Answer = serde_json::from_slice(&output.stdout)?;
        match answer.found == expected {
            true => Ok(answer),
            false => Err(format!("{self:?} found {}, but there is {expected}", answer.found).into()),
        }
    }

    /// Starts a process for the work.
    pub(crate) fn start(&self) -> Outcome<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--errand").arg(serde_json::to_string(self)?).stdout(Stdio::piped());
        Ok(command.spawn()?)
    }
}

fn peak_mebibytes() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes =
        peak.and_then(|peak| peak.split_whitespace().next()).ok_or("the kernel tells no peak memory")?;
    Ok(kibibytes.parse::<f64>()? / 1024.0)
}

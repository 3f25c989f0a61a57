//! What a process of our own is asked to do with transcripts.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rethread_transcripts::{Chain, ClaudeFolder, History, ListOptions, Transcript};
use serde::{Deserialize, Serialize};

use super::follow;
use crate::errand::Answer;
use crate::failure::Outcome;
use crate::stopwatch::seconds;

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// List sessions, all of them or the newest.
    List { index: Option<PathBuf>, limit: usize },
    /// Only look at the folders, and at each file's size and time.
    Walk,
    /// Read the active conversation, each message with its blocks typed.
    Typed,
    /// Read the active conversation, each message with its bytes at hand.
    Lazy,
    /// Read the last messages.
    Last { index: Option<PathBuf>, count: u64 },
    /// Wait for lines, and say how long after they were written they came.
    Follow { by: follow::By, lines: usize, sessions: usize },
    /// Wait for nothing at all.
    Idle { seconds: f64 },
}

/// Does it, in this process. `place` is Claude's folder or a transcript.
pub(crate) fn run(task: &Task, place: &Path) -> Outcome<Answer> {
    let (seconds, found) = match task {
        Task::List { index, limit } => seconds(|| {
            let mut options = ListOptions::default().limit(*limit);
            options.index = index.clone();
            Ok(ClaudeFolder::new(place).list(&options)?.sessions.len())
        })?,
        Task::Walk => seconds(|| walk(&place.join("projects")))?,
        Task::Typed => seconds(|| typed(place))?,
        Task::Lazy => seconds(|| {
            let transcript = Transcript::open(place)?;
            let chain = transcript.active().messages();
            let mut reader = transcript.read(&chain);
            let mut bytes = 0;
            while let Some(entry) = reader.next().transpose()? {
                bytes += entry.raw().len();
            }
            std::hint::black_box(bytes);
            Ok(chain.len())
        })?,
        Task::Last { index, count } => seconds(|| {
            let history = History::open(place, index.as_deref())?;
            Ok(history.last(*count)?.len())
        })?,
        Task::Follow { by, lines, sessions } => return follow::measure(*by, place, *lines, *sessions),
        Task::Idle { seconds } => return follow::idle(place, *seconds),
    };
    Ok(Answer { seconds, found: found as u64, ..Answer::default() })
}

/// Reads every message with its blocks, half of them on another thread.
fn typed(place: &Path) -> Outcome<usize> {
    let transcript = Transcript::open(place)?;
    let chain = transcript.active().messages();
    let count = chain.len();
    let read = |chain: &Chain| -> rethread_transcripts::Result<usize> {
        let (mut reader, mut blocks) = (transcript.read(chain), 0);
        while let Some(entry) = reader.next().transpose()? {
            blocks += std::hint::black_box(entry.typed()).blocks.len();
        }
        Ok(blocks)
    };
    let (first, second) = chain.halves();
    let blocks = std::thread::scope(|scope| {
        let other = scope.spawn(|| read(&second));
        let own = read(&first)?;
        Ok::<_, rethread_transcripts::Error>(own + other.join().unwrap_or(Ok(0))?)
    })?;
    std::hint::black_box(blocks);
    Ok(count)
}

fn walk(projects: &Path) -> Outcome<usize> {
    let mut count = 0;
    for folder in std::fs::read_dir(projects)? {
        for file in std::fs::read_dir(folder?.path())? {
            let stat = file?.metadata()?;
            std::hint::black_box((stat.len(), stat.mtime_nsec()));
            count += 1;
        }
    }
    Ok(count)
}

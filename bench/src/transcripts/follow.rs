//! How soon a line on disk is with whoever follows the session.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rethread_transcripts::{Change, ClaudeFolder, Event, From, Means, Watch};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use serde::{Deserialize, Serialize};

use super::{Task, made};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::samples::Samples;

/// How many sessions are watched.
const SESSIONS: usize = 1000;
/// Between two lines.
const PAUSE: Duration = Duration::from_millis(1);

/// Who waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum By {
    /// The watcher.
    Watch,
    /// One notice of the system, and one read.
    Bare,
}

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let sessions = SESSIONS.min(bench.scale.sessions);
    let lines = bench.scale.written.min(2000) / 2;
    let config = bench.fresh()?;
    made::many(&config, sessions)?;
    let wait = |by: By| {
        let task = Task::Follow { by, lines, sessions };
        let place = config.clone();
        move |_: &Path| {
            let errand = Errand::Transcripts { task: task.clone(), place: place.clone() };
            Ok(errand.send(lines as u64)?.seconds * 1e6)
        }
    };
    let latency = Contest::new(
        format!("new line to subscriber, {sessions} sessions watched, 99 of 100"),
        Unit::Microseconds,
        wait(By::Watch),
    )
    .peer("one notice and one read", Bar::AtMost(3.0), wait(By::Bare))
    .run(bench)?;
    let seconds = if bench.scale.judged { 10.0 } else { 0.2 };
    let idle = Contest::new("work per second while nothing changes", Unit::Microseconds, |_| {
        let errand = Errand::Transcripts { task: Task::Idle { seconds }, place: config.clone() };
        Ok(errand.send(0)?.seconds * 1e6)
    })
    .peer("a thousandth of a processor", Bar::AtMost(1.0), |_| Ok(1000.0))
    .run_rounds(2, bench)?;
    let memory = Contest::new("memory of the watcher", Unit::Mebibytes, |_| {
        let errand = Errand::Transcripts { task: Task::Idle { seconds: 0.1 }, place: config.clone() };
        Ok(errand.send(0)?.peak_mebibytes)
    })
    .peer("64 MiB", Bar::Shown, |_| Ok(64.0))
    .run_rounds(2, bench)?;
    Ok(vec![latency, idle, memory])
}

/// Writes lines to sessions, one after the other, and returns how long the slowest one in a hundred took to come.
pub(super) fn measure(by: By, config: &Path, lines: usize, sessions: usize) -> Outcome<Answer> {
    let (send, came) = channel();
    let paths: Vec<PathBuf> = (0..sessions).map(|number| transcript(config, number)).collect();
    let _watch = match by {
        By::Watch => {
            let take = move |change: Change| {
                if let Event::Added { .. } = change.event {
                    let _ = send.send(Instant::now());
                }
            };
            Some(Watch::all(&ClaudeFolder::new(config), From::Now, Means::Best, take)?)
        }
        By::Bare => {
            bare(paths[0].clone(), send)?;
            None
        }
    };
    let mut delays = Samples::default();
    for number in 0..lines {
        let path = if let By::Bare = by { &paths[0] } else { &paths[number * 7 % paths.len()] };
        let mut file = OpenOptions::new().append(true).open(path)?;
        std::thread::sleep(PAUSE);
        file.write_all(
            b"{\"type\":\"user\",\"uuid\":\"x\",\"message\":{\"role\":\"user\",\"content\":\"hello\"}}\n",
        )?;
        let written = Instant::now();
        delays.push(next(&came)?.saturating_duration_since(written).as_secs_f64());
    }
    Ok(Answer { seconds: delays.quantile(0.99), found: lines as u64, ..Answer::default() })
}

fn next(came: &Receiver<Instant>) -> Outcome<Instant> {
    Ok(came.recv_timeout(Duration::from_secs(30))?)
}

fn transcript(config: &Path, number: usize) -> PathBuf {
    config.join(format!("projects/-home-ada-project-{}/{}.jsonl", number % 100, made::id(number)))
}

/// Waits for a notice about one file, reads what is new, and tells the time.
fn bare(path: PathBuf, send: Sender<Instant>) -> Outcome<()> {
    let notices = inotify::init(CreateFlags::CLOEXEC)?;
    inotify::add_watch(&notices, &path, WatchFlags::MODIFY)?;
    let mut file = File::open(&path)?;
    file.seek(SeekFrom::End(0))?;
    std::thread::spawn(move || {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut line = Vec::new();
        loop {
            let mut reader = Reader::new(&notices, &mut buffer);
            let Ok(_) = reader.next() else { return };
            line.clear();
            if file.read_to_end(&mut line).is_ok_and(|read| read > 0) && send.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Watches while nothing happens, and returns how much of each second that took.
pub(super) fn idle(config: &Path, seconds: f64) -> Outcome<Answer> {
    let _watch = Watch::all(&ClaudeFolder::new(config), From::Now, Means::Best, |_| ())?;
    let before = processor_time()?;
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let spent = processor_time()? - before;
    Ok(Answer { seconds: spent / seconds, ..Answer::default() })
}

fn processor_time() -> Outcome<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

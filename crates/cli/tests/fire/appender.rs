//! A running `rethread append` that is fed lines, and whose acknowledgements are counted as they come.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::ledger::Run;

/// How lines are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All at once, so that many share a sync.
    Flood,
    /// Each when the one before it was acknowledged.
    Lockstep,
}

/// A running `append`. It is killed when this value goes.
#[derive(Debug)]
pub(crate) struct Appender {
    child: Child,
    acknowledged: Arc<AtomicUsize>,
    reading: Option<JoinHandle<Run>>,
    complaining: Option<JoinHandle<String>>,
}

/// How an `append` ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What it was given and what it acknowledged.
    pub(crate) run: Run,
    /// `None` if it was killed.
    pub(crate) code: Option<i32>,
    /// What it was killed by.
    pub(crate) signal: Option<i32>,
    pub(crate) err: String,
}

impl Appender {
    /// Starts the command and begins to feed it the run's lines.
    pub(crate) fn start(mut command: Command, run: Run, pace: Pace) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let counter = acknowledged.clone();
        let reading = std::thread::spawn(move || {
            let count = move |run: &Run| counter.store(run.acknowledged.len(), Ordering::SeqCst);
            read(BufReader::new(stdout), feed(stdin, &run, pace), run, count)
        });
        let complaining = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, acknowledged, reading: Some(reading), complaining: Some(complaining) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until so many lines are acknowledged, it has ended, or the time is over.
    pub(crate) fn wait_for(&self, count: usize, most: Duration) {
        let begun = Instant::now();
        while self.acknowledged() < count && begun.elapsed() < most && !self.has_ended() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Returns whether it has said its last word.
    pub(crate) fn has_ended(&self) -> bool {
        self.reading.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // One that has ended needs none.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Stops it as a power cut would: when this returns, it says nothing more.
    ///
    /// A file system that is shut down under a running sync may still call that a success, which no machine without
    /// power can; so whoever might tell of it has to stand still before.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        super::stopped::wait_until_stopped(self.pid());
    }

    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().unwrap();
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let run = self.reading.take().unwrap().join().unwrap();
        let err = self.complaining.take().unwrap().join().unwrap();
        let status = self.child.wait().unwrap();
        Ended { run, code: status.code(), signal: status.signal(), err }
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        // Stopped or not: a file system that it has open could not be unmounted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands lines over. Returns the input if more is to come, and how many are in it.
fn feed(mut stdin: ChildStdin, run: &Run, pace: Pace) -> Option<ChildStdin> {
    match pace {
        Pace::Flood => {
            let text = run.lines.join("\n") + "\n";
            // It may be killed before it has read everything.
            std::thread::spawn(move || stdin.write_all(text.as_bytes()));
            None
        }
        Pace::Lockstep => Some(stdin),
    }
}

fn read(
    mut out: BufReader<impl std::io::Read>,
    mut stdin: Option<ChildStdin>,
    mut run: Run,
    count: impl Fn(&Run),
) -> Run {
    loop {
        match run.lines.get(run.acknowledged.len()) {
            Some(line) => {
                if let Some(stdin) = &mut stdin {
                    let _ = stdin.write_all(format!("{line}\n").as_bytes());
                }
            }
            None => drop(stdin.take()),
        }
        let mut ack = String::new();
        // An acknowledgement without its newline was not given.
        if out.read_line(&mut ack).unwrap() == 0 || !ack.ends_with('\n') {
            return run;
        }
        run.acknowledge(&ack);
        count(&run);
    }
}

//! What the guard does: it starts the CLI, waits for its end or the host's, and leaves nothing behind.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::descendants::signal_all;

/// What a shell says when a program cannot be run.
const CANNOT_RUN: i32 = 127;

/// How often those who should be gone are looked for: at first, and after a while.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(500);

enum Event {
    /// The host closed its end, or died.
    HostLeft,
    /// A child ended, adopted ones included.
    Ended(Pid, WaitStatus),
    /// No child is left, and so no descendant.
    Alone,
}

/// Runs a program as the guard's arguments say, and returns its exit code once it and all its descendants are gone.
pub(super) fn own(arguments: impl Iterator<Item = OsString>) -> i32 {
    match try_own(arguments) {
        Ok(code) => code,
        Err(error) => {
            // The host reads this as what the CLI complained about.
            drop(io::Write::write_fmt(&mut io::stderr(), format_args!("cannot start: {error}\n")));
            CANNOT_RUN
        }
    }
}

fn try_own(mut arguments: impl Iterator<Item = OsString>) -> io::Result<i32> {
    let mut next = || arguments.next().ok_or_else(|| io::Error::other("a guard needs more arguments"));
    let (control, grace, program) = (next()?, next()?, next()?);
    let grace = grace.to_str().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let grace = grace.ok_or_else(|| io::Error::other("a guard needs a time"))?;
    let mut control = File::open(std::path::Path::new("/dev/fd").join(control))?;

    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let child = Command::new(program).args(arguments).process_group(0).spawn()?;
    let cli = Pid::from_child(&child);
    let_go_of_the_pipes()?;

    let (tell, events) = channel();
    let told = tell.clone();
    thread::spawn(move || {
        // Nothing is ever written: the end is the message.
        drop(control.read(&mut [0]));
        drop(told.send(Event::HostLeft));
    });
    thread::spawn(move || reap(&tell));
    Ok(oversee(cli, grace, &events))
}

/// Makes the CLI the only one that holds the pipes, so that the host sees when it lets go of them.
fn let_go_of_the_pipes() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

/// Waits for every child there is, so that none stays a zombie.
fn reap(tell: &Sender<Event>) {
    loop {
        let event = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => Event::Ended(pid, status),
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(_) => Event::Alone,
        };
        let is_over = matches!(event, Event::Alone);
        if tell.send(event).is_err() || is_over {
            return;
        }
    }
}

fn oversee(cli: Pid, grace: Duration, events: &Receiver<Event>) -> i32 {
    let mut watch = Watch { cli, status: None, alone: false, events };
    if watch.until(None, |watch| watch.status.is_some()) == Verdict::HostLeft {
        // Its tools are its own to end, so that it can write down what became of them.
        // It may have ended since.
        let _ = rustix::process::kill_process(cli, Signal::TERM);
        watch.until(Some(Instant::now() + grace), |watch| watch.status.is_some());
    }
    if !watch.alone && watch.status.is_some() {
        signal_all(cli, Signal::TERM);
        watch.until(Some(Instant::now() + grace), |watch| watch.alone);
    }
    let mut pause = SHORTEST;
    while !watch.alone {
        signal_all(cli, Signal::KILL);
        watch.until(Some(Instant::now() + pause), |watch| watch.alone);
        // Who does not go waits for the kernel, which may take long.
        pause = (pause * 2).min(LONGEST);
    }
    let status = watch.status;
    status.map_or(CANNOT_RUN, |status| {
        let by_signal = || status.terminating_signal().map(|signal| 128 + signal);
        status.exit_status().or_else(by_signal).unwrap_or(CANNOT_RUN)
    })
}

#[derive(PartialEq)]
enum Verdict {
    Reached,
    HostLeft,
    TooLate,
}

struct Watch<'a> {
    cli: Pid,
    status: Option<WaitStatus>,
    alone: bool,
    events: &'a Receiver<Event>,
}

impl Watch<'_> {
    /// Takes events until something holds, or it is too late. That the host left matters only without a deadline.
    fn until(&mut self, deadline: Option<Instant>, holds: impl Fn(&Self) -> bool) -> Verdict {
        while !holds(self) {
            let event = match deadline {
                Some(deadline) => {
                    self.events.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                }
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(Event::HostLeft) if deadline.is_none() => return Verdict::HostLeft,
                Ok(Event::HostLeft) => {}
                Ok(Event::Ended(pid, status)) if pid == self.cli => self.status = Some(status),
                Ok(Event::Ended(..)) => {}
                Ok(Event::Alone) => self.alone = true,
                Err(_) => return Verdict::TooLate,
            }
        }
        Verdict::Reached
    }
}

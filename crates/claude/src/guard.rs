//! The guard: a small process that owns the CLI, and ends it with everything it started when the host goes.
//!
//! The host holds one end of a pipe and the guard reads the other. The pipe ends when the host closes it, crashes or is
//! killed; then the CLI gets `SIGTERM`, some time, and `SIGKILL`, and so do all its descendants, those too that began a
//! session of their own. What a CLI leaves running when it ends by itself goes the same way. The guard never touches
//! what host and CLI say to each other: the CLI has the host's pipes themselves.
//!
//! A host that calls [`init`] first thing in `main` is its own guard: it is started a second time, becomes the *child
//! subreaper*, and so no descendant can get away. For any other host the guard is a shell script. It finds descendants
//! by their parents, their process group and a mark in their environment, and misses only a process that has shed all
//! three.

mod descendants;
mod owner;
mod shell;

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first argument of a host that is to be a guard. Nobody types it.
const SIGN: &str = "__rethread_guard";

/// Whether this host said that it can be its own guard.
static IS_WILLING: AtomicBool = AtomicBool::new(false);

/// Makes this program able to guard the CLIs that it starts. Call it first thing in `main`.
///
/// In a process that was started as a guard this never returns. In any other it only takes note, and from then on
/// guards are this program itself rather than a shell script.
///
/// ```no_run
/// // fn main() {
/// rethread_claude::guard::init();
/// // … the rest of the program
/// ```
pub fn init() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(SIGN)) {
        IS_WILLING.store(true, Ordering::Relaxed);
        return;
    }
    let code = owner::own(arguments);
    #[expect(clippy::disallowed_methods, reason = "a guard has nothing of the host's to clean up")]
    std::process::exit(code)
}

/// Returns a command that runs a program under a guard, which ends it when the other end of `control` is closed.
///
/// The reading end must stay inheritable until the command was spawned, and have a number of two digits or more. That
/// others may inherit it meanwhile does no harm: only the writing end says whether the host lives.
pub(crate) fn command(
    program: &OsStr,
    arguments: &[OsString],
    control: BorrowedFd<'_>,
    grace: Duration,
) -> Command {
    let mut command = if IS_WILLING.load(Ordering::Relaxed) { itself() } else { shell::command() };
    command.arg(control.as_raw_fd().to_string()).arg(grace.as_millis().to_string());
    command.arg(program).args(arguments);
    // Out of the host's group, so that what a terminal sends to the host does not end the guard before its work.
    command.process_group(0);
    command
}

fn itself() -> Command {
    // On Linux this is the running program even if its file was replaced meanwhile.
    let path = if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() };
    let Ok(path) = path else { return shell::command() };
    let mut command = Command::new(path);
    command.arg0("rethread-guard").arg(SIGN);
    command
}

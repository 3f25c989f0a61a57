//! Faults at system calls, by `strace`: a call that fails, does nothing, waits, or is never made.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::{Home, cannot};

/// Returns whether system calls can be tampered with here; says so if not.
pub(crate) fn works() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        cannot("system calls cannot be traced here: that needs strace and the right to use it");
    }
    works
}

/// Returns the program, with a fault as `strace` spells it: `CALLS:WHAT:when=N`.
pub(crate) fn tampered(home: &Home, fault: &str, words: &[&str]) -> Command {
    through(home, fault, "/dev/null", &[], words)
}

/// The same, only for calls on these paths, with a file that tells which calls were tampered with.
pub(crate) fn through(home: &Home, fault: &str, log: &str, paths: &[PathBuf], words: &[&str]) -> Command {
    let calls = fault.split(':').next().unwrap_or_default();
    let (trace, inject) = (format!("trace={calls}"), format!("inject={fault}"));
    // With -D the program itself is our child, so it can be signalled; without, killing the tracer sets it free.
    let mut runner = vec!["strace", "-D", "-f", "-qq", "-o", log, "-e", &trace, "-e", &inject];
    runner.extend(paths.iter().flat_map(|path| ["-P", path.to_str().unwrap()]));
    home.through(&runner, words)
}

/// Returns a folder and everything in it.
pub(crate) fn everything_in(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(everything_in(&entry.path())),
            false => all.push(entry.path()),
        }
    }
    all
}

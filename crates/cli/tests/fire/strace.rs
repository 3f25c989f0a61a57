//! Faults at system calls, by `strace`: a call that fails, does nothing, waits, or is never made.

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
    tampered_and_logged(home, fault, "/dev/null", words)
}

/// The same, with a file that tells which calls were tampered with.
pub(crate) fn tampered_and_logged(home: &Home, fault: &str, log: &str, words: &[&str]) -> Command {
    let calls = fault.split(':').next().unwrap_or_default();
    let (trace, inject) = (format!("trace={calls}"), format!("inject={fault}"));
    // With -D the program itself is our child, so it can be signalled; without, killing the tracer sets it free.
    home.through(&["strace", "-D", "-f", "-qq", "-o", log, "-e", &trace, "-e", &inject], words)
}

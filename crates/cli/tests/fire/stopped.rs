//! Processes that stand still.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Stops a process with all its threads.
pub(crate) fn stop(child: &Child) {
    // One that has ended needs none.
    let _ = kill_process(Pid::from_child(child), Signal::STOP);
    wait_until_stopped(child.id());
}

/// Waits until no thread of a process can do anything more than finish the system call that it is in.
pub(crate) fn wait_until_stopped(pid: u32) {
    let begun = Instant::now();
    while !is_stopped(pid) {
        assert!(begun.elapsed() < Duration::from_secs(10), "process {pid} does not stop");
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        // One that is gone by now does nothing either.
        let Ok(stat) = fs::read_to_string(thread.path().join("stat")) else { return true };
        let state = stat[stat.rfind(')').unwrap()..].chars().nth(2);
        matches!(state, Some('T' | 't' | 'D' | 'Z' | 'X'))
    })
}

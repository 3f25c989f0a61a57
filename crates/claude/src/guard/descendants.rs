//! All that descends from this process.

use rustix::process::{Pid, Signal};

/// Sends a signal to every descendant of this process, and to the CLI's group.
///
/// Orphans are children of their subreaper, which this process is, so that nobody is out of reach.
#[cfg(target_os = "linux")]
pub(super) fn signal_all(_cli: Pid, signal: Signal) {
    for pid in descendants(rustix::process::getpid().as_raw_pid()) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended since.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Sends a signal to the CLI's group: without `/proc` nobody else is known.
#[cfg(not(target_os = "linux"))]
pub(super) fn signal_all(cli: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(cli, signal);
}

#[cfg(target_os = "linux")]
fn descendants(ancestor: i32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: Vec<(i32, i32)> = processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, parent_of(&std::fs::read_to_string(entry.path().join("stat")).ok()?)?))
        })
        .collect();
    let mut found = vec![ancestor];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Returns the parent that a line of `/proc/PID/stat` names. A program's name may hold anything, brackets too.
#[cfg(target_os = "linux")]
fn parent_of(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

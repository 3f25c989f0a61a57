//! What is left of processes when everything has ended: nothing, and no zombie either.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Returns the children that this process still has, alive or as zombies, once there has been time to clean up.
pub(crate) fn of_this_process() -> Vec<String> {
    let begun = Instant::now();
    loop {
        let left = children();
        if left.is_empty() || begun.elapsed() > Duration::from_secs(30) {
            return left;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let stats = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name may hold anything, a closing bracket too.
        let (_, rest) = stat.rsplit_once(") ")?;
        (rest.split(' ').nth(1) == Some(&own)).then_some(stat)
    });
    stats.collect()
}

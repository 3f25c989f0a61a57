//! How long something takes.

use std::time::Instant;

use crate::failure::Outcome;

/// Returns how many seconds some work took, and what it gave.
pub(crate) fn seconds<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let begun = Instant::now();
    let done = work()?;
    Ok((begun.elapsed().as_secs_f64(), done))
}

/// Returns how often a second something was done that was done `count` times.
pub(crate) fn rate(count: usize, work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let (seconds, ()) = seconds(work)?;
    Ok(count as f64 / seconds)
}

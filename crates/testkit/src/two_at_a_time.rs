//! Work that mostly waits for a program, done two at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does something with each item, two at a time, and returns what came out, in the order of the items.
pub fn two_at_a_time<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let hand = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            done.lock().unwrap().push((at, result));
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(hand);
        hand();
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

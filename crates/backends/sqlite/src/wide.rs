//! A long log read on several connections at once.
//!
//! Fetching pages and copying lines out of them is nearly all of a load, and a connection does it on one core. The lines of a
//! log never change and its number is never given out again, so it does no harm that each connection sees a state of the
//! file of its own. Should one of them miss a line all the same, nothing is said of that: the log is read in one piece then.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rethread_store::Result;
use rethread_store::backend::{Chunk, LogKey, Position};

use crate::connections::Connections;
use crate::logs::{self, Parsed};

/// How many lines a thread takes at a time.
const BLOCK: usize = 128;
/// How many lines, and how many bytes that are wanted, are worth another thread.
const LONG: usize = 4 * BLOCK;
const MUCH: usize = 4 << 20;
/// How many threads read at most.
const MOST_THREADS: usize = 4;

/// Reads part of a log; `None` if that is better done in one piece.
pub(crate) fn read(
    connections: &Connections,
    log: &LogKey,
    from: Position,
    max_bytes: usize,
) -> Result<Option<Chunk>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    if threads < 2 || max_bytes < MUCH {
        return Ok(None);
    }
    let found = connections.read("read", |transaction| logs::find_log(transaction, log))?.flatten();
    let Some(found) = found else { return Ok(None) };
    // Whoever asks may be beyond its end, however far.
    let lines = found.next.saturating_sub(from) as usize;
    if lines < LONG {
        return Ok(None);
    }
    let count = lines.div_ceil(BLOCK);
    let blocks: Vec<OnceLock<Vec<Parsed>>> = (0..count).map(|_| OnceLock::new()).collect();
    let start_of = |block: usize| (from + (block * BLOCK) as Position).min(found.next);
    let (next, size) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        connections.read("read", |transaction| {
            while size.load(Ordering::Relaxed) < max_bytes {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(block) = blocks.get(at) else { break };
                let mut lines = Vec::with_capacity(BLOCK);
                logs::each_line(transaction, &found, start_of(at)..start_of(at + 1), |line| {
                    let before = size.fetch_add(line.length, Ordering::Relaxed);
                    let is_enough = before + line.length >= max_bytes;
                    lines.push(line);
                    !is_enough
                })?;
                let _ = block.set(lines);
            }
            Ok(())
        })
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let done = work();
        others.into_iter().fold(done, |done, other| {
            done.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })?;
    let mut chunk = Chunk { next: from, ..Chunk::default() };
    let (mut whole, mut end) = (0, from);
    for (block, lines) in blocks.into_iter().map_while(OnceLock::into_inner).enumerate() {
        for line in lines {
            if line.add_to(&mut chunk, log) == 0 {
                whole = chunk.lines.len();
            }
        }
        end = start_of(block + 1);
        if chunk.next < end {
            break;
        }
    }
    let is_sound = chunk.next == end || size.into_inner() >= max_bytes;
    // A group is never cut.
    chunk.lines.truncate(whole);
    chunk.next = chunk.lines.last().map_or(from, |line| line.stamp().position + 1);
    Ok((is_sound && chunk.damage.is_empty() && whole > 0).then_some(chunk))
}

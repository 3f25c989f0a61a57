//! The same work for many, on as many threads as there are processors.

use std::panic::resume_unwind;
use std::thread::{self, Builder};

/// From how many on it pays to work on several threads, and on how many at most.
const MANY: usize = 512;
const MOST: usize = 8;

/// Does some work for each of them and returns what came of it, in their order.
pub(crate) fn side_by_side<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> Option<R> + Sync) -> Vec<R> {
    if all.len() < MANY {
        return all.iter().filter_map(work).collect();
    }
    let cores = thread::available_parallelism().map_or(1, usize::from).min(MOST);
    let share = |part: &[T]| part.iter().filter_map(&work).collect::<Vec<R>>();
    let mut done = Vec::with_capacity(all.len());
    thread::scope(|scope| {
        let (own, others) = all.split_at(all.len().div_ceil(cores));
        let others: Vec<_> = others
            .chunks(all.len().div_ceil(cores))
            // Where no thread is to be had, the work is done all the same.
            .map(|part| Builder::new().spawn_scoped(scope, move || share(part)).map_err(|_| part))
            .collect();
        done.extend(share(own));
        for part in others {
            done.extend(match part {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(part) => share(part),
            });
        }
    });
    done
}

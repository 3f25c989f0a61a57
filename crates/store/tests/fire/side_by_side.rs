//! Rounds that mostly wait, many at a time.

use super::effort::{Effort, Round};

/// Runs every round, so many at the same time, and says which ones failed.
pub(crate) fn side_by_side(mut effort: Effort, width: usize, work: impl Fn(Round) + Sync) {
    loop {
        let rounds: Vec<Round> = effort.by_ref().take(width).collect();
        if rounds.is_empty() {
            return;
        }
        let work = &work;
        let failed: Vec<u64> = std::thread::scope(|scope| {
            let running: Vec<_> =
                rounds.iter().map(|&round| (round.number, scope.spawn(move || work(round)))).collect();
            let join = |(number, thread): (u64, std::thread::ScopedJoinHandle<'_, ()>)| {
                thread.join().is_err().then_some(number)
            };
            running.into_iter().filter_map(join).collect()
        });
        failed.iter().for_each(|&round| effort.blame(round));
        assert!(failed.is_empty(), "rounds {failed:?} failed");
    }
}

//! Rounds that mostly wait, many at a time.

use super::effort::{Effort, Round};

/// How many rounds wait at the same time.
const WIDTH: usize = 32;

/// Runs every round, and says which ones failed.
pub(crate) fn side_by_side(effort: Effort, work: impl Fn(Round) + Sync) {
    let mut effort = effort;
    loop {
        let rounds: Vec<Round> = effort.by_ref().take(WIDTH).collect();
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
        assert!(failed.is_empty(), "failed with RETHREAD_ROUND set to one of {failed:?}");
    }
}

//! A store that acknowledges before it syncs: then a flush is what promises.

use rethread_store::backend::Durability;

use super::crash::check;
use super::effort::Effort;
use super::ledger::Ledger;
use super::run::Run;
use super::simulated_disk::SimulatedDisk;

#[test]
fn what_was_there_before_a_flush_survives_a_power_cut_after_it() {
    let (mut cuts, mut rounds) = (0, 0);
    for round in Effort::new("power cuts between flushes", 12) {
        let mut rng = round.rng();
        let disk = SimulatedDisk::new();
        disk.seed(round.seed);
        let mut run = Run::with(&disk, Ledger::default(), Durability::Written);
        let moments = run.record_moments();
        // A second failing sync can be that of the next segment, and then the flush says so.
        run.under_fault = true;
        run.create("a");
        for _ in 0..rng.usize(4..12) {
            match rng.u8(..8) {
                0..=3 => run.append_sized("a", rng.usize(..3_000)),
                4 => run.group("a", 3, rng.usize(..2_000)),
                5 => run.fail_next_sync(),
                _ => run.flush(),
            }
        }
        disk.unwatch();
        let mut moments = std::mem::take(&mut *moments.lock().expect("no test panics here"));
        moments.push((disk.moment("the end"), run.ledger().clone()));
        for (number, (moment, ledger)) in moments.iter().enumerate() {
            let story = format!("power cut at call {number}, {}", moment.story);
            check(&moment.after_crash(&mut rng), ledger, &mut rng, &story);
        }
        cuts += moments.iter().filter(|(moment, _)| moment.story.starts_with("Cut ")).count();
        rounds += 1;
    }
    // The room that the log takes ahead is given back by cutting it where it ends: among the rest, that is what is tried.
    assert!(cuts > 0 || rounds == 1, "no room was taken");
}

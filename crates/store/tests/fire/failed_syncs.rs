//! A sync that fails, loses data, and says from then on that all is well.

use super::crash::{any_crash, check_and_go_on};
use super::effort::{Effort, torture};
use super::ledger::Ledger;
use super::run::Run;
use super::simulated_disk::{FailingSync, Failure, Fault, Journals, SimulatedDisk, Span};

#[test]
fn a_failed_sync_that_takes_its_blocks_down_loses_nothing_acknowledged_after_it() {
    for round in Effort::new("syncs that fail, lie and take blocks down", 80) {
        let mut rng = round.rng();
        let disk = SimulatedDisk::new();
        disk.let_failing_syncs(FailingSync::Ruins);
        disk.use_journals(if rng.bool() { Journals::Early } else { Journals::Never });
        let mut run = Run::on(&disk, Ledger::default());
        run.create("a");
        (0..rng.usize(..6)).for_each(|_| run.append_sized("a", rng.usize(..3_000)));
        for _ in 0..rng.usize(1..3) {
            run.fail_next_sync();
            match rng.u8(..3) {
                0 => run.append_sized("a", rng.usize(..3_000)),
                1 => run.group("a", 3, rng.usize(..3_000)),
                _ => run.batch("a", &[rng.usize(..3_000), rng.usize(..3_000), 20]),
            }
        }
        // What the cache still had right is gone, as under memory pressure.
        if rng.bool() {
            disk.drop_caches();
        }
        let moments = run.record_moments();
        (0..2).for_each(|_| run.append_sized("a", rng.usize(..3_000)));
        disk.unwatch();
        let moments = std::mem::take(&mut *moments.lock().expect("no test panics here"));
        let few = if torture() { moments.len() } else { 3 };
        let offset = rng.usize(..moments.len());
        for (moment, ledger) in moments.iter().cycle().skip(offset).take(few) {
            let (how, disk) = any_crash(moment, &mut rng);
            check_and_go_on(&disk, ledger, &mut rng, &format!("{how}, {}", moment.story));
        }
    }
}

#[test]
fn whoever_comes_after_a_failed_sync_does_not_trust_the_file_though_its_writer_is_gone() {
    for round in Effort::new("syncs that fail before their writer ends", 60) {
        let mut rng = round.rng();
        let disk = SimulatedDisk::new();
        disk.let_failing_syncs(FailingSync::Spoils);
        disk.use_journals(if rng.u8(..4) > 0 { Journals::Early } else { Journals::Never });
        let mut run = Run::on(&disk, Ledger::default());
        run.create("a");
        (0..rng.usize(2..12)).for_each(|_| run.append_sized("a", rng.usize(..3_000)));
        // The disk is full: what was appended cannot be synced, and there is no room for another file.
        disk.set(Fault { failure: Failure::FailedSync, at: 0, span: Span::Once });
        disk.set(Fault { failure: Failure::NoMoreFiles, at: 0, span: Span::Lasting });
        // Too large for a journal, so the log itself is synced.
        run.append_in_vain("a", 8_000);
        let (ledger, moment) = (run.ledger().clone(), disk.moment("its writer ended"));
        check_and_go_on(&moment.after_death(), &ledger, &mut rng, &disk.struck());
    }
}

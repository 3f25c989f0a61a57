//! A crash at every call of a script: of the process, of the machine, and again while the store recovers.
//!
//! What is left after a call is what is left before the next one, so every call is crashed before and after.

use rethread_encrypted::MasterKey;

use super::crash::{any_crash, check, check_and_go_on, moments_of, moments_of_recovery};
use super::effort::{Effort, Round, torture};
use super::ledger::Ledger;
use super::run::Run;
use super::simulated_disk::{Journals, Moment};

/// About fifty operations, with everything that a store does.
fn script(run: &mut Run) {
    run.create("a");
    (0..3).for_each(|_| run.append("a"));
    run.append_and_rename("a", "one");
    run.batch("a", &[40, 3_000, 5_000, 60, 9_000, 200]);
    run.append_transcript("a");
    run.rename("a", "two");
    run.put_blob("blob");
    run.fork("a", 1, "b");
    run.append("b");
    run.group("b", 3, 3_000);
    run.append_transcript("a");
    run.remember("first");
    // More than a block, so that the next write into the last one does not bring all of it to the disk after all.
    run.fail_next_sync();
    run.append_sized("a", 9_000);
    run.append_sized("a", 2_500);
    run.drive("a");
    run.branch("a", 2);
    run.select("a", 3);
    run.fail_next_sync();
    run.batch("a", &[7_000, 2_000, 6_000]);
    run.delete("b");
    run.restore("b");
    run.list();
    run.reopen();
    run.append("a");
    run.damage("a");
    run.append("a");
    run.repair("a");
    run.append("b");
    run.materialize("b");
    run.create("c");
    run.append("c");
    run.append("c");
    run.fork("c", 0, "d");
    run.append("d");
    run.purge("c", &["d"]);
    run.remember("second");
    run.put_blob("blob");
    // So many that the disk is asked to sync all of them at once.
    run.put_blobs(&["other", "p", "q", "r", "s"]);
    run.transfer("a", "e");
    run.append("e");
    run.delete("d");
    run.purge("d", &[]);
    run.create("d");
    run.append("d");
    run.clear_away();
    run.put_blob("kept");
    run.refer_to("kept");
    run.delete("d");
    run.expire("d", &["blob", "other", "p", "q", "r", "s"]);
    run.reopen();
    run.append("e");
}

/// Returns every moment of the script, without journals and with them. One of a store that is encrypted has them.
fn moments(seed: u64, blank: &Ledger) -> Vec<(Moment, Ledger)> {
    let with = |journals| moments_of(script, journals, seed, blank.clone());
    let without = if blank.key.is_none() { with(Journals::Never) } else { Vec::new() };
    [without, with(Journals::Early)].concat()
}

/// Of a store that is encrypted.
fn sealed() -> Ledger {
    Ledger { key: Some(MasterKey::generate().expect("a key")), ..Ledger::default() }
}

/// How many legal states a crash of the machine leaves at each call. More of them are tried in more rounds: each has to end
/// in a time that can be waited for.
const STATES: usize = 3;

fn machine_crashes(round: Round, blank: &Ledger) {
    let mut rng = round.rng();
    for (number, (moment, ledger)) in moments(round.seed, blank).iter().enumerate() {
        for state in 0..STATES {
            let story = format!("power cut at call {number}, {}, state {state}", moment.story);
            let disk = moment.after_crash(&mut rng);
            match state == 0 {
                true => check_and_go_on(&disk, ledger, &mut rng, &story),
                false => drop(check(&disk, ledger, &mut rng, &story)),
            }
        }
    }
}

fn process_crashes(round: Round, blank: &Ledger) {
    let mut rng = round.rng();
    for (number, (moment, ledger)) in moments(round.seed, blank).iter().enumerate() {
        let story = format!("killed at call {number}, {}", moment.story);
        check_and_go_on(&moment.after_death(), ledger, &mut rng, &story);
    }
}

fn crashes_of_a_recovery(round: Round, moments: &[(Moment, Ledger)]) {
    let mut rng = round.rng();
    let number = rng.usize(..moments.len());
    let (moment, ledger) = &moments[number];
    let (how, disk) = any_crash(moment, &mut rng);
    let recovery = moments_of_recovery(&disk, ledger, &mut rng);
    let few = if torture() { recovery.len() } else { 30 };
    let offset = rng.usize(..recovery.len());
    for (second, (moment, ledger)) in recovery.iter().enumerate().cycle().skip(offset).take(few) {
        let (again, disk) = any_crash(moment, &mut rng);
        let story =
            format!("{how} at call {number}, {again} at call {second} of the recovery, {}", moment.story);
        check_and_go_on(&disk, ledger, &mut rng, &story);
    }
}

#[test]
fn a_crash_of_the_machine_at_any_call_keeps_every_promise() {
    for round in Effort::new("machine crashes at every call of a script", 1) {
        machine_crashes(round, &Ledger::default());
    }
}

#[test]
fn a_crash_of_the_process_at_any_call_keeps_every_promise() {
    for round in Effort::new("process crashes at every call of a script", 1) {
        process_crashes(round, &Ledger::default());
    }
}

#[test]
fn a_crash_during_recovery_from_a_crash_keeps_every_promise() {
    let moments = moments(1, &Ledger::default());
    for round in Effort::new("crashes at every call of a recovery", 8) {
        crashes_of_a_recovery(round, &moments);
    }
}

#[test]
fn a_crash_of_the_machine_at_any_call_keeps_every_promise_of_an_encrypted_store() {
    for round in Effort::new("machine crashes at every call of a script, encrypted", 1) {
        machine_crashes(round, &sealed());
    }
}

#[test]
fn a_crash_of_the_process_at_any_call_keeps_every_promise_of_an_encrypted_store() {
    for round in Effort::new("process crashes at every call of a script, encrypted", 1) {
        process_crashes(round, &sealed());
    }
}

#[test]
fn a_crash_during_recovery_from_a_crash_keeps_every_promise_of_an_encrypted_store() {
    let moments = moments(1, &sealed());
    for round in Effort::new("crashes at every call of a recovery, encrypted", 4) {
        crashes_of_a_recovery(round, &moments);
    }
}

// A repair that a power cut interrupted left later segments without the second one. Whoever came next began another
// segment after them, where no reader looked, and said that its records were durable.
#[test]
fn a_power_cut_at_any_call_of_a_repair_keeps_every_promise() {
    for round in Effort::new("power cuts at every call of a repair", 2) {
        let mut rng = round.rng();
        let journals = if rng.bool() { Journals::Early } else { Journals::Never };
        let script = |run: &mut Run| {
            run.create("a");
            run.fail_next_sync();
            run.append_sized("a", 9_000);
            run.fail_next_sync();
            run.append_sized("a", 9_000);
            run.damage("a");
            run.append("a");
            run.repair("a");
        };
        let moments = moments_of(script, journals, round.seed, Ledger::default());
        for (moment, ledger) in moments.iter().rev().take(40) {
            for _ in 0..4 {
                let disk = moment.after_crash(&mut rng);
                let there: Vec<String> =
                    disk.paths().into_iter().filter(|path| path.contains("/a/messages")).collect();
                let story = format!("power cut at {}, which left {there:?}", moment.story);
                check_and_go_on(&disk, ledger, &mut rng, &story);
            }
        }
    }
}

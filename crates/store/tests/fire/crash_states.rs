//! A crash at every call of a script, of the process and of the machine, and again after that.

use fastrand::Rng;

use super::aftermath::{Aftermath, Scope, Survivors};
use super::effort::{Effort, torture};
use super::ledger::Ledger;
use super::run::{Run, store_on};
use super::simulated_disk::{Moment, SimulatedDisk};

/// About forty operations, with everything that a store does.
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
    run.fail_next_sync();
    run.append("a");
    run.append_sized("a", 2_500);
    run.drive("a");
    run.branch("a", 2);
    run.select("a", 3);
    run.fail_next_sync();
    run.batch("a", &[40, 2_000, 6_000]);
    run.delete("b");
    run.restore("b");
    run.list();
    run.reopen();
    run.append("a");
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
    run.put_blob("other");
    run.transfer("a", "e");
    run.append("e");
    run.delete("d");
    run.purge("d", &[]);
    run.create("d");
    run.append("d");
    run.clear_away();
    run.reopen();
    run.append("e");
}

/// Runs the script once and returns every moment of it, the one after its end included.
fn moments_of(script: impl Fn(&mut Run), seed: u64) -> Vec<(Moment, Ledger)> {
    let disk = SimulatedDisk::new();
    disk.seed(seed);
    let mut run = Run::on(&disk, Ledger::default());
    let moments = run.record_moments();
    script(&mut run);
    disk.unwatch();
    let mut moments = std::mem::take(&mut *moments.lock().expect("no test panics here"));
    moments.push((disk.moment("the end"), run.ledger().clone()));
    moments
}

fn check(disk: &SimulatedDisk, ledger: &Ledger, story: &str) -> Survivors {
    let store = store_on(disk);
    let scope = if torture() { Scope::All } else { Scope::Focus(6) };
    let found = Aftermath { store: &store, ledger, scope }.check();
    found.unwrap_or_else(|broken| panic!("{story}: {broken}"))
}

/// Goes on after a crash, kills the process or cuts the power right after that, and looks again.
fn check_and_go_on(disk: &SimulatedDisk, ledger: &Ledger, rng: &mut Rng, story: &str) {
    let found = check(disk, ledger, story);
    let mut run = Run::on(disk, ledger.clone());
    run.go_on(&found, rng);
    let (ledger, moment) = (run.ledger().clone(), disk.moment("went on"));
    let (after, how) = match rng.u8(..4) {
        0 => (moment.after_death(), "was killed"),
        _ => (moment.after_crash(rng), "lost power"),
    };
    check(&after, &ledger, &format!("{story}; went on and {how}"));
}

#[test]
fn a_crash_of_the_machine_at_any_call_keeps_every_promise() {
    let states = if torture() { 30 } else { 3 };
    for round in Effort::new("machine crashes at every call of a script", 1) {
        let mut rng = round.rng();
        for (number, (moment, ledger)) in moments_of(script, round.seed).iter().enumerate() {
            for state in 0..states {
                let story = format!("power cut at call {number}, {}, state {state}", moment.story);
                let disk = moment.after_crash(&mut rng);
                match torture() || state == 0 {
                    true => check_and_go_on(&disk, ledger, &mut rng, &story),
                    false => drop(check(&disk, ledger, &story)),
                }
            }
        }
    }
}

#[test]
fn a_crash_of_the_process_at_any_call_keeps_every_promise() {
    for round in Effort::new("process crashes at every call of a script", 1) {
        let mut rng = round.rng();
        for (number, (moment, ledger)) in moments_of(script, round.seed).iter().enumerate() {
            let story = format!("killed at call {number}, {}", moment.story);
            check_and_go_on(&moment.after_death(), ledger, &mut rng, &story);
        }
    }
}

//! Crashes, what they leave, and what the next process makes of it.

use fastrand::Rng;

use super::aftermath::{Aftermath, Scope, Survivors};
use super::effort::torture;
use super::ledger::Ledger;
use super::run::{Run, store_on};
use super::simulated_disk::{Journals, Moment, SimulatedDisk};

/// Runs the script once and returns every moment of it, the one after its end included.
pub(crate) fn moments_of(
    script: impl Fn(&mut Run),
    journals: Journals,
    seed: u64,
    blank: Ledger,
) -> Vec<(Moment, Ledger)> {
    let disk = SimulatedDisk::new();
    disk.use_journals(journals);
    disk.seed(seed);
    let mut run = Run::on(&disk, blank);
    let moments = run.record_moments();
    script(&mut run);
    disk.unwatch();
    let mut moments = std::mem::take(&mut *moments.lock().expect("no test panics here"));
    moments.push((disk.moment("the end"), run.ledger().clone()));
    moments
}

/// Opens the store as the next process does, and holds what it finds against what was promised.
pub(crate) fn check(disk: &SimulatedDisk, ledger: &Ledger, rng: &mut Rng, story: &str) -> Survivors {
    let store = store_on(disk, ledger.key.as_ref());
    let scope = if torture() { Scope::All } else { Scope::Focus { others: 6, seed: rng.u64(..) } };
    let found = Aftermath { store: &store, ledger, scope }.check();
    found.unwrap_or_else(|broken| panic!("{story}: {broken}"))
}

/// Goes on after a crash, kills the process or cuts the power right after that, and looks again.
pub(crate) fn check_and_go_on(disk: &SimulatedDisk, ledger: &Ledger, rng: &mut Rng, story: &str) {
    let found = check(disk, ledger, rng, story);
    let mut run = Run::on(disk, ledger.clone());
    run.go_on(&found, rng);
    let (ledger, moment) = (run.ledger().clone(), disk.moment("went on"));
    let (how, after) = any_crash(&moment, rng);
    check(&after, &ledger, rng, &format!("{story}; went on, {how}"));
}

/// Recovers from a crash and goes on, and returns every moment of that.
pub(crate) fn moments_of_recovery(
    disk: &SimulatedDisk,
    ledger: &Ledger,
    rng: &mut Rng,
) -> Vec<(Moment, Ledger)> {
    let mut run = Run::on(disk, ledger.clone());
    let moments = run.record_moments();
    let found = check(disk, ledger, rng, "a first crash");
    run.go_on(&found, rng);
    disk.unwatch();
    let mut moments = std::mem::take(&mut *moments.lock().expect("no test panics here"));
    moments.push((disk.moment("the end"), run.ledger().clone()));
    moments
}

/// Kills the processes or, more often, cuts the power.
pub(crate) fn any_crash(moment: &Moment, rng: &mut Rng) -> (&'static str, SimulatedDisk) {
    match rng.u8(..4) {
        0 => ("killed", moment.after_death()),
        _ => ("power cut", moment.after_crash(rng)),
    }
}

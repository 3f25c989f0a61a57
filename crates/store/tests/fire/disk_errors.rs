//! Every error that a disk gives, at every call that can have it, once and until it is seen.

use super::crash::{check, check_and_go_on};
use super::effort::{Effort, torture};
use super::ledger::Ledger;
use super::run::Run;
use super::simulated_disk::{Failure, Fault, SimulatedDisk, Span};

/// There are some twenty times as many; `make torture` has all of them within minutes.
const IN_MAKE_TEST: u64 = 300;
const A_PRIME: u64 = 7_919;

const FAILURES: [Failure; 7] = [
    Failure::Io,
    Failure::NoSpace,
    Failure::ReadOnly,
    Failure::TooManyFiles,
    Failure::Denied,
    Failure::ShortWrite,
    Failure::FailedSync,
];

/// What a store does most, and once each what it does seldom.
fn script(run: &mut Run) {
    run.create("a");
    run.append("a");
    run.append_and_rename("a", "one");
    run.fail_next_sync();
    run.batch("a", &[40, 3_000, 5_000]);
    run.append("a");
    run.fork("a", 1, "b");
    run.rename("b", "two");
    run.append_transcript("a");
    run.drive("b");
    run.put_blob("blob");
    run.remember("first");
    run.list();
    run.reopen();
    run.append("a");
    run.delete("a");
    run.purge("a", &["b"]);
    run.clear_away();
    run.transfer("b", "c");
    run.append("c");
}

/// Runs the script with a fault. Returns how many calls it could have struck, and the run.
fn run_with(fault: Fault, seed: u64) -> (u64, Run) {
    let disk = SimulatedDisk::new();
    disk.seed(seed);
    let mut run = Run::on(&disk, Ledger::default());
    run.under_fault = true;
    disk.set(fault);
    script(&mut run);
    (disk.clear(), run)
}

/// Every fault that the script can meet.
fn faults() -> Vec<Fault> {
    let spans = [Span::Once, Span::Lasting];
    let of = |failure: Failure| {
        let (calls, _) = run_with(Fault { failure, at: u64::MAX - 1, span: Span::Once }, 1);
        spans.into_iter().flat_map(move |span| (0..calls).map(move |at| Fault { failure, at, span }))
    };
    FAILURES.into_iter().flat_map(of).collect()
}

#[test]
fn no_error_of_the_disk_goes_unheard_or_loses_what_was_acknowledged() {
    let faults = faults();
    for round in Effort::new("errors at every call of a script", IN_MAKE_TEST) {
        let mut rng = round.rng();
        // Far apart from each other, and each once before any comes again.
        let fault = faults[(round.number.wrapping_mul(A_PRIME) % faults.len() as u64) as usize];
        let story = format!("{fault:?} of {}", faults.len());
        let seen = std::panic::catch_unwind(|| run_with(fault, round.seed));
        let (_, run) = seen.unwrap_or_else(|_| panic!("{story}"));
        run.store.close().unwrap_or_else(|error| panic!("{story}: close: {error}"));
        let moment = run.disk.moment("the end");
        let (disk, ledger) = (moment.after_crash(&mut rng), run.ledger().clone());
        match torture() {
            true => check_and_go_on(&disk, &ledger, &mut rng, &story),
            false => drop(check(&disk, &ledger, &mut rng, &story)),
        }
    }
}

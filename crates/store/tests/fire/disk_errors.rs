//! Every error that a disk gives, at every call that can have it, once and until it is seen.

use super::crash::{check, check_and_go_on};
use super::effort::{Effort, torture};
use super::ledger::Ledger;
use super::run::Run;
use super::simulated_disk::{Call, Failure, Fault, Journals, SimulatedDisk, Span};

/// There are far more of the others; `make torture` has all of them within minutes.
const OTHERS_IN_MAKE_TEST: usize = 200;
const A_PRIME: usize = 7_919;

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
    run.group("a", 3, 1_500);
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

/// Runs the script with a fault. Returns the calls it could have struck, and the run.
fn run_with((journals, fault): (Journals, Fault), seed: u64) -> (Vec<Call>, Run) {
    let disk = SimulatedDisk::new();
    disk.use_journals(journals);
    disk.seed(seed);
    let mut run = Run::on(&disk, Ledger::default());
    run.under_fault = true;
    disk.set(fault);
    script(&mut run);
    (disk.clear(), run)
}

/// Returns every fault that the script can meet: those that leave part of a write, or that lose one, first.
fn faults() -> (usize, Vec<(Journals, Fault)>) {
    let (mut first, mut others) = (Vec::new(), Vec::new());
    let both = [Journals::Never, Journals::Early];
    for (failure, journals) in
        FAILURES.into_iter().flat_map(|failure| both.map(|journals| (failure, journals)))
    {
        let (calls, _) = run_with((journals, Fault { failure, at: u64::MAX, span: Span::Once }), 1);
        for (at, call) in (0..).zip(calls) {
            let harms = matches!(failure, Failure::NoSpace | Failure::ShortWrite | Failure::FailedSync);
            let foremost = harms && matches!(call, Call::Append | Call::Write | Call::Sync);
            let faults = if foremost { &mut first } else { &mut others };
            faults.extend([Span::Once, Span::Lasting].map(|span| (journals, Fault { failure, at, span })));
        }
    }
    // Far apart from each other, so that the first of them are a sample.
    let count = others.len();
    let others = (0..count).map(|number| others[number * A_PRIME % count]);
    (first.len(), first.iter().copied().chain(others).collect())
}

#[test]
fn no_error_of_the_disk_goes_unheard_or_loses_what_was_acknowledged() {
    let (first, faults) = faults();
    let rounds = first + OTHERS_IN_MAKE_TEST;
    for round in Effort::new("errors at every call of a script", rounds as u64) {
        let mut rng = round.rng();
        let fault = faults[round.number as usize % faults.len()];
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

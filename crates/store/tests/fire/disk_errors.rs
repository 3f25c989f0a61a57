//! Every error that a disk gives, at every call that can have it, once and for good.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use super::crash::{check, check_and_go_on};
use super::effort::{Effort, Round, torture};
use super::ledger::Ledger;
use super::run::{GaveUp, Run};
use super::side_by_side::side_by_side;
use super::simulated_disk::{Call, Failure, Fault, Journals, Moment, SimulatedDisk, Span};

const FAILURES: [Failure; 7] = [
    Failure::Io,
    Failure::NoSpace,
    Failure::ReadOnly,
    Failure::TooManyFiles,
    Failure::Denied,
    Failure::ShortWrite,
    Failure::FailedSync,
];

/// More than forty operations, with everything that a store does, in parts that are a process each: so a fault costs
/// one part and not all of them, and there are thousands of faults.
const SCRIPT: [fn(&mut Run); 11] = [
    |run| {
        run.create("a");
        run.append("a");
        run.append("a");
        run.append_and_rename("a", "one");
    },
    |run| {
        run.append_transcript("a");
        run.append("a");
        run.fail_next_sync();
        run.batch("a", &[40, 3_000, 5_000]);
    },
    |run| {
        run.group("a", 3, 1_500);
        run.append_sized("a", 2_500);
        run.append("a");
        run.append_transcript("a");
    },
    |run| {
        run.fork("a", 1, "b");
        run.rename("b", "two");
        run.append("b");
    },
    |run| {
        run.drive("b");
        run.branch("a", 1);
        run.select("a", 2);
        run.append("a");
    },
    |run| {
        run.put_blob("blob");
        run.remember("first");
        run.list();
        run.remember("second");
        run.put_blob("blob");
    },
    |run| {
        run.delete("b");
        run.restore("b");
        run.append("b");
    },
    |run| {
        run.materialize("b");
        run.append("b");
        run.create("c");
        run.append("c");
    },
    |run| {
        run.fork("c", 0, "d");
        run.append("d");
        run.purge("c", &["d"]);
    },
    |run| {
        run.transfer("b", "e");
        run.append("e");
        run.rename("e", "three");
        run.list();
    },
    |run| {
        run.delete("d");
        run.clear_away();
        run.expire("d", &["blob"]);
        run.append("a");
    },
];

/// What is there when a part of the script begins.
type Start = (Moment, Ledger);

/// A fault in a part of the script.
#[derive(Clone, Copy, Debug)]
struct Case {
    journals: Journals,
    part: usize,
    fault: Fault,
}

impl Case {
    /// Returns whether this fault is what a call failed with.
    fn is_what(&self, struck: &str) -> bool {
        struck.starts_with(&format!("Failed({:?})", self.fault.failure))
    }
}

/// Runs the script on a disk that is well. Returns where each of its parts starts.
fn starts(journals: Journals) -> Vec<Start> {
    let (disk, mut ledger) = (SimulatedDisk::new(), Ledger::default());
    disk.use_journals(journals);
    let mut starts = Vec::new();
    for part in SCRIPT {
        starts.push((disk.moment("a part begins"), ledger.clone()));
        let mut run = Run::on(&disk, ledger);
        // One of its faults is a part of the script.
        run.under_fault = true;
        part(&mut run);
        run.close();
        ledger = run.ledger().clone();
    }
    starts
}

/// A part of the script that is over.
struct Ended {
    run: Run,
    /// The last call that failed while it was at work.
    struck: String,
    /// The calls that the fault concerned.
    calls: Vec<(Call, PathBuf)>,
}

/// Runs a part of the script with a fault, in a process that has done so many of the parts before it.
fn run_with(starts: &[Start], case: Case, before: usize, seed: u64) -> Ended {
    let first = case.part.saturating_sub(before);
    let (moment, ledger) = &starts[first];
    let disk = moment.after_death();
    disk.seed(seed);
    let mut run = Run::under_fault(&disk, ledger.clone(), case.fault.span);
    // Those before it have a disk that is well.
    run.for_good = false;
    SCRIPT[first..case.part].iter().for_each(|part| part(&mut run));
    run.for_good = case.fault.span == Span::Lasting;
    run.errors = 0;
    disk.set(case.fault);
    until_it_gives_up(&mut run, SCRIPT[case.part]);
    // The script has a fault of its own. Should that be the only one so far, the next call could meet this one at its very
    // end, where it is done without.
    let has_struck = case.is_what(&disk.struck());
    // Whatever could be done without the disk, this cannot.
    if run.for_good && has_struck {
        until_it_gives_up(&mut run, |run| run.create("last"));
    }
    // Closing brings caches up to date, and says nothing if it cannot. Nor does a thread whose turn comes only now, when
    // nobody asks for anything any more.
    let struck = if has_struck { disk.struck() } else { String::new() };
    match run.for_good {
        // It must come to its end on a disk that is still as bad.
        true => drop(run.store.close()),
        false => run.close(),
    }
    Ended { struck, calls: disk.clear(), run }
}

fn until_it_gives_up(run: &mut Run, part: fn(&mut Run)) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| part(run))) {
        panic.downcast::<GaveUp>().map_or_else(|panic| resume_unwind(panic), drop);
    }
}

/// Returns every fault that the script can meet, and how many of them make a difference: first those at calls that
/// change something, and at the first of those that look at the same thing in the same way.
fn cases(starts: &[(Journals, Vec<Start>)]) -> (usize, Vec<Case>) {
    let (mut cases, mut others) = (Vec::new(), Vec::new());
    for (journals, starts) in starts {
        for (part, failure) in (0..SCRIPT.len()).flat_map(|part| FAILURES.map(|failure| (part, failure))) {
            let case = |at, span| Case { journals: *journals, part, fault: Fault { failure, at, span } };
            let ended = run_with(starts, case(u64::MAX, Span::Once), 0, 1);
            let mut known = HashSet::new();
            for (at, (call, path)) in (0..).zip(ended.calls) {
                let counts = call.changes() || known.insert((call, path));
                let list = if counts { &mut cases } else { &mut others };
                list.extend([Span::Once, Span::Lasting].map(|span| case(at, span)));
            }
        }
    }
    let count = cases.len();
    cases.append(&mut others);
    (count, cases)
}

/// Returns whether somebody must have heard of it. Caches are nobody's loss, a journal that fails is done without, the
/// rest of a write is written, and what could not be synced goes to the next segment.
fn must_be_heard(fault: Fault, struck: &str) -> bool {
    let strikes_a_log = || struck.contains(" at Append ") && struck.ends_with(".jsonl");
    match fault.span {
        Span::Lasting => !matches!(fault.failure, Failure::ShortWrite | Failure::FailedSync),
        Span::Once => strikes_a_log() && matches!(fault.failure, Failure::Io | Failure::ReadOnly),
    }
}

fn holds(round: Round, starts: &[Start], case: Case, story: &str) {
    let mut rng = round.rng();
    // A process of its own shows most; in torture it has a past.
    let before = if torture() { rng.usize(..=case.part) } else { 0 };
    let seen = catch_unwind(|| run_with(starts, case, before, round.seed));
    let Ended { run, struck, .. } = seen.unwrap_or_else(|_| panic!("{story}"));
    if case.is_what(&struck) && must_be_heard(case.fault, &struck) {
        assert!(run.heard_of_it(), "{story}: {struck}, and nobody heard of it");
    }
    let (ledger, moment) = (run.ledger().clone(), run.disk.moment("the end"));
    // What it still tries goes on beside us otherwise.
    run.disk.die();
    let disk = moment.after_crash(&mut rng);
    match torture() {
        true => check_and_go_on(&disk, &ledger, &mut rng, story),
        false => drop(check(&disk, &ledger, &mut rng, story)),
    }
}

#[test]
fn no_error_of_the_disk_goes_unheard_or_loses_what_was_acknowledged() {
    let starts = [Journals::Never, Journals::Early].map(|journals| (journals, starts(journals)));
    let (first, cases) = cases(&starts);
    // All of them in torture, if there is time.
    let count = if torture() { cases.len() } else { first } as u64;
    side_by_side(Effort::new("errors at every call of a script", first as u64), 8, |round| {
        let case = cases[round.turn(count) as usize];
        let (_, starts) = starts.iter().find(|(journals, _)| *journals == case.journals).expect("both");
        holds(round, starts, case, &format!("{case:?} of {count}"));
    });
}

//! Every system call of every command, failing once or never made: the promises hold, and the next command works.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::ledger::{self, Run};
use super::side_by_side::side_by_side;
use super::strace;
use super::template::Template;
use super::world::{Outcome, Verb, World};
use crate::kit::Home;

/// System calls that do the same, and what may become of them.
struct Calls {
    names: &'static str,
    faults: &'static [&'static str],
    /// A round tampers with each so many-th call only.
    every: usize,
    on: On,
}

/// Where a call goes wrong.
#[derive(Clone, Copy, Debug)]
enum On {
    Anything,
    /// The loader makes such calls as well, and a program that cannot be loaded proves nothing.
    TheStore,
    /// One path beneath the store.
    One(&'static str),
}

const KILL: &str = "signal=KILL";
const WRITES: &str = "write,writev,pwrite64,pwritev";
/// The file that new records go to: a failed sync has left it as the second one.
const LOG: &str = "sessions/s/messages.1.jsonl";
const CALLS: [Calls; 14] = [
    Calls {
        names: "fsync,fdatasync,syncfs",
        faults: &[KILL, "error=EIO", "error=ENOSPC"],
        every: 1,
        on: On::Anything,
    },
    Calls { names: WRITES, faults: &[KILL, "error=EIO", "error=ENOSPC"], every: 2, on: On::Anything },
    // Each write that brings records, however the writer may make it.
    Calls { names: WRITES, faults: &[KILL, "error=EIO", "error=ENOSPC"], every: 1, on: On::One(LOG) },
    Calls { names: "rename,renameat,renameat2", faults: &[KILL, "error=EIO"], every: 1, on: On::Anything },
    Calls {
        names: "mkdir,mkdirat",
        faults: &[KILL, "error=EACCES", "error=ENOSPC"],
        every: 1,
        on: On::Anything,
    },
    Calls { names: "unlink,unlinkat,rmdir", faults: &[KILL, "error=EACCES"], every: 1, on: On::Anything },
    Calls { names: "ftruncate,fallocate", faults: &[KILL, "error=EIO"], every: 1, on: On::Anything },
    Calls { names: "fchmod,utimensat", faults: &[KILL, "error=EPERM"], every: 1, on: On::Anything },
    Calls {
        names: "openat,openat2",
        faults: &[KILL, "error=EMFILE", "error=EACCES"],
        every: 7,
        on: On::TheStore,
    },
    Calls { names: "pread64", faults: &["error=EIO"], every: 9, on: On::TheStore },
    Calls { names: "statx,getdents64,flock", faults: &["error=EIO"], every: 9, on: On::Anything },
    // A file that replaces another one, and cannot be looked at, must not be taken for absent.
    Calls { names: "statx", faults: &["error=EIO"], every: 1, on: On::One(LOG) },
    Calls { names: "openat", faults: &["error=EMFILE"], every: 1, on: On::One(LOG) },
    Calls { names: "getdents64", faults: &["error=EIO"], every: 1, on: On::One("sessions/s") },
];

/// What is done, to which session, and out of which other one.
const SCRIPT: [(Verb, &str, &str); 11] = [
    (Verb::New, "n", ""),
    (Verb::Fork, "g", "s"),
    (Verb::Archive, "s", ""),
    (Verb::Delete, "s", ""),
    (Verb::Restore, "t", ""),
    (Verb::Materialize, "f", ""),
    (Verb::Purge, "s", ""),
    (Verb::Gc, "t", ""),
    (Verb::Import, "i", "s"),
    (Verb::Export, "s", ""),
    (Verb::Append, "s", ""),
];

/// One command, and one way in which one kind of its calls goes wrong.
#[derive(Clone, Copy, Debug)]
struct Case {
    verb: Verb,
    session: &'static str,
    parent: &'static str,
    calls: &'static str,
    fault: &'static str,
    every: usize,
    on: On,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for Calls { names, faults, every, on } in CALLS {
        for fault in faults {
            let of = |(verb, session, parent)| Case { verb, session, parent, calls: names, fault, every, on };
            cases.extend(SCRIPT.map(of));
        }
    }
    cases
}

#[test]
fn every_system_call_may_fail_or_be_the_last_one() {
    let Some(template) = Template::new() else { return };
    let cases = cases();
    let effort = Effort::new("a system call fails or is the last", cases.len() as u64);
    side_by_side(effort, 8, |round| {
        let case = cases[round.turn(cases.len() as u64) as usize];
        // Those between are other rounds' turn.
        let first = 1 + round.rng().usize(..case.every);
        let mut n = first;
        while tried(&template, case, n) {
            n += case.every;
        }
        // A call that the writer no longer makes would be tried for ever, and nothing with it.
        let must = case.calls == WRITES && matches!(case.on, On::One(_)) && case.verb == Verb::Append;
        assert!(n > first || !must, "{case:?}: nothing was written to the log");
    });
}

/// Has the n-th such call of each thread go wrong. Returns whether there was one.
fn tried(template: &Template, case: Case, n: usize) -> bool {
    let (home, mut world) = template.copy();
    let log = home.path().join("strace.log");
    let fault = format!("{}:{}:when={n}", case.calls, case.fault);
    let paths = match case.on {
        On::Anything => Vec::new(),
        On::TheStore => paths(&home, case.session),
        On::One(path) => vec![home.store().join(path)],
    };
    let words = case.verb.words(case.session, case.parent);
    let mut command = strace::through(&home, &fault, log.to_str().unwrap(), &paths, &words);
    world.prepare(&home, case.verb, case.session, case.parent);
    let (code, err) = if case.verb == Verb::Append {
        // One after the other, and enough of them for the log to get its journal.
        let ended = Appender::start(command, Run::new("faulty", [100; 12]), Pace::Lockstep).end();
        world.add(case.session, ended.run);
        (ended.code, ended.err)
    } else {
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let told = format!("{case:?}, n = {n}: {code:?} {err}");
    match code {
        Some(0) => assert!(!err.contains("error: "), "{told}"),
        // What could be done only in part is told by warnings.
        Some(1) if case.calls != WRITES => {
            assert!(err.contains("error: ") || err.contains("warning: "), "{told}");
        }
        // The message may be what could not be written.
        Some(1) => {}
        _ => assert_eq!((code, case.fault), (None, KILL), "{told}"),
    }
    let outcome = if code == Some(0) { Outcome::Done } else { Outcome::Unsure };
    world.conclude(case.verb, case.session, outcome);
    world.broken(&home).unwrap_or_else(|broken| panic!("{broken}: {told}"));
    check_export(&home, template, outcome, case.verb == Verb::Export, &told);
    goes_on(&home, &mut world, case.session, &told);
    code.is_none() || fs::read_to_string(log).unwrap().contains("(INJECTED)")
}

fn paths(home: &Home, session: &str) -> Vec<PathBuf> {
    let made = home.store().join("sessions").join(session);
    let names = ["", "lock", "messages.jsonl", "messages.journal", "messages.ids", "metadata.json"];
    let new = names.map(|name| made.join(name));
    strace::everything_in(&home.store()).into_iter().chain(new).collect()
}

/// What was written to a file is all there, or what was there before still is.
fn check_export(home: &Home, template: &Template, outcome: Outcome, exports: bool, told: &str) {
    // The first line has the time in it, and the last one a sum over it.
    let records = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter(|line| line.starts_with(r#"{"log":"#)).map(str::to_owned).collect::<Vec<_>>()
    };
    let (new, old) = (records(&home.path().join("bundle")), records(&template.path().join("out")));
    let found = records(&home.path().join("out"));
    assert!(found == new || found == old, "{told}");
    assert!(!exports || outcome == Outcome::Unsure || found == new, "{told}");
}

/// Whatever happened, the session can be appended to; if it is gone, its neighbour can.
fn goes_on(home: &Home, world: &mut World, session: &str, told: &str) {
    let open = world.open();
    let session = open.iter().find(|open| *open == session).unwrap_or(&open[0]);
    let run = Run::new("afterwards", [10]);
    let ended = Appender::start(home.command(&["append", session]), run, Pace::Flood).end();
    assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 1), "{}: {told}", ended.err);
    world.add(session, ended.run);
    let broken = world.ledger(session).broken(&ledger::stored(home, session));
    broken.unwrap_or_else(|broken| panic!("afterwards {broken}: {told}"));
}

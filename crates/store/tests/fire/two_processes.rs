//! Two processes on one session, of which one is killed in the middle of something and the other goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use rethread_store::{Entry, NewSession, Session, Store, Ticket};

use super::aftermath::{Aftermath, Scope};
use super::effort::Effort;
use super::ledger::Ledger;
use super::run::store_on;
use super::simulated_disk::{Failure, Fault, Journals, Moment, SimulatedDisk, Span};
use crate::kit::{run, session_id};

/// One process, and what it asked for.
struct Process {
    disk: SimulatedDisk,
    store: Store,
    name: &'static str,
    accepted: Vec<String>,
}

/// How many of its entries each process was told are durable, and the machine at that time.
#[derive(Clone, Default)]
struct Promised([usize; 2]);

impl Process {
    fn on(disk: &SimulatedDisk, name: &'static str) -> Self {
        let disk = disk.other_process();
        Self { store: store_on(&disk, None), disk, name, accepted: Vec::new() }
    }

    fn session(&self) -> Session {
        run(self.store.open(&session_id("s"))).expect("the session is there")
    }

    /// Accepts an entry; `a1`, `a2`, … are the first process's.
    fn append(&mut self, session: &Session, rng: &mut Rng) -> Ticket {
        let id = format!("{}{}", self.name, self.accepted.len() + 1);
        let size = 1 << rng.u32(3..14);
        let json = format!(r#"{{"uuid":"{id}","x":"{}"}}"#, "x".repeat(size));
        self.accepted.push(id);
        run(session.append(Entry::parse(json).expect("an entry"))).expect("the queue takes it")
    }

    /// Waits for an acknowledgement, unless the process is dead.
    fn wait(&self, ticket: &Ticket) -> bool {
        loop {
            let dead = self.disk.is_dead();
            match ticket.wait_for(Duration::from_millis(2)) {
                Some(answer) => return answer.is_ok(),
                None if dead => return false,
                None => {}
            }
        }
    }
}

/// Returns the entries of the session, in the order of the log.
fn entries(disk: &SimulatedDisk, story: &str) -> Vec<String> {
    let store = store_on(disk, None);
    let ledger = Ledger::default();
    let found = Aftermath { store: &store, ledger: &ledger, scope: Scope::All };
    let records = found.records("s").unwrap_or_else(|broken| panic!("{story}: {broken}"));
    records.into_iter().filter(|what| !what.starts_with("note:")).collect()
}

/// Each process's own entries must be a prefix of what it had asked for, with everything it was promised.
fn check(disk: &SimulatedDisk, processes: &[(&str, &[String], usize)], story: &str) {
    let found = entries(disk, story);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "{story}: twice in {found:?}");
    for (name, accepted, promised) in processes {
        let own: Vec<&String> = found.iter().filter(|id| id.starts_with(name)).collect();
        let prefix = own.iter().zip(*accepted).all(|(found, accepted)| *found == accepted);
        assert!(prefix && own.len() <= accepted.len(), "{story}: {found:?}, accepted {accepted:?}");
        assert!(own.len() >= *promised, "{story}: {promised} of {accepted:?} were promised, found {found:?}");
    }
}

/// The disk at some moment, and how much of each writer's was acknowledged then.
type Seen = (Moment, [usize; 2]);

#[test]
fn what_a_killed_process_left_does_not_harm_the_one_that_goes_on() {
    for round in Effort::new("a process killed beside another, then a power cut", 120) {
        let mut rng = round.rng();
        let disk = SimulatedDisk::new();
        disk.seed(round.seed);
        disk.use_journals(if rng.bool() { Journals::Early } else { Journals::Never });
        let (mut a, mut b) = (Process::on(&disk, "a"), Process::on(&disk, "b"));
        run(a.store.create(NewSession::default().id(session_id("s")))).expect("a session");
        let promised = Arc::new(Mutex::new(Promised::default()));
        let moments: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (kept, told) = (moments.clone(), promised.clone());
        disk.watch(move |moment| {
            let told = told.lock().expect("no test panics here").0;
            kept.lock().expect("no test panics here").push((moment, told));
        });
        let (ours, theirs) = (a.session(), b.session());
        for _ in 0..rng.usize(2..6) {
            let ticket = a.append(&ours, &mut rng);
            promised.lock().expect("no test panics here").0[0] += usize::from(a.wait(&ticket));
            let ticket = b.append(&theirs, &mut rng);
            promised.lock().expect("no test panics here").0[1] += usize::from(b.wait(&ticket));
        }
        // The first one dies at some call, perhaps after a sync of its own has failed and lied.
        if rng.bool() {
            a.disk.set(Fault { failure: Failure::FailedSync, at: rng.u64(..2), span: Span::Once });
        }
        a.disk.set(Fault { failure: Failure::Death, at: rng.u64(..25), span: Span::Lasting });
        for _ in 0..rng.usize(1..4) {
            let ticket = a.append(&ours, &mut rng);
            promised.lock().expect("no test panics here").0[0] += usize::from(a.wait(&ticket));
        }
        a.disk.die();
        for _ in 0..rng.usize(1..4) {
            let ticket = b.append(&theirs, &mut rng);
            promised.lock().expect("no test panics here").0[1] += usize::from(b.wait(&ticket));
            if rng.u8(..4) == 0 {
                disk.drop_caches();
            }
        }
        disk.unwatch();
        let mut moments = std::mem::take(&mut *moments.lock().expect("no test panics here"));
        moments.push((disk.moment("the end"), promised.lock().expect("no test panics here").0));
        for (number, (moment, told)) in moments.iter().enumerate().rev().take(30) {
            let story = format!("power cut at call {number} of {}, {}", moments.len(), moment.story);
            let processes = [("a", &a.accepted[..], told[0]), ("b", &b.accepted[..], told[1])];
            check(&moment.after_crash(&mut rng), &processes, &story);
        }
    }
}

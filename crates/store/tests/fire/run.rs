//! A run of operations on a simulated disk, with a ledger of what was asked for and what was promised.

mod contents;
mod lifecycle;

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_channel::Receiver;
use rethread_encrypted::{EncryptedBackend, MasterKey};
use rethread_store::backend::Durability;
use rethread_store::{Entry, Error, Event, FileBackend, NewSession, Options, Result, Session, Store, Ticket};

use super::ledger::{Account, Ledger, SessionState};
use super::simulated_disk::{Failure, Fault, Journals, Moment, SimulatedDisk, Span};
use crate::kit::{run, session_id};

/// How long a store that is closed may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a call is made again after an error that the disk was told to give.
const TRIES: usize = 4;
/// The same, on a disk that stays as it is.
const TRIES_IN_VAIN: usize = 2;

/// Ends a run whose disk does not get well again.
#[derive(Debug)]
pub(crate) struct GaveUp;

/// A run of operations.
pub(crate) struct Run {
    pub(crate) disk: SimulatedDisk,
    pub(crate) store: Store,
    ledger: Arc<Mutex<Ledger>>,
    /// What an acknowledgement means; less than synced, only a flush promises anything.
    durability: Durability,
    /// Errors are expected: the disk was told to fail.
    pub(crate) under_fault: bool,
    /// The disk stays as it is after an error, so the run ends with [`GaveUp`] where it can do no more.
    pub(crate) for_good: bool,
    /// How many errors were seen, returned or in `health`.
    pub(crate) errors: usize,
    /// What the store says by itself.
    events: Receiver<Event>,
}

impl Run {
    pub(crate) fn on(disk: &SimulatedDisk, ledger: Ledger) -> Self {
        Self::with(disk, ledger, Durability::Synced)
    }

    pub(crate) fn with(disk: &SimulatedDisk, ledger: Ledger, durability: Durability) -> Self {
        let store = store_with(disk, durability, ledger.key.as_ref(), PATIENCE);
        let (ledger, events) = (Arc::new(Mutex::new(ledger)), store.events());
        let disk = disk.clone();
        Self { disk, store, ledger, durability, under_fault: false, for_good: false, errors: 0, events }
    }

    /// A run whose disk is about to fail, once or for good.
    pub(crate) fn under_fault(disk: &SimulatedDisk, ledger: Ledger, span: Span) -> Self {
        let mut run = Self::on(disk, ledger);
        (run.under_fault, run.for_good) = (true, span == Span::Lasting);
        if run.for_good {
            let key = run.ledger().key.clone();
            run.store = store_with(disk, run.durability, key.as_ref(), Duration::from_millis(20));
            run.events = run.store.events();
        }
        run
    }

    /// Returns whether anything was said of a disk that fails: by a call, in `health` or as an event.
    pub(crate) fn heard_of_it(&self) -> bool {
        let mut events = std::iter::from_fn(|| self.events.try_recv().ok());
        self.errors > 0 || events.any(|event| matches!(event, Event::Failing(_) | Event::Abandoned(..)))
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no test panics here")
    }

    /// Keeps every moment from now on, with what had been promised by then.
    pub(crate) fn record_moments(&self) -> Arc<Mutex<Vec<(Moment, Ledger)>>> {
        let moments = Arc::new(Mutex::new(Vec::new()));
        let (kept, ledger) = (moments.clone(), self.ledger.clone());
        self.disk.watch(move |moment: Moment| {
            let promised = ledger.lock().expect("no test panics here").clone();
            kept.lock().expect("no test panics here").push((moment, promised));
        });
        moments
    }

    /// Lets the next sync of a log fail and lie.
    pub(crate) fn fail_next_sync(&mut self) {
        self.disk.set(Fault { failure: Failure::FailedSync, at: 0, span: Span::Once });
    }

    /// Says which sessions the next operation is about.
    fn focus(&self, sessions: &[&str]) {
        self.ledger().focus = sessions.iter().map(|id| (*id).to_owned()).collect();
    }

    fn account<T>(&self, session: &str, change: impl FnOnce(&mut Account) -> T) -> T {
        change(self.ledger().sessions.entry(session.to_owned()).or_default())
    }

    pub(crate) fn session(&mut self, id: &str) -> Session {
        self.focus(&[id]);
        self.attempt(|run_, _| run(run_.store.open(&session_id(id))))
    }

    /// Returns the next entry: `u1`, `u2`, … of about a given size.
    fn entry(&mut self, size: usize) -> (String, Entry) {
        self.ledger().entries += 1;
        let number = self.ledger().entries;
        let (id, text) = (format!("u{number}"), format!("{number} {}", "x".repeat(size)));
        let json = format!(r#"{{"uuid":"{id}","role":"user","content":"{text}"}}"#);
        (id, Entry::parse(json).expect("an entry"))
    }

    /// Makes a call until it succeeds; `true` if it was made before. The disk's own errors end once they were seen.
    fn attempt<T>(&mut self, call: impl Fn(&Self, bool) -> Result<T>) -> T {
        let tries = if self.for_good { TRIES_IN_VAIN } else { TRIES };
        for again in 0..tries {
            match call(self, again > 0) {
                Ok(done) => return done,
                Err(error) if self.under_fault => {
                    self.errors += 1;
                    let struck = self.disk.struck();
                    assert!(is_from_the_disk(&error), "{struck}, and the store says: {error}");
                    if !self.for_good {
                        self.disk.clear();
                        // What was accepted before goes in by itself once the disk is well.
                        let _ = run(self.store.flush());
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        if self.for_good {
            resume_unwind(Box::new(GaveUp));
        }
        panic!("the disk is well again after {}, and the store is not", self.disk.struck());
    }

    /// Makes a call that adds records about a session, all of them or none.
    fn note(
        &mut self,
        session: &str,
        whats: &[&str],
        change: impl Fn(&mut SessionState),
        call: impl Fn(&Store, bool) -> Result<()>,
    ) {
        if !self.ledger().focus.iter().any(|id| id == session) {
            self.focus(&[session]);
        }
        let from = self.account(session, |account| account.messages.len());
        let whats: Vec<String> = whats.iter().map(|what| (*what).to_owned()).collect();
        self.account(session, |account| account.accept(whats.clone(), &change));
        self.attempt(|run, again| {
            if again {
                run.account(session, |account| {
                    account.accept(whats.clone(), &change);
                    account.doubt(from);
                });
            }
            call(&run.store, again)
        });
        self.promised(session);
    }

    /// Everything of a session is durable now, if that is what an acknowledgement means.
    fn promised(&self, session: &str) {
        if self.durability == Durability::Synced {
            self.account(session, Account::acknowledge_all);
        }
    }

    /// Makes everything durable, whatever an acknowledgement means.
    pub(crate) fn flush(&mut self) {
        self.attempt(|run_, _| run(run_.store.flush()));
        self.ledger().sessions.values_mut().for_each(Account::acknowledge_all);
    }

    /// Waits for an acknowledgement. Where it does not come, `health` must say why.
    fn wait(&mut self, ticket: &Ticket) -> Result<()> {
        let mut waited = 0;
        loop {
            match ticket.wait_for(Duration::from_millis(if self.under_fault { 2 } else { 100 })) {
                Some(answer) => return answer.map(drop),
                None if self.under_fault && !self.store.health().is_ok() => {
                    self.errors += 1;
                    if self.for_good {
                        resume_unwind(Box::new(GaveUp));
                    }
                    // A few more tries meet the same error.
                    std::thread::sleep(Duration::from_millis(5));
                    self.disk.clear();
                }
                None => {}
            }
            waited += 1;
            assert!(waited < 5_000, "neither an acknowledgement nor trouble: {:?}", self.store.health());
        }
    }

    pub(crate) fn create(&mut self, id: &str) {
        self.focus(&[id]);
        self.ledger().sessions.insert(id.to_owned(), Account::default());
        // Long enough that its first record does not fit into one sector.
        let name = format!("{id} {}", "long ".repeat(120));
        let named = |state: &mut SessionState| state.name = Some(name.clone());
        let for_good = self.for_good;
        self.note(id, &["note:created"], named, |store, again| {
            let made = run(store.create(NewSession::at("/tmp").id(session_id(id)).name(&name)));
            match made {
                Err(Error::SessionExists(_)) if again => made_before(for_good),
                made => made.map(drop),
            }
        });
    }

    /// Closes the store. One that could not be closed at once is closed all the same.
    pub(crate) fn close(&mut self) {
        self.attempt(|run, again| if again { Ok(()) } else { run.store.close() });
    }

    /// Closes the store and opens it again, as the next process would.
    pub(crate) fn reopen(&mut self) {
        self.close();
        let key = self.ledger().key.clone();
        self.store = store_with(&self.disk, self.durability, key.as_ref(), PATIENCE);
        self.events = self.store.events();
    }
}

pub(crate) fn store_on(disk: &SimulatedDisk, key: Option<&MasterKey>) -> Store {
    store_with(disk, Durability::Synced, key, PATIENCE)
}

fn store_with(
    disk: &SimulatedDisk,
    durability: Durability,
    key: Option<&MasterKey>,
    close_within: Duration,
) -> Store {
    let options = Options { close_within, durability, ..Options::default() };
    // Sooner than anybody else's: what is written here is short.
    let files = FileBackend::on(Arc::new(disk.clone()), "/store").with_headroom(Some(1));
    let files = match disk.journals() {
        Journals::Never => files.with_journal(None, 0),
        Journals::Early => files.with_journal(Some(1), 24 << 10),
    };
    match key {
        Some(key) => Store::new(EncryptedBackend::new(files, key), options),
        None => Store::new(files, options),
    }
}

/// What was begun on a disk that failed is there: done, unless the disk still fails. Then nobody has said so.
fn made_before(for_good: bool) -> Result<()> {
    if for_good { resume_unwind(Box::new(GaveUp)) } else { Ok(()) }
}

fn is_from_the_disk(error: &Error) -> bool {
    matches!(error, Error::Io { .. } | Error::NoSpace { .. } | Error::ReadOnly { .. })
}

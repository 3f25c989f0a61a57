//! Random operations against a model that fits on a page: whatever the store does, it must agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use rethread_encrypted::{EncryptedBackend, MasterKey};
use rethread_postgres::{PostgresBackend, Settings};
use rethread_s3::S3Backend;
use rethread_sqlite::SqliteBackend;
use rethread_store::backend::Backend;
use rethread_store::{
    Entry, Error, FileBackend, Filter, Fork, MemoryBackend, NewSession, Options, Session, SessionId, Store,
};
use rethread_testkit::{Postgres, S3, cannot, memory_folder};

use super::effort::{Effort, Round, torture};
use super::side_by_side::side_by_side;
use crate::kit::{entry_id, ids, run, session_id};

const SESSIONS: u8 = 4;

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Append(u8),
    /// Append after the n-th entry of the active chain.
    Branch(u8, u8),
    /// Fork at the n-th entry of the active chain.
    Fork(u8, u8, u8),
    Select(u8, u8),
    Rename(u8, u8),
    Materialize(u8),
    Delete(u8),
    Restore(u8),
    Purge(u8),
    /// Open the store again, as a new process would.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..SESSIONS;
    prop_oneof![
        2 => session.clone().prop_map(Step::Create),
        6 => session.clone().prop_map(Step::Append),
        3 => (session.clone(), any::<u8>()).prop_map(|(s, n)| Step::Branch(s, n)),
        3 => (session.clone(), session.clone(), any::<u8>()).prop_map(|(s, t, n)| Step::Fork(s, t, n)),
        1 => (session.clone(), any::<u8>()).prop_map(|(s, n)| Step::Select(s, n)),
        1 => (session.clone(), any::<u8>()).prop_map(|(s, n)| Step::Rename(s, n)),
        1 => session.clone().prop_map(Step::Materialize),
        1 => session.clone().prop_map(Step::Delete),
        1 => session.clone().prop_map(Step::Restore),
        1 => session.prop_map(Step::Purge),
        1 => Just(Step::Reopen),
    ]
}

/// What a session must be.
#[derive(Clone, Debug, Default)]
struct Expected {
    chain: Vec<String>,
    name: Option<String>,
    parent: Option<u8>,
    trashed: bool,
}

struct World<F> {
    reopen: F,
    store: Store,
    model: BTreeMap<u8, Expected>,
    count: usize,
}

impl<F: Fn() -> Store> World<F> {
    fn new(reopen: F) -> Self {
        let store = reopen();
        Self { reopen, store, model: BTreeMap::new(), count: 0 }
    }

    fn id(session: u8) -> SessionId {
        session_id(&format!("s{session}"))
    }

    fn next_entry(&mut self) -> (String, Entry) {
        self.count += 1;
        let id = format!("u{}", self.count);
        let entry = Entry::parse(format!(r#"{{"uuid":"{id}","n":{}}}"#, self.count)).expect("an entry");
        (id, entry)
    }

    /// Returns a session that the model says is there and not in the trash.
    fn live(&self, session: u8) -> Option<Session> {
        let expected = self.model.get(&session)?;
        (!expected.trashed).then(|| run(self.store.open(&Self::id(session))).expect("a live session opens"))
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Create(s) => {
                let made = run(self.store.create(NewSession::default().id(Self::id(s))));
                match self.model.contains_key(&s) {
                    true => assert!(matches!(made, Err(Error::SessionExists(_)))),
                    false => {
                        made.expect("a new session");
                        self.model.insert(s, Expected::default());
                    }
                }
            }
            Step::Append(s) => {
                let Some(session) = self.live(s) else { return };
                let (id, entry) = self.next_entry();
                run(async { session.append(entry).await?.await }).expect("an append");
                self.expected(s).chain.push(id);
            }
            Step::Branch(s, n) => {
                let (Some(session), Some(at)) = (self.live(s), self.pick(s, n)) else { return };
                let (id, entry) = self.next_entry();
                let handle = run(session.at(&entry_id(&self.model[&s].chain[at]))).expect("a known entry");
                run(async { handle.append(entry).await?.await }).expect("an append");
                let chain = &mut self.expected(s).chain;
                chain.truncate(at + 1);
                chain.push(id);
            }
            Step::Fork(s, t, n) => {
                let Some(session) = self.live(s) else { return };
                let at = self.pick(s, n);
                let mut fork = Fork::default().id(Self::id(t));
                if let Some(at) = at {
                    fork = fork.at(entry_id(&self.model[&s].chain[at]));
                }
                let made = run(session.fork(fork));
                match self.model.contains_key(&t) {
                    true => assert!(matches!(made, Err(Error::SessionExists(_)))),
                    false => {
                        made.expect("a fork");
                        let chain = at.map_or(Vec::new(), |at| self.model[&s].chain[..=at].to_vec());
                        self.model.insert(t, Expected { chain, parent: Some(s), ..Expected::default() });
                    }
                }
            }
            Step::Select(s, n) => {
                let (Some(session), Some(at)) = (self.live(s), self.pick(s, n)) else { return };
                run(session.select(&entry_id(&self.model[&s].chain[at]))).expect("a known entry");
                self.expected(s).chain.truncate(at + 1);
            }
            Step::Rename(s, n) => {
                let Some(session) = self.live(s) else { return };
                let name = Some(format!("name {n}"));
                self.expected(s).name = name.clone();
                run(session.update(move |metadata| metadata.name = name.clone())).expect("an update");
            }
            Step::Materialize(s) => {
                let Some(session) = self.live(s) else { return };
                run(session.materialize()).expect("whole parents");
            }
            Step::Delete(s) => {
                let there = run(self.store.delete(&Self::id(s))).expect("a delete");
                assert_eq!(there, self.model.contains_key(&s));
                if there {
                    self.expected(s).trashed = true;
                }
            }
            Step::Restore(s) => match self.model.contains_key(&s) {
                true => {
                    run(self.store.restore(&Self::id(s))).expect("a restore");
                    self.expected(s).trashed = false;
                }
                false => assert!(run(self.store.restore(&Self::id(s))).is_err()),
            },
            Step::Purge(s) => {
                let there = run(self.store.purge(&Self::id(s))).expect("a purge");
                assert_eq!(there, self.model.remove(&s).is_some());
            }
            Step::Reopen => {
                self.store.close().expect("a clean close");
                self.store = (self.reopen)();
            }
        }
    }

    fn expected(&mut self, session: u8) -> &mut Expected {
        self.model.get_mut(&session).expect("it is in the model")
    }

    fn pick(&self, session: u8, n: u8) -> Option<usize> {
        let length = self.model.get(&session)?.chain.len();
        (length > 0).then(|| usize::from(n) % length)
    }

    fn check(&self) {
        for s in 0..SESSIONS {
            let loaded = run(self.store.load(&Self::id(s)));
            let Some(expected) = self.model.get(&s) else {
                assert!(matches!(loaded, Ok(None)));
                continue;
            };
            if expected.trashed {
                assert!(matches!(loaded, Err(Error::Trashed(_))));
                continue;
            }
            let session = loaded.expect("readable").expect("there");
            let history = run(session.messages()).expect("readable");
            assert_eq!((ids(&history), history.gaps), (expected.chain.join(" "), vec![]), "session {s}");
            let metadata = run(session.metadata()).expect("readable");
            assert_eq!(metadata.message_count, expected.chain.len() as u64);
            assert_eq!(
                (metadata.name, metadata.parent_id),
                (expected.name.clone(), expected.parent.map(Self::id))
            );
            let report = run(self.store.verify(&Self::id(s))).expect("readable");
            assert!(report.is_ok(), "{:?}", report.problems);
        }
        let listed = run(self.store.list(&Filter::default())).expect("a list");
        let live = self.model.values().filter(|expected| !expected.trashed).count();
        assert_eq!((listed.sessions.len(), listed.unreadable.len()), (live, 0));
    }
}

/// Runs one random sequence, and shrinks it if it fails.
fn agrees<F: Fn() -> Store>(round: Round, fresh: impl Fn() -> F) {
    let bytes: Vec<u8> = (0..4).flat_map(|part: u64| (round.seed ^ part << 56).to_le_bytes()).collect();
    let config = ProptestConfig { cases: 1, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let length = if torture() { 120 } else { 40 };
    let tried = runner.run(&prop::collection::vec(step(), 1..length), |steps| {
        let mut world = World::new(fresh());
        steps.iter().for_each(|step| world.take(step));
        world.check();
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn whatever_is_done_memory_agrees_with_the_model() {
    for round in Effort::new("random operations against the model, memory", 500) {
        agrees(round, || {
            let backend: Arc<dyn Backend> = Arc::new(MemoryBackend::default());
            move || Store::on(backend.clone(), Options::default())
        });
    }
}

#[test]
fn whatever_is_done_files_agree_with_the_model() {
    for round in Effort::new("random operations against the model, files", 500) {
        agrees(round, || {
            let folder = tempfile::tempdir().expect("a folder");
            move || Store::new(FileBackend::new(folder.path()), Options::default())
        });
    }
}

#[test]
fn whatever_is_done_what_is_encrypted_agrees_with_the_model() {
    let key = MasterKey::generate().expect("a key");
    for round in Effort::new("random operations against the model, encrypted", 500) {
        agrees(round, || {
            let (inner, key): (Arc<dyn Backend>, _) = (Arc::new(MemoryBackend::default()), key.clone());
            move || Store::new(EncryptedBackend::new(inner.clone(), &key), Options::default())
        });
    }
}

#[test]
fn whatever_is_done_sqlite_agrees_with_the_model() {
    for round in Effort::new("random operations against the model, SQLite", 500) {
        agrees(round, || {
            // In memory, where a sync costs nothing: what is tried here is what it does, not what it survives.
            let folder = memory_folder("rethread-model-");
            move || Store::new(SqliteBackend::new(folder.path().join("sessions.db")), Options::default())
        });
    }
}

#[test]
fn whatever_is_done_postgres_agrees_with_the_model() {
    let Some(server) = Postgres::in_memory() else {
        return cannot("PostgreSQL is not installed: apt-get install postgresql");
    };
    let database = server.database();
    for round in Effort::new("random operations against the model, PostgreSQL", 500) {
        agrees(round, || {
            // To make a database for each takes longer than all that is done in it.
            server.sql(&database, "DROP SCHEMA IF EXISTS rethread CASCADE");
            let settings = Settings::parse(&server.url(&database)).expect("a URL");
            move || {
                let backend = PostgresBackend::new(settings.clone()).expect("a backend");
                Store::new(backend, Options::default())
            }
        });
    }
}

#[test]
fn whatever_is_done_s3_agrees_with_the_model() {
    let Some(server) = S3::shared() else {
        return cannot("there is no S3 server: scripts/setup s3");
    };
    // Much of it is waiting for answers: several at once.
    side_by_side(Effort::new("random operations against the model, S3", 500), 4, |round| {
        agrees(round, || {
            let settings = rethread_s3::Settings::parse(&format!("s3://{}/team", server.bucket()));
            let settings = settings.expect("a URL").with_variables(server.way().variables());
            move || Store::new(S3Backend::new(&settings).expect("a backend"), Options::default())
        });
    });
}

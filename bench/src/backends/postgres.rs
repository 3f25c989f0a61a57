//! Sessions in PostgreSQL, against a table of its own on the same server.

use std::cell::Cell;

use bytes::Bytes;
use rethread_postgres::{PostgresBackend, Settings};
use rethread_store::{Options, Store};
use rethread_testkit::Postgres as Server;

use super::milliseconds;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::failure::Outcome;
use crate::ours;
use crate::peers::postgres::Postgres;
use crate::row::{Row, Unit};
use crate::stopwatch::rate;
use crate::store::tasks::{TASKS, append_at_once};

/// How many entries are loaded.
const LOADED: usize = 10_000;
/// How many connections a pool has.
const POOL: usize = 8;

/// A database on a server that all trials share, and names that were never used in it.
struct Database {
    url: String,
    used: Cell<usize>,
}

impl Database {
    fn new() -> Outcome<Self> {
        let server = Server::shared().ok_or("PostgreSQL is not installed: apt-get install postgresql")?;
        Ok(Self { url: server.fresh(), used: Cell::new(0) })
    }

    fn store(&self) -> Outcome<Store> {
        Ok(Store::new(PostgresBackend::new(Settings::parse(&self.url)?)?, Options::default()))
    }

    fn name(&self, what: &str) -> String {
        self.used.set(self.used.get() + 1);
        format!("{what}{}", self.used.get())
    }

    /// A table of a peer's.
    fn table(&self, connections: usize) -> Outcome<Postgres> {
        Postgres::create(&self.url, &self.name("entries"), connections)
    }

    /// How many entries a second a peer appends.
    fn rate(&self, lines: &[Bytes], connections: usize, tasks: usize) -> Outcome<f64> {
        let table = self.table(connections)?;
        rate(lines.len(), || table.append(lines, tasks))
    }
}

/// One caller, who waits for each entry.
pub(super) fn one_in_flight(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(1).lines(0..bench.scale.durable);
    let (entries, count, database) = (entries(&lines)?, lines.len(), Database::new()?);
    Contest::new("PostgreSQL backend: durable append, one in flight", Unit::EntriesPerSecond, |_| {
        let store = database.store()?;
        let session = ours::create(&store, &database.name("s"))?;
        let appended = rate(count, || {
            Ok(entries.iter().try_for_each(|entry| session.append_and_wait(entry.clone()).map(drop))?)
        });
        store.close()?;
        appended
    })
    .peer("tokio-postgres, an INSERT each", Bar::AtLeast(0.8), |_| database.rate(&lines, 1, 1))
    .run_rounds(bench.scale.many_rounds, bench)
}

/// Many tasks on one session, each of which waits for its own entries.
pub(super) fn many_tasks(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(2).lines(0..bench.scale.shared);
    let (entries, count, database) = (entries(&lines)?, lines.len(), Database::new()?);
    let some = &lines[..bench.scale.durable.min(count)];
    Contest::new("PostgreSQL backend: durable append, 64 tasks at once", Unit::EntriesPerSecond, |_| {
        let store = database.store()?;
        let sessions = vec![ours::create(&store, &database.name("s"))?; TASKS];
        let appended = rate(count, || append_at_once(&sessions, &entries));
        store.close()?;
        appended
    })
    .peer("tokio-postgres, one connection", Bar::AtLeast(5.0), |_| database.rate(some, 1, TASKS))
    .peer("tokio-postgres, a pool of 8", Bar::AtLeast(2.0), |_| database.rate(&lines, POOL, TASKS))
    .run_rounds(bench.scale.many_rounds, bench)
}

/// A session that is read as a whole, by somebody who is connected.
pub(super) fn load(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(3).lines(0..LOADED.min(bench.scale.long));
    let database = Database::new()?;
    let (store, table) = (database.store()?, database.table(1)?);
    ours::create_with(&store, "parser", &lines)?;
    table.fill(&lines)?;
    let expected: usize = lines.iter().map(|line| line.len()).sum();
    Contest::new("PostgreSQL backend: load of 10,000 entries", Unit::Milliseconds, |_| {
        milliseconds(|| {
            let session = ours::open(&store, "parser")?;
            let history = pollster::block_on(session.messages())?;
            let loaded: usize = history.records.iter().map(|record| record.entry.as_bytes().len()).sum();
            if loaded == expected { Ok(()) } else { Err("not all was loaded".into()) }
        })
    })
    .peer("tokio-postgres, the bare query", Bar::AtMost(1.5), |_| {
        milliseconds(|| {
            let loaded: usize = table.read()?.iter().map(|row| row.len()).sum();
            if loaded == expected { Ok(()) } else { Err("not all was loaded".into()) }
        })
    })
    .run_rounds(bench.scale.many_rounds, bench)
}

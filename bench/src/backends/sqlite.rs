//! Sessions in SQLite, against a table of its own.

use std::iter::repeat_n;
use std::path::Path;

use rethread_sqlite::SqliteBackend;
use rethread_store::{Options, Store};

use super::milliseconds;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::failure::Outcome;
use crate::ours;
use crate::peers::sqlite::{Sqlite, Synchronous};
use crate::row::{Row, Unit};
use crate::stopwatch::rate;
use crate::store::tasks::{TASKS, append_at_once};

/// How many entries are loaded.
const LOADED: usize = 10_000;

fn store(folder: &Path) -> Store {
    Store::new(SqliteBackend::new(folder.join("sessions.db")), Options::default())
}

/// One caller, who waits for each entry.
pub(super) fn one_in_flight(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(1).lines(0..bench.scale.durable);
    let (entries, count) = (entries(&lines)?, lines.len());
    Contest::new("SQLite backend: durable append, one in flight", Unit::EntriesPerSecond, |folder| {
        let store = store(folder);
        let session = ours::create(&store, "parser")?;
        let appended = rate(count, || {
            Ok(entries.iter().try_for_each(|entry| session.append_and_wait(entry.clone()).map(drop))?)
        });
        store.close()?;
        appended
    })
    .peer("rusqlite, a transaction each", Bar::AtLeast(0.8), |folder| {
        let mut database = Sqlite::create(folder, Synchronous::Full)?;
        rate(count, || database.append(&lines, repeat_n(1, count)))
    })
    .run_rounds(bench.scale.many_rounds, bench)
}

/// Many tasks on one session, each of which waits for its own entries.
pub(super) fn many_tasks(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(2).lines(0..bench.scale.shared);
    let (entries, count) = (entries(&lines)?, lines.len());
    let some = &lines[..bench.scale.durable.min(count)];
    Contest::new("SQLite backend: durable append, 64 tasks at once", Unit::EntriesPerSecond, |folder| {
        let store = store(folder);
        let sessions = vec![ours::create(&store, "parser")?; TASKS];
        let appended = rate(count, || append_at_once(&sessions, &entries));
        store.close()?;
        appended
    })
    .peer("rusqlite, a transaction each", Bar::AtLeast(5.0), |folder| {
        let mut database = Sqlite::create(folder, Synchronous::Full)?;
        rate(some.len(), || database.append(some, repeat_n(1, some.len())))
    })
    .run_rounds(bench.scale.many_rounds, bench)
}

/// A session that is opened and read as a whole.
pub(super) fn load(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(3).lines(0..LOADED.min(bench.scale.long));
    let (ours_at, theirs_at) = (bench.fresh()?, bench.fresh()?);
    let made = store(&ours_at);
    ours::create_with(&made, "parser", &lines)?;
    made.close()?;
    Sqlite::create(&theirs_at, Synchronous::Off)?.append(&lines, [lines.len()])?;
    let expected: usize = lines.iter().map(|line| line.len()).sum();
    Contest::new("SQLite backend: load of 10,000 entries", Unit::Milliseconds, |_| {
        milliseconds(|| {
            let store = store(&ours_at);
            let session = ours::open(&store, "parser")?;
            let history = pollster::block_on(session.messages())?;
            let loaded: usize = history.records.iter().map(|record| record.entry.as_bytes().len()).sum();
            if loaded == expected { Ok(()) } else { Err("not all was loaded".into()) }
        })
    })
    .peer("rusqlite, the bare query", Bar::AtMost(1.5), |_| {
        milliseconds(|| {
            let mut rows: Vec<bytes::Bytes> = Vec::new();
            Sqlite::open(&theirs_at)?.read(|body| {
                rows.push(bytes::Bytes::copy_from_slice(body));
                Ok(())
            })?;
            let loaded: usize = rows.iter().map(|row| row.len()).sum();
            if loaded == expected { Ok(()) } else { Err("not all was loaded".into()) }
        })
    })
    .run_rounds(bench.scale.many_rounds, bench)
}

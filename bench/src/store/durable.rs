//! Appends that are acknowledged when they are durable.

use std::iter::repeat_n;
use std::path::Path;
use std::sync::Arc;

use redb::Durability as RedbDurability;
use rethread_store::Entry;
use rethread_store::backend::Durability;

use super::tasks::{TASKS, append_at_once};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::counting_disk::CountingDisk;
use crate::failure::Outcome;
use crate::ours;
use crate::peers::bare::{Bare, in_batches, with_newlines};
use crate::peers::group_commit;
use crate::peers::redb::Redb;
use crate::peers::sqlite::{Sqlite, Synchronous};
use crate::row::{Row, Unit};
use crate::stopwatch::rate;

/// How often a peer that must make the batches that ours had may try to.
const ATTEMPTS: usize = 5;

/// One caller, who waits for each entry.
pub(crate) fn one_in_flight(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(1).lines(0..bench.scale.durable);
    let (entries, written, count) = (entries(&lines)?, with_newlines(&lines), lines.len());
    Contest::new("durable append, one in flight", Unit::EntriesPerSecond, |folder| {
        let store = ours::store(folder, Durability::Synced);
        let session = ours::create(&store, "parser")?;
        let appended = rate(count, || {
            Ok(entries.iter().try_for_each(|entry| session.append_and_wait(entry.clone()).map(drop))?)
        });
        store.close()?;
        appended
    })
    .peer("the same, awaiting a ticket", Bar::Shown, |folder| {
        let store = ours::store(folder, Durability::Synced);
        let session = ours::create(&store, "parser")?;
        let append = |entry: &Entry| pollster::block_on(async { session.append(entry.clone()).await?.await });
        let appended = rate(count, || Ok(entries.iter().try_for_each(|entry| append(entry).map(drop))?));
        store.close()?;
        appended
    })
    .peer("bare write+fdatasync", Bar::AtLeast(0.8), |folder| {
        let mut file = Bare::create(&folder.join("messages.jsonl"))?;
        rate(count, || written.iter().try_for_each(|line| file.write_durably(line)))
    })
    .peer("SQLite WAL FULL, a transaction each", Bar::AtLeast(1.1), |folder| {
        let mut database = Sqlite::create(folder, Synchronous::Full)?;
        rate(count, || database.append(&lines, repeat_n(1, count)))
    })
    .peer("redb, a transaction each", Bar::Shown, |folder| {
        let mut database = Redb::create(folder)?;
        rate(count, || database.append(&lines, repeat_n(1, count), RedbDurability::Immediate))
    })
    .run_rounds(bench.scale.many_rounds, bench)
}

/// Many tasks on one session, each of which waits for its own entries.
pub(crate) fn many_tasks(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(2).lines(0..bench.scale.shared);
    let (entries, count) = (entries(&lines)?, lines.len());
    let some = &lines[..bench.scale.durable.min(count)];
    let disk = CountingDisk::default();
    let store = ours::store_on(Arc::new(disk.clone()), &bench.fresh()?, Durability::Synced);
    let session = ours::create(&store, "parser")?;
    disk.take_log_writes();
    append_at_once(&vec![session; TASKS], &entries)?;
    let sizes = disk.take_log_writes();
    store.close()?;
    let each = format!("{:.0} each", count as f64 / sizes.len() as f64);
    let (batches, written) = (in_batches(&lines, sizes.clone()), with_newlines(&lines));
    let commit = |folder: &Path| {
        for attempt in 0..ATTEMPTS {
            let (path, mut made) = (folder.join(format!("messages.{attempt}.jsonl")), 0);
            let figure = rate(count, || {
                made = group_commit::append_at_once(&path, &written, TASKS, &sizes)?;
                Ok(())
            })?;
            // Where the machine stood still for longer than it waits, a batch fell in two.
            if made.abs_diff(sizes.len()) <= sizes.len().div_ceil(10) {
                return Ok(figure);
            }
        }
        Err("a bare group commit never made the batches that ours had".into())
    };
    let at_once = |folder: &Path| {
        let store = ours::store(folder, Durability::Synced);
        let sessions = vec![ours::create(&store, "parser")?; TASKS];
        let appended = rate(count, || append_at_once(&sessions, &entries));
        store.close()?;
        appended
    };
    Contest::new("durable append, 64 tasks at once on one session", Unit::EntriesPerSecond, at_once)
        .peer("SQLite WAL FULL, a transaction each", Bar::AtLeast(8.0), |folder| {
            let mut database = Sqlite::create(folder, Synchronous::Full)?;
            rate(some.len(), || database.append(some, repeat_n(1, some.len())))
        })
        .peer("SQLite WAL FULL, 64 a transaction", Bar::AtLeast(1.5), |folder| {
            let mut database = Sqlite::create(folder, Synchronous::Full)?;
            rate(count, || database.append(&lines, repeat_n(TASKS, count.div_ceil(TASKS))))
        })
        .peer(format!("bare group commit for the same tasks and batches, {each}"), Bar::AtLeast(0.8), commit)
        // Nobody waits for it, and nobody has to be woken: the bare group commit itself is about a fifth slower.
        .peer("bare write+fdatasync of the same batches", Bar::Shown, |folder| {
            let mut file = Bare::create(&folder.join("messages.jsonl"))?;
            rate(count, || batches.iter().try_for_each(|batch| file.write_durably(batch)))
        })
        .peer("redb, 64 a transaction", Bar::Shown, |folder| {
            let mut database = Redb::create(folder)?;
            let batches = repeat_n(TASKS, count.div_ceil(TASKS));
            rate(count, || database.append(&lines, batches, RedbDurability::Immediate))
        })
        .run_rounds(bench.scale.many_rounds, bench)
}

/// As many sessions as tasks.
pub(crate) fn many_sessions(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(3).lines(0..bench.scale.shared / 4);
    let (entries, written, count) = (entries(&lines)?, with_newlines(&lines), lines.len());
    let some = &lines[..bench.scale.durable.min(count)];
    Contest::new("durable append to 64 sessions at once", Unit::EntriesPerSecond, |folder| {
        let store = ours::store(folder, Durability::Synced);
        let create = |number| ours::create(&store, &format!("session-{number}"));
        let sessions = (0..TASKS).map(create).collect::<Outcome<Vec<_>>>()?;
        let appended = rate(count, || append_at_once(&sessions, &entries));
        store.close()?;
        appended
    })
    .peer("one thread writing and syncing 64 files in turn", Bar::AtLeast(1.5), |folder| {
        let create = |number| Bare::create(&folder.join(format!("{number}.jsonl")));
        let mut files = (0..TASKS).map(create).collect::<Outcome<Vec<_>>>()?;
        rate(count, || {
            written.iter().enumerate().try_for_each(|(index, line)| files[index % TASKS].write_durably(line))
        })
    })
    .peer("SQLite WAL FULL, a transaction each", Bar::Shown, |folder| {
        let mut database = Sqlite::create(folder, Synchronous::Full)?;
        rate(some.len(), || database.append(some, repeat_n(1, some.len())))
    })
    .run_rounds(bench.scale.many_rounds, bench)
}

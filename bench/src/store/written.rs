//! Appends that are acknowledged when they are written, and synced later.

use std::iter::repeat_n;
use std::path::Path;
use std::sync::Arc;

use redb::Durability as RedbDurability;
use rethread_store::backend::Durability;
use rethread_store::{Entry, Session, Ticket};

use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::counting_disk::CountingDisk;
use crate::failure::Outcome;
use crate::ours;
use crate::peers::bare::{Bare, in_batches, with_newlines};
use crate::peers::naive::Naive;
use crate::peers::redb::Redb;
use crate::peers::sqlite::{Sqlite, Synchronous};
use crate::row::{Row, Unit};
use crate::stopwatch::rate;

/// How many entries a caller hands over at once.
const AT_ONCE: usize = 100;

/// Measures both ways to append.
pub(crate) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    Ok(vec![many_in_flight(bench)?, one_in_flight(bench)?])
}

/// One caller, who waits for the acknowledgements at the end. The others write as many records at a time as we do.
fn many_in_flight(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(4).lines(0..bench.scale.written);
    let (entries, count) = (entries(&lines)?, lines.len());
    let counts = records_per_write(bench, &entries)?;
    let batches = in_batches(&lines, counts.clone());
    let each = format!("{:.0} a", count as f64 / counts.len() as f64);
    Contest::new("written append, same records per write", Unit::EntriesPerSecond, |folder| {
        ours(folder, count, |session| append_all(session, &entries))
    })
    .peer(format!("SQLite WAL NORMAL, {each} transaction"), Bar::AtLeast(5.0), |folder| {
        let mut database = Sqlite::create(folder, Synchronous::Normal)?;
        rate(count, || database.append(&lines, counts.iter().copied()))
    })
    .peer("the naive design, with its metadata", Bar::AtLeast(40.0), naive(bench))
    .peer(format!("bare flock+write+unlock, {each} write"), Bar::AtLeast(0.6), |folder| {
        let mut file = Bare::create(&folder.join("messages.jsonl"))?;
        rate(count, || batches.iter().try_for_each(|batch| file.write_locked(batch)))
    })
    .peer(format!("the same from where the entries lie, {each} write"), Bar::Shown, |folder| {
        let mut file = Bare::create(&folder.join("messages.jsonl"))?;
        rate(count, || pieces(&lines, &counts).try_for_each(|lines| file.write_locked_from(lines)))
    })
    .peer(format!("redb, not durable, {each} transaction"), Bar::Shown, |folder| {
        let mut database = Redb::create(folder)?;
        rate(count, || database.append(&lines, counts.iter().copied(), RedbDurability::None))
    })
    .run(bench)
}

/// Divides lines up.
fn pieces<'a, L>(mut lines: &'a [L], counts: &'a [usize]) -> impl Iterator<Item = &'a [L]> {
    counts.iter().map(move |count| {
        let (piece, rest) = lines.split_at((*count).min(lines.len()));
        lines = rest;
        piece
    })
}

/// One caller, who waits for each acknowledgement: one record per write on every side.
fn one_in_flight(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(5).lines(0..bench.scale.naive);
    let (entries, written, count) = (entries(&lines)?, with_newlines(&lines), lines.len());
    Contest::new("written append, one in flight", Unit::EntriesPerSecond, |folder| {
        ours(folder, count, |session| {
            Ok(entries.iter().try_for_each(|entry| session.append_and_wait(entry.clone()).map(drop))?)
        })
    })
    .peer("SQLite WAL NORMAL, a transaction each", Bar::Shown, |folder| {
        let mut database = Sqlite::create(folder, Synchronous::Normal)?;
        rate(count, || database.append(&lines, repeat_n(1, count)))
    })
    .peer("the naive design, with its metadata", Bar::Shown, naive(bench))
    .peer("bare flock+write+unlock", Bar::Shown, |folder| {
        let mut file = Bare::create(&folder.join("messages.jsonl"))?;
        rate(count, || written.iter().try_for_each(|line| file.write_locked(line)))
    })
    .run(bench)
}

fn ours(folder: &Path, count: usize, append: impl FnOnce(&Session) -> Outcome<()>) -> Outcome<f64> {
    let store = ours::store(folder, Durability::Written);
    let session = ours::create(&store, "parser")?;
    let appended = rate(count, || append(&session));
    store.close()?;
    appended
}

fn naive(bench: &Bench) -> impl FnMut(&Path) -> Outcome<f64> {
    let lines = with_newlines(&Corpus::new(6).lines(0..bench.scale.naive));
    move |folder| {
        let session = Naive::create(folder)?;
        rate(lines.len(), || lines.iter().try_for_each(|line| session.append(line)))
    }
}

fn append_all(session: &Session, entries: &[Entry]) -> Outcome<()> {
    let mut tickets: Vec<Ticket> = Vec::with_capacity(entries.len().div_ceil(AT_ONCE));
    for entries in entries.chunks(AT_ONCE) {
        tickets.push(pollster::block_on(session.append_all(entries.to_vec()))?);
    }
    Ok(tickets.into_iter().try_for_each(|ticket| ticket.wait().map(drop))?)
}

/// Returns how our own writes divide the entries up.
fn records_per_write(bench: &Bench, entries: &[Entry]) -> Outcome<Vec<usize>> {
    let disk = CountingDisk::default();
    let store = ours::store_on(Arc::new(disk.clone()), &bench.fresh()?, Durability::Written);
    let session = ours::create(&store, "parser")?;
    disk.take_log_writes();
    append_all(&session, entries)?;
    store.close()?;
    Ok(disk.take_log_writes())
}

//! A whole session into memory, each entry typed, and the same a piece at a time.

use std::io::{BufRead, BufReader};
use std::path::Path;

use rethread_store::backend::Durability;
use rethread_store::view::Message;
use rethread_store::{Entry, History, Page, Record, Session, Start};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::long_store::LongStore;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::ours;
use crate::peers::redb::Redb;
use crate::peers::sqlite::Sqlite;
use crate::row::{Row, Unit};
use crate::stopwatch::seconds;
use crate::typed_entry::{TypedEntry, Weight};

/// How many entries a page has.
const PAGE: usize = 500;

/// How many threads make typed views of what was read, on our side and in the bare loop.
const THREADS: usize = 2;

/// Who reads the session, and how.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Reader {
    /// The store, the whole conversation at once, then a view of each entry, on several threads.
    Whole,
    /// The store, page by page from the end.
    Paged,
    /// The store, following the log from its beginning.
    Streamed,
    /// The log's file read into memory, each line read into a typed struct, on as many threads.
    Bare,
    /// Line by line into `serde_json::Value`.
    Values,
    /// Each row of a SQLite table read into a typed struct.
    Sqlite,
    /// Each value of a redb table read into a typed struct.
    Redb,
}

/// Measures how fast the long session is read, and in how much memory.
pub(crate) fn run(bench: &Bench, long: &LongStore) -> Outcome<Vec<Row>> {
    let (count, size) = (bench.scale.long, long.log_mebibytes);
    let send = |reader, place: &Path| {
        let expected = if let Reader::Values = reader { long.records } else { long.weight };
        Errand::Load { reader, place: place.to_owned() }.send(expected)
    };
    let speed = |reader, place| move |_: &Path| Ok(count as f64 / send(reader, place)?.seconds);
    let memory = |reader, place| move |_: &Path| Ok(send(reader, place)?.peak_mebibytes);
    let what = format!("typed load of {count} entries, {size:.0} MiB");
    let loaded = Contest::new(what, Unit::EntriesPerSecond, speed(Reader::Whole, &long.root))
        .with_memory(2 * size as usize)
        .peer("bare read and typed parse, two threads too", Bar::AtLeast(0.8), speed(Reader::Bare, &long.log))
        .peer("line by line into serde_json::Value", Bar::AtLeast(2.0), speed(Reader::Values, &long.log))
        .peer("SQLite and typed parse", Bar::Shown, speed(Reader::Sqlite, &long.sqlite))
        .peer("redb and typed parse", Bar::Shown, speed(Reader::Redb, &long.redb))
        .run(bench)?;
    let whole = Contest::new("peak memory of that load", Unit::Mebibytes, memory(Reader::Whole, &long.root))
        .peer("the log's size", Bar::AtMost(1.5), |_| Ok(size))
        .peer("bare read and typed parse", Bar::Shown, memory(Reader::Bare, &long.log))
        .run(bench)?;
    let limited = |what, reader| {
        Contest::new(what, Unit::Mebibytes, memory(reader, &long.root))
            .peer("64 MiB", Bar::AtMost(1.0), |_| Ok(64.0))
            .run(bench)
    };
    let paged = limited("peak memory of the load by pages of 500", Reader::Paged)?;
    let streamed = limited("peak memory of the load as a stream", Reader::Streamed)?;
    Ok(vec![loaded, whole, paged, streamed])
}

/// Reads the session of a store, the log's file or a database, in this process.
pub(crate) fn load(reader: Reader, place: &Path) -> Outcome<Answer> {
    let (seconds, weight) = seconds(|| match reader {
        Reader::Whole => with_session(place, |session| {
            let history = pollster::block_on(session.messages())?;
            let share = history.records.len().div_ceil(THREADS).max(1);
            let views = |records: &[Record]| {
                Ok(records.iter().map(|record| &record.entry).fold(Weight::default(), add_view))
            };
            at_once(history.records.chunks(share), views)
        }),
        Reader::Paged => with_session(place, read_pages),
        Reader::Streamed => with_session(place, read_stream),
        Reader::Bare => {
            let bytes = std::fs::read(place)?;
            let middle = bytes.len() / THREADS;
            let middle =
                memchr::memchr(b'\n', &bytes[middle..]).map_or(bytes.len(), |newline| middle + newline);
            at_once(<[&[u8]; THREADS]>::from(bytes.split_at(middle)), read_lines)
        }
        Reader::Values => count_values(place),
        Reader::Sqlite => {
            let mut weight = Weight::default();
            Sqlite::open(place)?.read(|body| add_typed(&mut weight, body))?;
            Ok(weight)
        }
        Reader::Redb => {
            let mut weight = Weight::default();
            Redb::open(place)?.read(|body| add_typed(&mut weight, body))?;
            Ok(weight)
        }
    })?;
    Ok(Answer { seconds, found: weight.0, ..Answer::default() })
}

fn with_session(root: &Path, read: impl FnOnce(&Session) -> Outcome<Weight>) -> Outcome<Weight> {
    let store = ours::store(root, Durability::Synced);
    read(&ours::open(&store, "long")?)
}

fn read_pages(session: &Session) -> Outcome<Weight> {
    let mut weight = Weight::default();
    let mut page = Page::Last(PAGE);
    loop {
        let History { records, .. } = pollster::block_on(session.page(page))?;
        weight = records.iter().map(|record| &record.entry).fold(weight, add_view);
        match records.first() {
            Some(first) => page = Page::Before(first.entry.id().clone(), PAGE),
            None => return Ok(weight),
        }
    }
}

fn read_stream(session: &Session) -> Outcome<Weight> {
    let count = pollster::block_on(session.metadata())?.entry_count;
    let entries = pollster::block_on(session.follow(Start::Beginning))?;
    let mut weight = Weight::default();
    for _ in 0..count {
        let record = entries.next_blocking().ok_or("the stream ended early")??;
        weight = add_view(weight, &record.entry);
    }
    Ok(weight)
}

/// A `Value` has no weight: that its lines are all there is proof enough.
fn count_values(log: &Path) -> Outcome<Weight> {
    let mut count = 0;
    for line in BufReader::new(std::fs::File::open(log)?).lines() {
        std::hint::black_box(serde_json::from_str::<Value>(&line?)?);
        count += 1;
    }
    Ok(Weight(count))
}

/// Does a share of the work on each thread.
fn at_once<S: Send>(
    shares: impl IntoIterator<Item = S>,
    work: impl Fn(S) -> Outcome<Weight> + Sync,
) -> Outcome<Weight> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = shares.into_iter().map(|share| scope.spawn(move || work(share))).collect();
        let mut weight = Weight::default();
        for thread in threads {
            weight.0 += thread.join().map_err(|_| "a thread panicked")??.0;
        }
        Ok(weight)
    })
}

fn read_lines(bytes: &[u8]) -> Outcome<Weight> {
    let mut weight = Weight::default();
    let mut start = 0;
    for newline in memchr::memchr_iter(b'\n', bytes) {
        add_typed(&mut weight, &bytes[start..newline])?;
        start = newline + 1;
    }
    add_typed(&mut weight, &bytes[start..])?;
    Ok(weight)
}

fn add_view(mut weight: Weight, entry: &Entry) -> Weight {
    if let Some(message) = Message::of(entry.as_bytes()) {
        weight.add_view(&message);
    }
    weight
}

fn add_typed(weight: &mut Weight, line: &[u8]) -> Outcome<()> {
    if !line.is_empty() {
        weight.add_typed(&serde_json::from_slice::<TypedEntry>(line)?);
    }
    Ok(())
}

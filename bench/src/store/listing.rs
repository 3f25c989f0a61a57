//! Finding sessions among many, also right after a writer was killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rethread_store::backend::Durability;
use rethread_store::{Filter, NewSession, Scope, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bar::Bar;
use crate::bench::{Bench, length};
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::counting_disk::CountingDisk;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::peers::naive;
use crate::peers::sqlite::{Sqlite, Synchronous};
use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::stopwatch::seconds;
use crate::ui::{self, Progress};
use crate::{ours, store::tasks::TASKS};

/// Entries of a session among many.
const FEW: usize = 3;
/// The session that a writer is killed on, and how long it was before.
const GROWING: &str = "growing";
const GROWN: usize = 2000;
/// How many entries a writer has acknowledged when it is killed.
const KILLED_AFTER: usize = 100;
/// What a look at a log's end may read besides what is new.
const GLIMPSE_KIBIBYTES: f64 = 64.0;

/// Who looks for sessions, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Finder {
    /// The store, all of them.
    List,
    /// The store, the latest of one directory.
    Latest,
    /// The folders alone, and a stat of each log.
    Walk,
    /// Every folder's metadata, parsed.
    Naive,
    /// Every row of a SQLite table, parsed.
    Sqlite,
}

/// Measures how sessions are found among many.
pub(crate) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let many = Many::build(bench)?;
    let time = |finder| {
        let many = &many;
        move |_: &Path| Ok(many.send(finder)?.seconds * 1e3)
    };
    let listed = Contest::new(
        format!("list of {} sessions, warm", many.count),
        Unit::Milliseconds,
        time(Finder::List),
    )
    .peer("bare folder walk with stat", Bar::AtMost(3.0), time(Finder::Walk))
    .peer("the naive design: every metadata.json", Bar::Shown, time(Finder::Naive))
    .peer("SQLite: every row of metadata", Bar::Shown, time(Finder::Sqlite))
    .run(bench)?;
    let latest = Contest::new(
        format!("latest of {} sessions, warm", many.count),
        Unit::Milliseconds,
        time(Finder::Latest),
    )
    .peer("bare folder walk with stat", Bar::Shown, time(Finder::Walk))
    .run(bench)?;
    let unread = |what, finder| {
        let read = |_: &Path| Ok(kibibytes(many.send(finder)?.log_bytes_read));
        Contest::new(what, Unit::Kibibytes, read).peer("nothing", Bar::AtMost(1.0), |_| Ok(0.0)).run(bench)
    };
    let by_list = unread("logs read by that list", Finder::List)?;
    let by_latest = unread("logs read by that latest", Finder::Latest)?;
    let mut rows = vec![listed, latest, by_list, by_latest];
    rows.extend(after_kills(bench, &many)?);
    Ok(rows)
}

/// A store of many sessions, and their metadata in SQLite.
struct Many {
    root: PathBuf,
    sqlite: PathBuf,
    count: usize,
}

impl Many {
    fn build(bench: &Bench) -> Outcome<Self> {
        let count = bench.scale.sessions;
        let what = format!("making {count} sessions");
        let progress = Progress::begin(&what);
        let (root, sqlite, corpus) = (bench.fresh()?, bench.fresh()?, Corpus::new(10));
        let mut first = 0;
        // A store a time, so that each closes within its patience.
        for numbers in (1..count).collect::<Vec<_>>().chunks(500) {
            let store = ours::careless_store(&root);
            for number in numbers {
                create(&store, *number, corpus, first)?;
                first += FEW;
            }
            store.close()?;
        }
        let store = ours::careless_store(&root);
        ours::create_with(&store, GROWING, &corpus.lines(0..GROWN.min(bench.scale.long)))?;
        store.close()?;
        let mut documents = Vec::with_capacity(count);
        for folder in std::fs::read_dir(root.join("sessions"))? {
            documents.push(std::fs::read(folder?.path().join("metadata.json"))?);
        }
        Sqlite::create(&sqlite, Synchronous::Off)?.append(&documents, [count])?;
        bench.ground.settle()?;
        progress.end();
        Ok(Self { root, sqlite, count })
    }

    fn send(&self, finder: Finder) -> Outcome<Answer> {
        let root = if finder == Finder::Sqlite { &self.sqlite } else { &self.root };
        let expected = if finder == Finder::Latest { 1 } else { self.count as u64 };
        Errand::Find { finder, root: root.clone() }.send(expected)
    }
}

fn create(store: &Store, number: usize, corpus: Corpus, first: usize) -> Outcome<()> {
    let new = NewSession::at(format!("/home/ada/project-{}", number % 100))
        .id(format!("session-{number}").parse()?);
    let session = pollster::block_on(store.create(new))?;
    ours::append(&session, &corpus.lines(first..first + FEW))
}

/// Kills a writer in each round, and looks right after that.
fn after_kills(bench: &Bench, many: &Many) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, finder) in [("list", Finder::List), ("latest", Finder::Latest)] {
        let what = format!("{name} right after kill -9 of a writer");
        let progress = Progress::begin(&what);
        let (mut times, mut walks) = (Samples::default(), Samples::default());
        let (mut read, mut appended) = (Samples::default(), Samples::default());
        for round in 1..=bench.scale.rounds {
            progress.round(round, bench.scale.rounds);
            let added = kill_a_writer(&many.root)?;
            let answer = many.send(finder)?;
            times.push(answer.seconds * 1e3);
            walks.push(many.send(Finder::Walk)?.seconds * 1e3);
            read.push(kibibytes(answer.log_bytes_read));
            appended.push(kibibytes(added) + GLIMPSE_KIBIBYTES);
        }
        progress.end();
        let tail = "what the writer had appended, and 64 KiB";
        rows.push(Row::new(format!("logs read by {what}"), Unit::Kibibytes, read).against(
            tail,
            &appended,
            Bar::AtMost(1.0),
        ));
        rows.push(Row::new(what, Unit::Milliseconds, times).against(
            "bare folder walk with stat",
            &walks,
            Bar::Shown,
        ));
    }
    Ok(rows)
}

/// Starts a writer, kills it while it writes, and returns how much it had written.
fn kill_a_writer(root: &Path) -> Outcome<u64> {
    let log = root.join("sessions").join(GROWING).join("messages.jsonl");
    let before = length(&log)?;
    let mut writer = Errand::AppendUntilKilled { root: root.to_owned(), session: GROWING.into() }.start()?;
    let acknowledged = writer.stdout.take().ok_or("the writer has no standard output")?;
    let seen = BufReader::new(acknowledged).lines().take(KILLED_AFTER).count();
    writer.kill()?;
    writer.wait()?;
    match seen {
        KILLED_AFTER => Ok(length(&log)? - before),
        _ => Err("the writer ended before it was killed".into()),
    }
}

/// Appends until the process is killed, several entries at a time, and says so for each.
pub(crate) fn append_until_killed(root: &Path, session: &str) -> Outcome<Answer> {
    let store = ours::store(root, Durability::Synced);
    let session = ours::open(&store, session)?;
    let corpus = Corpus::new(u64::from(std::process::id()));
    for count in (0..).step_by(TASKS) {
        for entry in entries(&corpus.lines(count..count + TASKS))? {
            pollster::block_on(async { session.append(entry).await?.await })?;
            ui::acknowledge(count)?;
        }
    }
    Ok(Answer::default())
}

/// Looks for sessions, in this process, and counts what it reads of their logs.
pub(crate) fn find(finder: Finder, root: &Path) -> Outcome<Answer> {
    let disk = CountingDisk::default();
    let (seconds, found) = seconds(|| match finder {
        Finder::List | Finder::Latest => {
            let store = ours::store_on(Arc::new(disk.clone()), root, Durability::Synced);
            if finder == Finder::List {
                return Ok(pollster::block_on(store.list(&Filter::default()))?.sessions.len());
            }
            let place = Scope::Directory("/home/ada/project-7".into());
            Ok(usize::from(pollster::block_on(store.latest(&place))?.is_some()))
        }
        Finder::Walk => walk(root),
        Finder::Naive => naive::list(&root.join("sessions")),
        Finder::Sqlite => {
            let mut found: Vec<Value> = Vec::new();
            Sqlite::open(root)?.read(|body| {
                found.push(serde_json::from_slice(body)?);
                Ok(())
            })?;
            Ok(found.len())
        }
    })?;
    Ok(Answer { seconds, found: found as u64, log_bytes_read: disk.log_bytes_read(), ..Answer::default() })
}

/// Every folder, and how long each log is and since when.
fn walk(root: &Path) -> Outcome<usize> {
    let mut count = 0;
    for folder in std::fs::read_dir(root.join("sessions"))? {
        let stat = std::fs::symlink_metadata(folder?.path().join("messages.jsonl"))?;
        std::hint::black_box((stat.len(), stat.modified()?));
        count += 1;
    }
    Ok(count)
}

fn kibibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

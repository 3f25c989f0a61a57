//! Finding sessions among many.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rethread_store::backend::Durability;
use rethread_store::{Filter, NewSession, Scope, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::killed_writer;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::Corpus;
use crate::counting_disk::CountingDisk;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::ours;
use crate::peers::naive;
use crate::peers::sqlite::{Sqlite, Synchronous};
use crate::row::{Row, Unit};
use crate::stopwatch::seconds;
use crate::ui::Progress;

/// Entries of a session among many.
const FEW: usize = 3;
/// The session that a writer is killed on, and how long it was before.
pub(super) const GROWING: &str = "growing";
const GROWN: usize = 2000;

/// Who looks for sessions, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Finder {
    /// The store, all of them.
    List,
    /// The store, the latest of one directory.
    Latest,
    /// The same of the directory of the session whose writer is killed.
    LatestOfKilled,
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
    rows.extend(killed_writer::run(bench, &many)?);
    Ok(rows)
}

/// A store of many sessions, and their metadata in SQLite.
pub(super) struct Many {
    pub(super) root: PathBuf,
    sqlite: PathBuf,
    count: usize,
}

impl Many {
    fn build(bench: &Bench) -> Outcome<Self> {
        let count = bench.scale.sessions;
        let progress = Progress::begin(format!("making {count} sessions"));
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

    pub(super) fn send(&self, finder: Finder) -> Outcome<Answer> {
        let root = if finder == Finder::Sqlite { &self.sqlite } else { &self.root };
        let expected = match finder {
            Finder::Latest | Finder::LatestOfKilled => 1,
            _ => self.count as u64,
        };
        Errand::Find { finder, root: root.clone() }.send(expected)
    }
}

fn create(store: &Store, number: usize, corpus: Corpus, first: usize) -> Outcome<()> {
    let new = NewSession::at(format!("/home/ada/project-{}", number % 100))
        .id(format!("session-{number}").parse()?);
    let session = pollster::block_on(store.create(new))?;
    ours::append(&session, &corpus.lines(first..first + FEW))
}

/// Looks for sessions, in this process, and counts what it reads of their logs.
pub(crate) fn find(finder: Finder, root: &Path) -> Outcome<Answer> {
    let disk = CountingDisk::default();
    let store = || ours::store_on(Arc::new(disk.clone()), root, Durability::Synced);
    let (seconds, found) = seconds(|| match finder {
        Finder::List => Ok(pollster::block_on(store().list(&Filter::default()))?.sessions.len()),
        Finder::Latest => {
            let place = Scope::Directory("/home/ada/project-7".into());
            Ok(usize::from(pollster::block_on(store().latest(&place))?.is_some()))
        }
        Finder::LatestOfKilled => {
            let latest = pollster::block_on(store().latest(&Scope::Directory(ours::DIRECTORY.into())))?;
            Ok(usize::from(latest.is_some_and(|latest| latest.id().as_str() == GROWING)))
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

pub(super) fn kibibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

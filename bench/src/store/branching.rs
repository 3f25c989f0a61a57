//! A session's end and a fork of it, by a process that has just begun: neither may depend on the session's length.

use std::path::Path;

use rethread_store::backend::Durability;
use rethread_store::{Fork, Page};

use super::long_store::{LAST, LongStore};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::ours;
use crate::peers::sqlite::Sqlite;
use crate::row::{Row, Unit};
use crate::stopwatch::seconds;

/// Measures the newest entries and forks, of the long session against short ones.
pub(crate) fn run(bench: &Bench, long: &LongStore) -> Outcome<Vec<Row>> {
    let last = |session: &'static str| {
        let errand = Errand::Last { root: long.root.clone(), session: session.into(), count: LAST };
        move |_: &Path| milliseconds(&errand, LAST as u64)
    };
    let sqlite = Errand::LastOfSqlite { folder: long.sqlite.clone(), count: LAST };
    let count = bench.scale.long;
    let end =
        Contest::new(format!("last 50 of {count} entries, cold process"), Unit::Milliseconds, last("long"))
            .peer("the same of 100 entries", Bar::AtMost(2.0), last("short"))
            .peer("SQLite", Bar::Shown, move |_| milliseconds(&sqlite, LAST as u64))
            .run_rounds(bench.scale.many_rounds, bench)?;
    let branch = |what| {
        Contest::new(what, Unit::Milliseconds, last("long-branch"))
            .peer("the same of 100 entries", Bar::AtMost(2.0), last("short-branch"))
            .run_rounds(bench.scale.many_rounds, bench)
    };
    let indexed = branch("last 50, their parent 200 MB back, with the index")?;
    let index = long.root.join("sessions/long-branch/messages.ids");
    std::fs::rename(&index, index.with_extension("aside"))?;
    let unindexed = branch("last 50, their parent 200 MB back, without the index")?;
    std::fs::rename(index.with_extension("aside"), &index)?;
    let fork = |session: &'static str, at: &str| {
        let errand = Errand::Fork { root: long.root.clone(), session: session.into(), at: at.into() };
        move |_: &Path| milliseconds(&errand, 1)
    };
    let what = format!("fork at the middle of {count} entries, cold process");
    let forked = Contest::new(what, Unit::Milliseconds, fork("long", &long.middle))
        .peer("the same of 10 entries", Bar::AtMost(2.0), fork("ten", &long.middle_of_ten))
        .run_rounds(bench.scale.many_rounds, bench)?;
    Ok(vec![end, indexed, unindexed, forked])
}

fn milliseconds(errand: &Errand, expected: u64) -> Outcome<f64> {
    Ok(errand.send(expected)?.seconds * 1e3)
}

/// Reads a session's newest entries, in this process.
pub(crate) fn last(root: &Path, session: &str, count: usize) -> Outcome<Answer> {
    let (seconds, found) = seconds(|| {
        let store = ours::store(root, Durability::Synced);
        let session = ours::open(&store, session)?;
        let page = pollster::block_on(session.page(Page::Last(count)))?;
        Ok(page.records.len() as u64)
    })?;
    Ok(Answer { seconds, found, ..Answer::default() })
}

/// Reads the newest entries of a database, in this process.
pub(crate) fn last_of_sqlite(folder: &Path, count: usize) -> Outcome<Answer> {
    let (seconds, found) = seconds(|| Sqlite::open(folder)?.last(count))?;
    Ok(Answer { seconds, found: found as u64, ..Answer::default() })
}

/// Forks a session, in this process: until the fork is durable.
pub(crate) fn fork(root: &Path, session: &str, at: &str) -> Outcome<Answer> {
    let store = ours::store(root, Durability::Synced);
    let (seconds, _fork) = seconds(|| {
        let session = ours::open(&store, session)?;
        Ok(pollster::block_on(session.fork(Fork::default().at(at.parse()?)))?)
    })?;
    store.close()?;
    Ok(Answer { seconds, found: 1, ..Answer::default() })
}

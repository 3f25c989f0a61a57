//! Finding sessions right after the process that wrote one of them was killed.

use std::io::{BufRead, BufReader};
use std::path::Path;

use rethread_store::backend::Durability;

use super::listing::{Finder, GROWING, Many, kibibytes};
use crate::bar::Bar;
use crate::bench::{Bench, length};
use crate::corpus::{Corpus, entries};
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::neighbours::Neighbours;
use crate::ours;
use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::ui::{self, Progress};

/// How many entries the writer has acknowledged when it is killed.
const KILLED_AFTER: usize = 100;
/// What finding the place where the new records begin may read besides them.
const GLIMPSE_KIBIBYTES: f64 = 128.0;
/// How many entries the writer makes at a time.
const SOME: usize = 64;

/// Kills a writer in each round, and looks right after that.
pub(super) fn run(bench: &Bench, many: &Many) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, finder) in [("list", Finder::List), ("latest", Finder::LatestOfKilled)] {
        let what = format!("{name} right after kill -9 of a writer");
        let progress = Progress::begin(what.clone());
        let (mut times, mut walks) = (Samples::default(), Samples::default());
        let (mut read, mut appended) = (Samples::default(), Samples::default());
        let neighbours = Neighbours::watch()?;
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
        let others = neighbours.share()?;
        let read = Row::new(format!("logs read by {what}"), Unit::Kibibytes, read);
        rows.push(read.against("what the writer had appended, and 128 KiB", &appended, Bar::AtMost(1.0)));
        let timed = Row::new(what, Unit::Milliseconds, times).disturbed(others);
        rows.push(timed.against("bare folder walk with stat", &walks, Bar::Shown));
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

/// Appends until the process is killed, and acknowledges each entry.
pub(crate) fn append_until_killed(root: &Path, session: &str) -> Outcome<Answer> {
    let store = ours::store(root, Durability::Synced);
    let session = ours::open(&store, session)?;
    let corpus = Corpus::new(u64::from(std::process::id()));
    for first in (0..).step_by(SOME) {
        for entry in entries(&corpus.lines(first..first + SOME))? {
            pollster::block_on(async { session.append(entry).await?.await })?;
            ui::acknowledge(first)?;
        }
    }
    Ok(Answer::default())
}

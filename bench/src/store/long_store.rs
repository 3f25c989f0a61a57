//! One long session and short ones beside it, made once and read by many rounds.

use std::path::PathBuf;

use bytes::Bytes;
use redb::Durability as RedbDurability;
use rethread_store::view::Message;

use crate::bench::{Bench, length};
use crate::corpus::Corpus;
use crate::failure::Outcome;
use crate::ours;
use crate::peers::redb::Redb;
use crate::peers::sqlite::{Sqlite, Synchronous};
use crate::typed_entry::Weight;
use crate::ui::Progress;

/// How many entries are asked for when a session's end is read.
pub(crate) const LAST: usize = 50;
const SHORT: usize = 100;
/// Entries of a branch, fewer than are read: the others are where it branched off.
const BRANCH: usize = 20;

/// The sessions, and the same entries in each database.
///
/// * `long`, and `short`, which ends with the same hundred entries;
/// * `ten`, with ten entries;
/// * `long-branch`, whose last twenty entries follow one that four fifths of the log lie behind, and `short-branch`,
///   whose end is the same.
pub(crate) struct LongStore {
    pub(crate) root: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) sqlite: PathBuf,
    pub(crate) redb: PathBuf,
    pub(crate) log_mebibytes: f64,
    /// How many records the long session's log has: its entries, and the note that it began.
    pub(crate) records: u64,
    /// How much its entries say.
    pub(crate) weight: u64,
    pub(crate) middle: String,
    pub(crate) middle_of_ten: String,
}

impl LongStore {
    /// Makes everything.
    pub(crate) fn build(bench: &Bench) -> Outcome<Self> {
        let progress = Progress::begin("making the long session");
        let (corpus, count) = (Corpus::new(8), bench.scale.long);
        let lines = corpus.lines(0..count);
        let root = bench.fresh()?;
        let store = ours::careless_store(&root);
        ours::create_with(&store, "long", &lines)?;
        ours::create_with(&store, "short", &lines[count - SHORT..])?;
        ours::create_with(&store, "ten", &lines[..10])?;
        let (fork, branch) = (count / 5, Corpus::new(9).lines(0..BRANCH));
        let near = [&lines[fork + 1 + 2 * BRANCH - SHORT..=fork], &lines[fork + 1..=fork + BRANCH]].concat();
        for (name, trunk) in [("long-branch", &lines[..]), ("short-branch", &near[..])] {
            let session = ours::create_with(&store, name, trunk)?;
            let at = pollster::block_on(session.at(&corpus.uuid(fork).parse()?))?;
            ours::append(&at, &branch)?;
        }
        store.close()?;
        let (sqlite, redb) = databases(bench, &lines)?;
        bench.ground.settle()?;
        progress.end();
        let log = root.join("sessions/long/messages.jsonl");
        Ok(Self {
            log_mebibytes: length(&log)? as f64 / 1_048_576.0,
            records: count as u64 + 1,
            weight: weight(&lines),
            middle: corpus.uuid(count / 2),
            middle_of_ten: corpus.uuid(5),
            root,
            log,
            sqlite,
            redb,
        })
    }
}

fn databases(bench: &Bench, lines: &[Bytes]) -> Outcome<(PathBuf, PathBuf)> {
    let (sqlite, redb) = (bench.fresh()?, bench.fresh()?);
    Sqlite::create(&sqlite, Synchronous::Off)?.append(lines, [lines.len()])?;
    Redb::create(&redb)?.append(lines, [lines.len()], RedbDurability::Immediate)?;
    Ok((sqlite, redb))
}

fn weight(lines: &[Bytes]) -> u64 {
    let mut weight = Weight::default();
    lines.iter().filter_map(|line| Message::of(line)).for_each(|message| weight.add_view(&message));
    weight.0
}

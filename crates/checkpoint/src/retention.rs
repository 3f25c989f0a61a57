//! Giving up old checkpoints: by age, by number and by size, but never what is pinned.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use rethread_store::{BlobId, EntryId, Mode, Session};

use crate::checkpointer::Checkpointer;
use crate::error::Result;
use crate::log::Log;
use crate::record::{Checkpoint, Pin, Retire, What};

/// What may be given up. Each limit that is set counts; the oldest go first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Checkpoints that are older than this.
    pub older_than: Option<Duration>,
    /// All but this many.
    pub keep: Option<usize>,
    /// As many as it takes until the contents of the rest have at most this size.
    pub bytes: Option<u64>,
}

/// Whether a checkpoint is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is, and with it all that came after it.
    Pinned,
    /// It goes when its time has come.
    Free,
}

/// What was, or would be, given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retired {
    /// These checkpoints: files can no longer be rewound to them.
    pub checkpoints: Vec<EntryId>,
}

impl Checkpointer {
    /// Says whether a checkpoint is to be kept. Going back to it needs all that came after it, so that is kept too.
    pub async fn pin(&self, checkpoint: &EntryId, keep: Keep) -> Result<()> {
        self.settle().await?;
        if !self
            .with_log(|log| log.records.iter().any(|record| record.is_capture() && record.id == *checkpoint))
        {
            return Err(self.no_such_point(checkpoint));
        }
        let mut record = Checkpoint::new(EntryId::generate(), What::Pin);
        record.pin = Some(Pin { checkpoint: checkpoint.clone(), pinned: keep == Keep::Pinned });
        self.record(record).await.map(drop)
    }
}

/// Gives up old checkpoints of a session, or only says which. Their contents go with the next clean-up of the store.
pub async fn retire(session: &Session, retention: &Retention, mode: Mode) -> Result<Retired> {
    let log = Log::read(session.store().backend(), session.id()).await?;
    let (retired, cut) = retired(&log, retention);
    if let (Some(retire), Mode::Apply) = (cut, mode) {
        let mut record = Checkpoint::new(EntryId::generate(), What::Retire);
        record.retire = Some(retire);
        session.append_checkpoint(record.entry()?).await?;
    }
    Ok(retired)
}

fn retired(log: &Log, retention: &Retention) -> (Retired, Option<Retire>) {
    let live = log.live();
    let captures: Vec<&Checkpoint> = live.iter().filter(|record| record.is_capture()).collect();
    let pinned = pins(log);
    // Going back to a checkpoint needs every record since, so only a beginning of the log can be given up.
    let may_go = captures.iter().position(|record| pinned.contains(&record.id)).unwrap_or(captures.len());
    let cut = wanted(&captures, retention).min(may_go);
    let checkpoints = captures[..cut].iter().map(|record| record.id.clone()).collect();
    let Some(last) = cut.checked_sub(1).map(|last| captures[last]) else {
        return (Retired::default(), None);
    };
    // What the tree was is the ground that later captures stand on, and what was handed over last may yet be taken.
    let newest = |is: fn(&Checkpoint) -> bool| live.iter().rev().find(|record| is(record));
    let keep = [newest(|record| record.tree.is_some()), newest(|record| record.what == What::Handoff)];
    let keep = keep.into_iter().flatten().map(|record| record.position);
    let keep = keep.filter(|position| *position <= last.position).collect();
    (Retired { checkpoints }, Some(Retire { before: last.position + 1, keep }))
}

/// Returns how many of the oldest should go.
fn wanted(captures: &[&Checkpoint], retention: &Retention) -> usize {
    let now = Timestamp::now();
    let old = |record: &&&Checkpoint, age: Duration| {
        record.created_at < now && now.duration_since(record.created_at).unsigned_abs() > age
    };
    let by_age =
        retention.older_than.map_or(0, |age| captures.iter().take_while(|record| old(record, age)).count());
    let by_number = retention.keep.map_or(0, |keep| captures.len().saturating_sub(keep));
    let by_size = retention.bytes.map_or(0, |limit| {
        let (mut seen, mut sum) = (HashSet::new(), 0);
        let fits = captures.iter().rev().take_while(|record| {
            sum += contents(record).filter(|(hash, _)| seen.insert(*hash)).map(|(_, size)| size).sum::<u64>();
            sum <= limit
        });
        captures.len() - fits.count()
    });
    by_age.max(by_number).max(by_size)
}

fn contents(record: &Checkpoint) -> impl Iterator<Item = (BlobId, u64)> {
    let states = record.changes.iter().flat_map(|change| change.before.iter().chain(&change.after));
    states.filter_map(|state| state.file()).map(|file| (file.hash, file.size))
}

fn pins(log: &Log) -> HashSet<EntryId> {
    let mut pinned = HashSet::new();
    for pin in log.records.iter().filter_map(|record| record.pin.as_ref()) {
        match pin.pinned {
            true => drop(pinned.insert(pin.checkpoint.clone())),
            false => drop(pinned.remove(&pin.checkpoint)),
        }
    }
    pinned
}

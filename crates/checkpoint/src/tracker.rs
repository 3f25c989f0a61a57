//! What is known of a tree between two captures, and how it is found again: from the cache, or from the log.

use std::collections::BTreeSet;
use std::io::Write;

use rethread_store::backend::Position;
use serde::{Deserialize, Serialize};

use crate::cache;
use crate::checkpointer::Checkpointer;
use crate::contents::Contents;
use crate::error::{Error, Result};
use crate::known::{Item, Known, find, split};
use crate::look::Print;
use crate::path::TreePath;
use crate::record::{Baseline, Checkpoint};
use crate::state::State;

/// From how many changes on the cache is written again; what it misses is only read again.
pub(crate) const STALE: usize = 64;

/// What is known of the tree between two captures.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub(crate) known: Known,
    /// The log up to here is taken in.
    pub(crate) position: Position,
    /// Whether a record of this session says what the whole tree was.
    pub(crate) baseline: bool,
    /// How many changes the cache has missed.
    pub(crate) stale: usize,
}

/// A path of a baseline's list.
#[derive(Serialize, Deserialize)]
struct Listed {
    path: TreePath,
    state: State,
}

impl Checkpointer {
    /// Stores the list of everything that is known.
    pub(crate) async fn list(&self, known: &Known) -> Result<Baseline> {
        let failed = |error: std::io::Error| Error::io("list", self.root_path())(error);
        let mut list = zstd::stream::Encoder::new(Vec::new(), 1).map_err(failed)?;
        let all = known.all();
        for (path, state) in &all {
            let line = serde_json::to_vec(&Listed { path: path.clone(), state: (*state).clone() });
            list.write_all(&line.unwrap_or_default()).and_then(|()| list.write_all(b"\n")).map_err(failed)?;
        }
        let list = self.contents().put(list.finish().map_err(failed)?).await?;
        Ok(Baseline { list, paths: all.len() as u64, holds: known.holds().into_iter().collect() })
    }

    /// Finds out what is known, from the cache or from the log.
    pub(crate) async fn load_tracker(&self) -> Result<Tracker> {
        let cached = cache::read(self);
        let recorded = self.with_log(|log| {
            log.live().into_iter().rev().find(|record| record.tree.is_some() && self.is_here(record))
        });
        match (cached, recorded) {
            (Some((true, tracker)), Some(_)) if tracker.baseline => Ok(tracker),
            (hint, Some(record)) => self.read_list(&record, hint.map(|(_, tracker)| tracker.known)).await,
            (Some((_, hint)), None) => self.begin_with(hint.known).await,
            (None, None) => Ok(Tracker::default()),
        }
    }

    /// Reads the list of a baseline; what looks as another session knows it need not be read again.
    async fn read_list(&self, record: &Checkpoint, hint: Option<Known>) -> Result<Tracker> {
        let Some(baseline) = &record.tree else { return Ok(Tracker::default()) };
        let mut known = Known::default();
        for (path, state) in listed(self.contents(), baseline).await? {
            let (folder, name) = split(&path);
            let mut item = Item::new(name, state, Print::default(), 0);
            if let Some(seen) = hint
                .as_ref()
                .and_then(|hint| find(hint, folder, name))
                .filter(|seen| seen.state.same(&item.state))
            {
                (item.print, item.young) = (seen.print, seen.young);
            }
            known.folders.entry(folder.into()).or_default().push(item);
        }
        let left_out =
            |record: &Checkpoint| record.left_out.iter().map(|left| left.path.clone()).collect::<Vec<_>>();
        known.left_out = self.with_log(|log| log.records.iter().flat_map(left_out).collect());
        Ok(Tracker { known, position: record.position + 1, baseline: true, stale: STALE })
    }

    /// Begins with what another session knows, as far as its contents are still there.
    async fn begin_with(&self, mut known: Known) -> Result<Tracker> {
        let mut missing = BTreeSet::new();
        for blob in known.holds() {
            // Made young: nothing refers to it yet on behalf of this session.
            if !self.contents().backend().refresh_blob(&blob).await? {
                missing.insert(blob);
            }
        }
        known.forget(&missing);
        known.left_out.clear();
        known.folders.values_mut().flatten().for_each(|item| item.open = false);
        Ok(Tracker { known, ..Tracker::default() })
    }
}

/// Returns every path of a baseline's list with its state.
pub(crate) async fn listed(contents: &Contents, baseline: &Baseline) -> Result<Vec<(TreePath, State)>> {
    let lost = |reason: String| rethread_store::Error::Damaged {
        what: "the list of a whole-tree capture".into(),
        reason,
    };
    let packed = contents.backend().get_blob(&baseline.list, 0..u64::MAX).await?;
    let packed = packed.ok_or_else(|| lost("it is missing".into()))?;
    let list = zstd::stream::decode_all(&packed[..]).map_err(|error| lost(error.to_string()))?;
    let lines = list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = |line| serde_json::from_slice(line).map(|Listed { path, state }| (path, state));
    Ok(lines.map(read).collect::<std::result::Result<_, _>>().map_err(|error| lost(error.to_string()))?)
}

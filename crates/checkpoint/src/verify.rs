//! Looking for contents that checkpoints refer to and that are missing or damaged.

use std::collections::{BTreeMap, HashMap};

use rethread_store::{BlobId, EntryId, SessionId, Store};

use crate::contents::Contents;
use crate::error::Result;
use crate::log::Log;
use crate::path::TreePath;
use crate::record::Checkpoint;

/// Content that a session's checkpoints refer to and that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Under which name it should be in the store.
    pub blob: BlobId,
    /// What is wrong with it.
    pub reason: String,
    /// The first checkpoint that refers to it.
    pub checkpoint: EntryId,
    /// The paths that cannot be restored to it; none if it is the list of a whole tree.
    pub paths: Vec<TreePath>,
}

/// What was looked at so far: contents are shared, and none is read twice.
#[derive(Debug, Default)]
pub struct Looked(HashMap<BlobId, Option<String>>);

/// Reads every content that a session's checkpoints refer to, and returns what is missing or damaged.
pub async fn verify(store: &Store, session: &SessionId, looked: &mut Looked) -> Result<Vec<Lost>> {
    let contents = Contents::of(store.backend());
    let records = Log::read(store.backend(), session).await?.live();
    let mut lost: BTreeMap<BlobId, Lost> = BTreeMap::new();
    for record in &records {
        for (blob, path) in references(record) {
            let reason = match looked.0.get(&blob) {
                Some(reason) => reason.clone(),
                None => {
                    let reason = contents.flaw(&blob).await?;
                    looked.0.insert(blob, reason.clone());
                    reason
                }
            };
            let Some(reason) = reason else { continue };
            let found = lost.entry(blob).or_insert_with(|| {
                let (checkpoint, paths) = (record.id.clone(), Vec::new());
                Lost { blob, reason, checkpoint, paths }
            });
            found.paths.extend(path.filter(|path| !found.paths.contains(path)).cloned());
        }
    }
    Ok(lost.into_values().collect())
}

/// Returns every blob that a record refers to, and for which path.
fn references(record: &Checkpoint) -> impl Iterator<Item = (BlobId, Option<&TreePath>)> {
    let files = record.changes.iter().flat_map(|change| {
        let states = change.before.iter().chain(&change.after).filter_map(|state| state.file());
        states.map(|file| (file.place.map_or(file.hash, |place| place.pack), Some(&change.path)))
    });
    let tree = record.tree.iter().flat_map(|tree| std::iter::once(&tree.list).chain(&tree.holds));
    files.chain(tree.map(|blob| (*blob, None)))
}

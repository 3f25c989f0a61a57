//! What a rewind goes back to.

use rethread_store::EntryId;
use serde::{Deserialize, Serialize};

use crate::record::{Checkpoint, Source, What};

/// What a rewind goes back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The state of files at a checkpoint, or at the beginning of a user message's turn.
    At(EntryId),
    /// The state of files before one turn, for those that the turn changed; what other turns did is kept.
    Turn(EntryId),
    /// The state of files before a rewind.
    Undo(EntryId),
}

impl Point {
    /// Returns the checkpoint, message or receipt.
    pub fn id(&self) -> &EntryId {
        match self {
            Point::At(id) | Point::Turn(id) | Point::Undo(id) => id,
        }
    }
}

/// Returns the first record that counts for a rewind to a checkpoint or to a message.
///
/// Files are as a capture found them: before the change that it was made for, after the changes that it reports. So
/// the point is before the one and after the other.
pub(crate) fn find(records: &[Checkpoint], point: &EntryId) -> Option<usize> {
    let captures = || records.iter().enumerate().filter(|(_, record)| record.is_capture());
    if let Some((at, record)) = captures().find(|(_, record)| record.id == *point) {
        return Some(if record.what == What::Before { at } else { at + 1 });
    }
    // Where not even the first capture of a turn was made, that it was not is where the turn begins.
    let is_of_it = |record: &Checkpoint| {
        (record.is_capture() || record.what == What::Missed) && record.message.as_ref() == Some(point)
    };
    let (at, record) = records.iter().enumerate().find(|(_, record)| is_of_it(record))?;
    // What a capture found before any tool of the turn ran had happened before the turn.
    let idle =
        record.what == What::Tree && record.changes.iter().all(|change| change.source == Source::Outside);
    Some(if idle { at + 1 } else { at })
}

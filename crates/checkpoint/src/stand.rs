//! How far a path has come from one state to another.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::look::{Seen, look_past};
use crate::path::TreePath;
use crate::root::Root;
use crate::state::State;
use crate::work::Move;

/// How far a path has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It is what it was.
    Back,
    /// It is on its way from the one to the other.
    Midway,
    /// It is what it is to be.
    There,
    /// It is neither: somebody else changed it.
    Elsewhere,
}

/// Returns the folders among these that come or go: without them nothing is in them, whatever takes their place.
pub(crate) fn replaced(moves: &[Move]) -> BTreeSet<TreePath> {
    let folders = moves.iter().filter(|step| step.to.is_folder() != step.from.is_folder());
    folders.map(|step| step.path.clone()).collect()
}

/// Returns which of two states a path is in now. Too few open files, or too little memory, tell nothing about a path: it
/// must not be taken for somebody else's.
pub(crate) fn stand(root: &Root, step: &Move, replaced: &BTreeSet<TreePath>) -> Result<(Stand, Seen)> {
    let seen = look_past(root, &step.path, replaced, u64::MAX);
    let seen = seen.or_short_of(root, &step.path)?;
    let stand = match () {
        () if seen.state.same(&step.to) => Stand::There,
        () if seen.state.same(&step.from) => Stand::Back,
        // Between a file and a folder there is a moment with neither, and a new folder gets its mode a moment later.
        () if step.from.is_folder() != step.to.is_folder()
            && (seen.state == State::Absent || seen.state.is_folder()) =>
        {
            Stand::Midway
        }
        () => Stand::Elsewhere,
    };
    Ok((stand, seen))
}

//! How many lines a step adds and removes, as a diff would say.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::contents::Contents;
use crate::error::{Error, Result};
use crate::look::{SMALL, look};
use crate::plan::Step;
use crate::root::Root;
use crate::state::{Present, State};

/// Beyond this many lines on either side nobody reads the difference, and all of them count.
const MANY: usize = 50_000;

/// Counts lines added and removed. `None` for what has no lines: binary content, large files, links, folders.
pub(crate) async fn count(root: &Root, contents: &Contents, step: &Step) -> Result<Option<(u64, u64)>> {
    let old = match &step.now {
        State::Absent => Some(Vec::new()),
        State::Present(Present::File(_)) => look(root, &step.path, SMALL).bytes,
        _ => None,
    };
    let new = match &step.target {
        State::Absent => Some(Vec::new()),
        target => match contents.small(&step.path, target).await {
            // Whoever applies the plan is told; counting is no reason to refuse a look at it.
            Err(Error::NoContent { .. }) => None,
            content => content?,
        },
    };
    let (Some(old), Some(new)) = (old, new) else { return Ok(None) };
    // What git calls binary: a NUL somewhere at the beginning.
    let is_text = |bytes: &[u8]| !bytes.iter().take(8000).any(|byte| *byte == 0);
    if !is_text(&old) || !is_text(&new) {
        return Ok(None);
    }
    Ok(Some(difference(&old, &new)))
}

/// Returns how many lines come and how many go.
pub(crate) fn difference(old: &[u8], new: &[u8]) -> (u64, u64) {
    let lines = |bytes: &'_ [u8]| {
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let (old, new) = (lines(old), lines(new));
    if old.len() > MANY || new.len() > MANY {
        return (new.len() as u64, old.len() as u64);
    }
    let (mut added, mut removed) = (0, 0);
    for operation in capture_diff_slices(Algorithm::Myers, &old, &new) {
        match operation {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete { old_len, .. } => removed += old_len as u64,
            DiffOp::Insert { new_len, .. } => added += new_len as u64,
            DiffOp::Replace { old_len, new_len, .. } => {
                removed += old_len as u64;
                added += new_len as u64;
            }
        }
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_a_diff_counts_them() {
        for (old, new, expected) in [
            ("", "", (0, 0)),
            ("", "a\nb\n", (2, 0)),
            ("a\nb\n", "", (0, 2)),
            ("a\nb\nc\n", "a\nx\nc\n", (1, 1)),
            ("a\nb\nc\n", "a\nc\n", (0, 1)),
            ("a", "a\n", (1, 1)),
        ] {
            assert_eq!(difference(old.as_bytes(), new.as_bytes()), expected, "{old:?} {new:?}");
        }
    }
}

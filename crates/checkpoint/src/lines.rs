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
    if !is_text(&old) || !is_text(&new) {
        return Ok(None);
    }
    Ok(Some(difference(&old, &new)))
}

/// Returns the difference between two contents as a unified diff, or nothing where there are no lines to show. A side
/// that is not there has no content.
pub fn unified_diff(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Option<String> {
    let text = |bytes: Option<&[u8]>| Some(String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned());
    let name = |side: &str, there: bool| if there { format!("{side}/{path}") } else { "/dev/null".into() };
    if old.is_some_and(|bytes| !is_text(bytes)) || new.is_some_and(|bytes| !is_text(bytes)) {
        return None;
    }
    // Past this, what has little in common is not compared line by line any more; the diff is right all the same.
    let diff = similar::TextDiff::configure()
        .timeout(std::time::Duration::from_secs(1))
        .diff_lines(&text(old)?, &text(new)?)
        .unified_diff()
        .header(&name("a", old.is_some()), &name("b", new.is_some()))
        .to_string();
    Some(diff)
}

/// What git calls text: no NUL anywhere at the beginning.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(8000).any(|byte| *byte == 0)
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

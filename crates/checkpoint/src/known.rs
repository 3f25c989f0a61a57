//! What a whole-tree capture knows of a tree: the state that was recorded last for each path, and how to tell without
//! reading whether it is still so.

use std::collections::{BTreeSet, HashMap};

use rethread_store::BlobId;

use crate::defect::Defect;
use crate::look::Print;
use crate::path::TreePath;
use crate::record::Change;
use crate::state::State;

/// Times of files come from a clock that ticks this slowly at most, in nanoseconds.
const TICK: i64 = 20_000_000;
/// On file systems that keep whole seconds.
const COARSE_TICK: i64 = 2_000_000_000;

/// Everything known of a tree, by folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// What is in each folder, in the order in which the folder gives it; the root is the empty path.
    pub(crate) folders: HashMap<Box<[u8]>, Vec<Item>>,
    /// What was not looked at the last time: what comes to light there was not made by anybody just now.
    pub(crate) left_out: BTreeSet<TreePath>,
    /// Folders that a capture of their own found to be none any more: what was in them is gone too.
    pub(crate) vanished: Vec<TreePath>,
}

/// One name in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: Box<[u8]>,
    /// What was recorded last.
    pub(crate) state: State,
    /// What it looked like then.
    pub(crate) print: Print,
    /// Whether it can have changed since without looking different.
    pub(crate) young: bool,
    /// A tool named it and was about to change it; nobody has looked since.
    pub(crate) open: bool,
}

impl Item {
    pub(crate) fn new(name: &[u8], state: State, print: Print, scanned: i64) -> Self {
        Self { name: name.into(), state, print, young: is_young(&print, scanned), open: false }
    }

    /// Returns whether a look at it tells that it is as it was.
    pub(crate) fn is_still(&self, print: &Print) -> bool {
        self.print == *print && (!self.young || Defect::TrustYoungTimes.is_on())
    }
}

/// Returns whether a file changed so shortly before it was looked at that the next change may leave the same times.
fn is_young(print: &Print, scanned: i64) -> bool {
    let newest = print.modified.max(print.changed);
    let coarse = print.modified % 1_000_000_000 == 0 && print.changed % 1_000_000_000 == 0;
    let tick = if coarse { COARSE_TICK } else { TICK };
    newest.saturating_add(tick) >= scanned
}

impl Known {
    /// Takes in what was recorded of paths by other captures.
    pub(crate) fn learn(&mut self, changes: &[Change]) {
        for change in changes {
            let Some(state) = change.after.as_ref().or(change.before.as_ref()) else { continue };
            self.set(&change.path, state.clone(), change.after.is_none());
        }
    }

    fn set(&mut self, path: &TreePath, state: State, open: bool) {
        if !state.is_folder() && self.folders.contains_key(path.as_bytes()) {
            self.vanished.push(path.clone());
        }
        let (folder, name) = split(path);
        let items = self.folders.entry(folder.into()).or_default();
        let at = items.iter().position(|item| *item.name == *name);
        match (at, state) {
            (Some(at), State::Absent) if !open => drop(items.remove(at)),
            (Some(at), state) => {
                let item = &mut items[at];
                // As long as it is what it was, what it looks like still tells.
                if !item.state.same(&state) {
                    item.print = Print::default();
                }
                let place = item.state.file().and_then(|file| file.place);
                item.state = with_place(state, &item.state, place);
                item.open = open;
            }
            // What is absent and about to be made is remembered, so that it is known whose it is.
            (None, State::Absent) if !open => {}
            (None, state) => {
                let (name, print) = (name.into(), Print::default());
                items.push(Item { name, state, print, young: true, open });
            }
        }
    }

    /// Returns every path with its state, folders before what is in them.
    pub(crate) fn all(&self) -> Vec<(TreePath, &State)> {
        let mut all = Vec::new();
        for (folder, items) in &self.folders {
            for item in items {
                all.extend(join(folder, &item.name).map(|path| (path, &item.state)));
            }
        }
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Returns every blob that something of this is kept in.
    pub(crate) fn holds(&self) -> BTreeSet<BlobId> {
        let files = self.folders.values().flatten().filter_map(|item| item.state.file());
        files.map(|file| file.place.map_or(file.hash, |place| place.pack)).collect()
    }

    /// Forgets what is kept in blobs that are not there: it is read again.
    pub(crate) fn forget(&mut self, missing: &BTreeSet<BlobId>) {
        for item in self.folders.values_mut().flatten() {
            let lost =
                |file: &crate::File| missing.contains(&file.place.map_or(file.hash, |place| place.pack));
            if item.state.file().is_some_and(lost) {
                item.state = State::Unknown { why: "its content is no longer in the store".into() };
                item.print = Print::default();
            }
        }
    }
}

/// The same content is not kept twice: a state without a place keeps the one that is known.
fn with_place(mut state: State, known: &State, place: Option<crate::Place>) -> State {
    if let State::Present(crate::Present::File(file)) = &mut state
        && file.place.is_none()
        && known.file().is_some_and(|known| known.hash == file.hash)
    {
        file.place = place;
    }
    state
}

/// Returns what is known of a name in a folder.
pub(crate) fn find<'a>(known: &'a Known, folder: &[u8], name: &[u8]) -> Option<&'a Item> {
    known.folders.get(folder)?.iter().find(|item| *item.name == *name)
}

pub(crate) fn split(path: &TreePath) -> (&[u8], &[u8]) {
    let bytes = path.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&bytes[..slash], &bytes[slash + 1..]),
        None => (b"", bytes),
    }
}

/// Returns a path in a folder, if it is one that can be recorded.
pub(crate) fn join(folder: &[u8], name: &[u8]) -> Option<TreePath> {
    match folder {
        b"" => TreePath::parse(name).ok(),
        _ => TreePath::parse(&[folder, b"/", name].concat()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_until_its_times_are_older_than_the_scan_that_read_it() {
        let at = |modified, changed| Print { modified, changed, ..Print::default() };
        let scanned = 1_000_000_000_000_000_123;
        for (print, young) in [
            (at(scanned, scanned), true),
            (at(scanned + 5, scanned - TICK * 9), true),
            (at(scanned - TICK * 9, scanned - 5), true),
            (at(scanned - TICK * 2, scanned - TICK * 2), false),
            // Whole seconds: the clock of this file system may tick once in two of them.
            (at(999_999_000_000_000, 999_999_000_000_000), false),
            (at(1_000_000_000_000_000_000, 1_000_000_000_000_000_000), true),
        ] {
            assert_eq!(is_young(&print, scanned), young, "{print:?}");
        }
    }
}

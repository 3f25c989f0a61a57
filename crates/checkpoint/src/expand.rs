//! What a folder's name stands for: everything in it.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use crate::checkpointer::Checkpointer;
use crate::error::Result;
use crate::look::look_in;
use crate::path::TreePath;
use crate::root::says_absent;
use crate::state::State;

/// More than this is no folder that a tool was meant to change.
const MANY: usize = 20_000;

/// Adds a path, and if it is a folder everything in it. Returns what could not be added, in words.
pub(super) fn folder(
    checkpointer: &Checkpointer,
    path: &TreePath,
    paths: &mut BTreeSet<TreePath>,
) -> Result<Vec<String>> {
    let (root, mut missed, mut waiting) = (checkpointer.root()?, Vec::new(), Vec::new());
    paths.insert(path.clone());
    let parent = match root.parent_of(path) {
        Ok(parent) => parent,
        // What the path itself is, a look at it will say.
        Err(_) => return Ok(missed),
    };
    if !look_in(parent.as_fd(), path.name(), 0).state.is_folder() {
        return Ok(missed);
    }
    waiting.push(path.clone());
    while let Some(folder) = waiting.pop() {
        let names = root.open_folder(&folder).and_then(|opened| {
            let names =
                rustix::fs::Dir::read_from(&opened)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
            Ok((names.collect::<std::io::Result<Vec<_>>>()?, opened))
        });
        let (names, opened) = match names {
            Ok(names) => names,
            Err(error) if says_absent(&error) => continue,
            Err(error) => {
                missed.push(format!("{folder}: {error}"));
                continue;
            }
        };
        for name in names.iter().filter(|name| !matches!(&name[..], b"." | b"..")) {
            // A name that no path of ours can have is git's own.
            let Ok(path) = TreePath::parse(&[folder.as_bytes(), b"/", name].concat()) else { continue };
            if checkpointer.is_forbidden(&path) {
                continue;
            }
            if paths.len() >= MANY {
                missed.push(format!("{path} and more: the folder holds more than {MANY} paths"));
                return Ok(missed);
            }
            if let State::Present(crate::Present::Folder { .. }) =
                look_in(opened.as_fd(), path.name(), 0).state
            {
                waiting.push(path.clone());
            }
            paths.insert(path);
        }
    }
    Ok(missed)
}

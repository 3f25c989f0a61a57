//! Where the sessions of an older store are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Issue;
use super::source::{self, Source};
use crate::error::{Error, Result};

/// How far below the given folder a session may be: `projects/<project>/sessions/<id>`.
const LEVELS: usize = 4;

/// Returns the folders of all sessions, in order.
pub(super) fn sessions(path: &Path, issues: &mut Vec<Issue>) -> Result<Vec<PathBuf>> {
    let is_folder = std::fs::metadata(path).map_err(Error::io("open", path))?.is_dir();
    let mut found = Vec::new();
    if is_folder {
        search(path, LEVELS, &mut found, issues);
    }
    if found.is_empty() {
        let reason = "it holds no session folder with messages.jsonl or metadata.json".into();
        return Err(Error::BadImport { path: path.to_owned(), reason });
    }
    Ok(found)
}

fn search(folder: &Path, levels: usize, found: &mut Vec<PathBuf>, issues: &mut Vec<Issue>) {
    if Source::is_at(folder) {
        found.push(folder.to_owned());
        return;
    }
    if levels == 0 {
        return;
    }
    match folders_in(folder) {
        Ok(folders) => folders.iter().for_each(|folder| search(folder, levels - 1, found, issues)),
        Err(error) => issues.push(Issue::new(folder, format!("cannot be listed: {error}"))),
    }
}

/// Returns the folders in a folder, in order.
pub(super) fn folders_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Returns the memory of each project that has one, with the working directory of its newest session.
pub(super) fn memories(sessions: &[PathBuf]) -> Vec<(PathBuf, Option<PathBuf>)> {
    let mut memories = BTreeMap::new();
    for session in sessions {
        let sessions =
            session.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "sessions"));
        let Some(project) = sessions.and_then(Path::parent) else { continue };
        let memory = project.join("memory/summary.md");
        if !memory.is_file() {
            continue;
        }
        let place = source::place(session);
        let newest = memories.entry(memory).or_insert(None);
        *newest = place.max(newest.take());
    }
    memories.into_iter().map(|(path, place)| (path, place.map(|(_, cwd)| cwd))).collect()
}

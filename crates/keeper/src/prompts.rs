//! Prompts that were taken: each is written down until its turn has ended, so that it outlives the keeper.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::drive::Turn;
use crate::error::{Error, Result};
use crate::private_file;

/// Prompts that were taken and not answered: a folder for each session, and a file for each prompt, whose name says its
/// place in the line.
#[derive(Debug)]
pub(crate) struct Prompts {
    folder: PathBuf,
    last: AtomicU64,
}

impl Prompts {
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let folder = home.join("prompts");
        private_file::folder(&folder).map_err(Error::io("make", &folder))?;
        let sessions = fs::read_dir(&folder).map_err(Error::io("read", &folder))?;
        let prompts = sessions.flatten().flat_map(|session| names(&session.path()));
        let last = prompts.filter_map(|name| number(&name)).max().unwrap_or(0);
        Ok(Self { folder, last: AtomicU64::new(last) })
    }

    /// Writes a prompt down, behind all others of its session. It is durable when this returns.
    pub(crate) fn add(&self, session: &str, turn: &Turn) -> Result<()> {
        let folder = self.folder.join(session);
        private_file::folder(&folder).map_err(Error::io("make", &folder))?;
        private_file::sync(&self.folder).map_err(Error::io("sync", &self.folder))?;
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let path = folder.join(format!("{number:016}-{}.json", turn.client_message_id));
        let bytes = serde_json::to_vec(turn).unwrap_or_default();
        private_file::replace(&path, &bytes).map_err(Error::io("write", &path))
    }

    /// Forgets a prompt, because its turn has ended or somebody took it back.
    pub(crate) fn remove(&self, session: &str, message: &str) {
        let folder = self.folder.join(session);
        let suffix = format!("-{message}.json");
        for name in names(&folder).into_iter().filter(|name| name.ends_with(&suffix)) {
            if let Err(error) = fs::remove_file(folder.join(name)) {
                tracing::warn!(%error, session, prompt = message, "a prompt that was answered will be looked at once more");
            }
        }
        // Only an empty one goes.
        let _ = fs::remove_dir(&folder);
    }

    /// Returns the prompts of a session in the order in which they were taken.
    pub(crate) fn of(&self, session: &str) -> Vec<Turn> {
        let folder = self.folder.join(session);
        let mut names = names(&folder);
        names.sort_unstable();
        let turn = |name: String| {
            let turn = serde_json::from_slice(&fs::read(folder.join(&name)).ok()?);
            turn.inspect_err(|error| tracing::warn!(%error, session, name, "a prompt cannot be read")).ok()
        };
        names.into_iter().filter(|name| number(name).is_some()).filter_map(turn).collect()
    }
}

/// What lies in a folder, which need not be there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns a prompt's place in the line; `None` for what was never finished.
fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".json")?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Part;

    fn turn(id: &str) -> Turn {
        Turn { client_message_id: id.into(), parts: vec![Part::Text { text: id.into() }] }
    }

    fn ids(prompts: &Prompts) -> Vec<String> {
        prompts.of("s").into_iter().map(|turn| turn.client_message_id).collect()
    }

    #[test]
    fn prompts_keep_their_order_across_processes_and_nothing_stays_of_those_that_were_answered() {
        let home = tempfile::tempdir().unwrap();
        let prompts = Prompts::open(home.path()).unwrap();
        for id in ["b", "a", "c"] {
            prompts.add("s", &turn(id)).unwrap();
        }
        prompts.add("other", &turn("x")).unwrap();
        prompts.remove("s", "a");
        let prompts = Prompts::open(home.path()).unwrap();
        prompts.add("s", &turn("a")).unwrap();
        assert_eq!(ids(&prompts), ["b", "c", "a"]);
        for id in ["a", "b", "c"] {
            prompts.remove("s", id);
        }
        assert!(!home.path().join("prompts/s").try_exists().unwrap() && prompts.of("other").len() == 1);
    }

    #[test]
    fn a_prompt_that_was_never_wholly_written_is_none() {
        let home = tempfile::tempdir().unwrap();
        let prompts = Prompts::open(home.path()).unwrap();
        prompts.add("s", &turn("a")).unwrap();
        fs::write(home.path().join("prompts/s/0000000000000002-b.1.aside"), "{").unwrap();
        fs::write(home.path().join("prompts/s/0000000000000003-c.json"), "{").unwrap();
        assert_eq!(ids(&Prompts::open(home.path()).unwrap()), ["a"]);
    }
}

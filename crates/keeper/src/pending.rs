//! Sessions that were begun and have no transcript yet: written down, so that they outlive the keeper.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::drive::Begin;
use crate::error::{Error, Result};
use crate::private_file;

/// How many are kept. One that nobody ever says anything to is worth little.
const MOST: usize = 1_000;

/// Sessions that have no transcript yet.
#[derive(Debug)]
pub(crate) struct Pending {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<String, Begin>,
    /// Those that were deleted, as long as this keeper lives.
    deleted: BTreeMap<String, Begin>,
}

impl Pending {
    /// Reads what was written down. What makes no sense is nobody's loss but a name's: there is no conversation yet.
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let path = home.join("pending.json");
        let waiting = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(%error, "the sessions that were to begin cannot be read");
                BTreeMap::new()
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        Ok(Self { path, state: Mutex::new(State { waiting, deleted: BTreeMap::new() }) })
    }

    pub(crate) fn list(&self) -> Vec<Begin> {
        self.state().waiting.values().cloned().collect()
    }

    /// Writes a session down. It is durable when this returns.
    pub(crate) fn add(&self, begin: &Begin) -> Result<()> {
        let mut state = self.state();
        if state.waiting.len() >= MOST && !state.waiting.contains_key(&begin.session) {
            state.waiting.pop_first();
        }
        state.waiting.insert(begin.session.clone(), begin.clone());
        self.write(&state)
    }

    /// Forgets a session, because it has a transcript or will never have one.
    pub(crate) fn remove(&self, session: &str) -> Option<Begin> {
        let mut state = self.state();
        let begin = state.waiting.remove(session)?;
        if let Err(error) = self.write(&state) {
            tracing::warn!(%error, session, "a session that is no longer to begin will be shown once more");
        }
        Some(begin)
    }

    /// Forgets a session, and remembers how it was to begin.
    pub(crate) fn delete(&self, session: &str) -> bool {
        let Some(begin) = self.remove(session) else { return false };
        self.state().deleted.insert(session.to_owned(), begin);
        true
    }

    /// Takes a deleted one back, if it may be.
    pub(crate) fn restore(&self, session: &str, may_be: impl Fn(&Begin) -> bool) -> Option<Begin> {
        let begin = {
            let mut state = self.state();
            state.deleted.get(session).filter(|begin| may_be(begin))?;
            state.deleted.remove(session)?
        };
        if let Err(error) = self.add(&begin) {
            tracing::warn!(%error, session, "a session that is to begin cannot be written down");
        }
        Some(begin)
    }

    fn write(&self, state: &State) -> Result<()> {
        let bytes = serde_json::to_vec(&state.waiting).unwrap_or_default();
        private_file::replace(&self.path, &bytes).map_err(Error::io("write", &self.path))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

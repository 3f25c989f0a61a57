//! The states of sessions as they were last read, so that only what came since is read the next time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::{Backend, Key, Version};
use crate::error::Result;
use crate::fold::Fold;
use crate::id::SessionId;

/// How many are kept. Whoever looks at more sessions than these in turn reads them from their caches.
const KEPT: usize = 1024;

/// The states of sessions as they were last read.
///
/// The cached metadata of a session is written when it is closed, and a session may be open for days: without this, every
/// look at one would read all that was said in it. What is remembered counts for as long as the cached metadata are the
/// same, since a repair, which may change what a record before the last one says, makes those anew; and, as with them, only
/// if the log still has the record that it ends with.
#[derive(Debug, Default)]
pub(crate) struct KnownFolds(Mutex<HashMap<SessionId, Known>>);

#[derive(Debug)]
struct Known {
    cache: Option<Version>,
    fold: Fold,
}

impl KnownFolds {
    /// Reads a session's state.
    pub(crate) async fn load(&self, backend: &dyn Backend, session: &SessionId) -> Result<Fold> {
        let document = backend.get(&Key::metadata(session)).await?;
        let cache = document.as_ref().map(|document| document.version.clone());
        let known =
            self.all().get(session).filter(|known| known.cache == cache).map(|known| known.fold.clone());
        let known = known.or_else(|| Fold::of_document(&document?, session));
        let fold = Fold::load_from(backend, session, known).await?;
        let mut all = self.all();
        // Which of them are wanted again is not known; all can be read anew.
        if all.len() >= KEPT && !all.contains_key(session) {
            all.clear();
        }
        all.insert(session.clone(), Known { cache, fold: fold.clone() });
        Ok(fold)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

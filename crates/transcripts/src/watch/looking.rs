//! Where the system gives no notices that we know how to read: the passing of time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Means, USUALLY};

/// Something that may have happened.
#[derive(Debug)]
pub(super) enum Hint {
    /// To these files.
    #[expect(dead_code, reason = "only notices name files")]
    Files(Vec<PathBuf>),
    /// To anything.
    Everything,
}

/// Where hints come from.
#[derive(Debug)]
pub(super) struct Hints(Duration);

impl Hints {
    pub(super) fn new(_: &Path, means: Means) -> io::Result<Self> {
        Ok(Self(if let Means::Looking { every } = means { every } else { USUALLY }))
    }

    pub(super) fn watch(&mut self, _: Vec<PathBuf>, _: bool) -> bool {
        false
    }

    /// Waits for the next hint; `None` once the bell rang.
    pub(super) fn wait(&mut self, bell: &Bell, _: Option<Duration>) -> Option<Hint> {
        let (rung, ringing) = &*bell.0;
        let rung = rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ringing.wait_timeout_while(rung, self.0, |rung| !*rung);
        let (rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!*rung).then_some(Hint::Everything)
    }

    /// The same: nobody says what it is about.
    pub(super) fn wait_for(
        &mut self,
        bell: &Bell,
        at_most: Option<Duration>,
        _: impl Fn(&Path) -> bool,
    ) -> Option<Hint> {
        self.wait(bell, at_most)
    }
}

/// What ends a watch.
#[derive(Clone, Debug, Default)]
pub(super) struct Bell(Arc<(Mutex<bool>, Condvar)>);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(super) fn ring(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

//! A whole conversation to be saved, at a better time.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::entry::Entry;
use crate::error::Result;
use crate::metadata::Metadata;
use crate::session::Session;
use crate::ticket::Ack;
use crate::writer::Change;

/// How many quiet intervals a save waits at most while newer lists keep coming.
const LONGEST_WAIT: u32 = 10;
const RETRY_AFTER: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A save under way.
pub(super) type Saving = Pin<Box<dyn Future<Output = Result<Ack>>>>;

/// A list of messages and the changes of metadata that go with it.
pub(super) struct Save {
    messages: Arc<[Entry]>,
    changes: Arc<Mutex<Vec<Change>>>,
    failures: u32,
    not_before: Option<Instant>,
    running: bool,
}

impl Save {
    pub(super) fn new(messages: Vec<Entry>, change: impl FnMut(&mut Metadata) + Send + 'static) -> Self {
        let change: Change = Box::new(change);
        Self {
            messages: messages.into(),
            changes: Arc::new(Mutex::new(vec![change])),
            failures: 0,
            not_before: None,
            running: false,
        }
    }

    /// Takes a newer save in: its list replaces this one's, its changes follow this one's.
    pub(super) fn supersede(&mut self, newer: Save) {
        self.messages = newer.messages;
        let mut changes = newer.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).append(&mut changes);
    }

    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// Returns when it may be tried, if that is not now.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.not_before
    }

    /// Starts saving.
    pub(super) fn start(&mut self, session: Session) -> Saving {
        self.running = true;
        let (messages, changes) = (self.messages.clone(), self.changes.clone());
        let change = move |metadata: &mut Metadata| {
            let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
            changes.iter_mut().for_each(|change| change(metadata));
        };
        Box::pin(async move { session.save(&messages, change).await?.await })
    }

    /// Makes it ready to be tried again, a little later each time.
    pub(super) fn postpone(&mut self) {
        let pause = (RETRY_AFTER * 2u32.saturating_pow(self.failures.min(10))).min(LONGEST_PAUSE);
        self.failures += 1;
        self.not_before = Some(Instant::now() + pause);
        self.running = false;
    }
}

impl fmt::Debug for Save {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Save({} messages)", self.messages.len())
    }
}

/// A save that waits for a quiet moment.
#[derive(Debug)]
pub(super) struct Later {
    pub(super) save: Save,
    pub(super) due: Instant,
    latest: Instant,
}

impl Later {
    pub(super) fn new(save: Save, quiet: Duration) -> Self {
        let now = Instant::now();
        Self { save, due: now + quiet, latest: now + quiet * LONGEST_WAIT }
    }

    /// Takes a newer save in and begins to wait anew.
    pub(super) fn replace(&mut self, newer: Save, quiet: Duration) {
        self.save.supersede(newer);
        self.due = (Instant::now() + quiet).min(self.latest);
    }
}

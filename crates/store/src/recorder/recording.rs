//! What to record, and how patiently.

use std::time::Duration;

use crate::error::Result;
use crate::id::SessionId;
use crate::resume::{Resume, Which};
use crate::session::Session;
use crate::store::{NewSession, Store};

/// What to record, and how patiently.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Which session.
    pub begin: Begin,
    /// How long no newer list must have come before one is saved. While lists keep coming, one is saved at least
    /// every ten times as long.
    pub quiet: Duration,
    /// How long `initialize`, `restore`, `flush`, `finalize` and dropping the recorder wait at most.
    pub patience: Duration,
    /// How many entries of each log may wait when the store's queue is full.
    pub overflow_entries: usize,
    /// How many bytes of each log may wait when the store's queue is full.
    pub overflow_bytes: usize,
}

/// Which session to record.
#[derive(Clone, Debug)]
pub enum Begin {
    /// A new one.
    New(NewSession),
    /// One that is there: it goes on as it is, or in a fork.
    Resume(Resume),
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            begin: Begin::New(NewSession::default()),
            quiet: Duration::from_millis(500),
            patience: Duration::from_secs(10),
            overflow_entries: 100_000,
            overflow_bytes: 64 << 20,
        }
    }
}

impl Recording {
    /// Records a new session.
    pub fn new(session: NewSession) -> Self {
        Self { begin: Begin::New(session), ..Self::default() }
    }

    /// Goes on recording a session.
    pub fn resume(resume: Resume) -> Self {
        Self { begin: Begin::Resume(resume), ..Self::default() }
    }
}

impl Begin {
    /// Returns the id of the session to begin, and makes it one that is known from here on.
    pub(super) fn id(&mut self) -> Option<SessionId> {
        match self {
            Begin::New(session) => Some(session.id.get_or_insert_with(SessionId::generate).clone()),
            Begin::Resume(_) => None,
        }
    }

    /// Opens the session. One that is picked up is not written to.
    pub(super) async fn open(&self, store: &Store) -> Result<Session> {
        match self {
            Begin::New(session) => store.create(session.clone()).await,
            Begin::Resume(resume) if store.backend().capabilities().keeps => {
                store.resume(resume.clone()).await
            }
            Begin::Resume(resume) => {
                let id = match (&resume.fork, &resume.which) {
                    (Some(fork), _) => fork.id.clone(),
                    (None, Which::Id(id)) => Some(id.clone()),
                    (None, Which::Latest(_)) => None,
                };
                store.create(NewSession { id, ..NewSession::default() }).await
            }
        }
    }
}

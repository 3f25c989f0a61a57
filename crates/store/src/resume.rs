//! Picking up a session again.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fork::Fork;
use crate::id::{EntryId, SessionId};
use crate::session::Session;
use crate::store::Store;

/// What to pick up again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resume {
    /// Which session.
    pub which: Which,
    /// After which entry; its end if none is given.
    pub at: Option<EntryId>,
    /// As a fork, and how; in place if not given.
    pub fork: Option<Fork>,
}

impl Resume {
    /// Goes on with the latest session of a directory.
    pub fn latest(cwd: impl Into<PathBuf>) -> Self {
        Self { which: Which::Latest(Scope::Directory(cwd.into())), at: None, fork: None }
    }

    /// Goes on with a given session.
    pub fn session(id: SessionId) -> Self {
        Self { which: Which::Id(id), at: None, fork: None }
    }

    /// Goes on after an entry.
    pub fn at(mut self, entry: EntryId) -> Self {
        self.at = Some(entry);
        self
    }

    /// Goes on in a fork.
    pub fn forked(mut self, fork: Fork) -> Self {
        self.fork = Some(fork);
        self
    }
}

/// Which session to pick up.
#[derive(Clone, Debug)]
pub enum Which {
    /// The one with the newest entry.
    Latest(Scope),
    /// This one.
    Id(SessionId),
}

/// Where "latest" looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Sessions of exactly this working directory.
    Directory(PathBuf),
    /// Sessions of the whole repository that the directory is in.
    Project(PathBuf),
}

impl Scope {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Scope::Directory(path) | Scope::Project(path) => path,
        }
    }
}

impl Store {
    /// Picks up a session: the latest or a given one, at its end or at an entry, in place or as a fork.
    pub async fn resume(&self, resume: Resume) -> Result<Session> {
        let session = match &resume.which {
            Which::Latest(scope) => {
                let place = scope.path().to_owned();
                self.latest(scope).await?.ok_or(Error::NothingToContinue(place))?
            }
            Which::Id(id) => self.open(id).await?,
        };
        match (resume.fork, resume.at) {
            (None, None) => Ok(session),
            (None, Some(at)) => session.at(&at).await,
            (Some(mut fork), at) => {
                fork.at = at.or(fork.at);
                session.fork(fork).await
            }
        }
    }
}

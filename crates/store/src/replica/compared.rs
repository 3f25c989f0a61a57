//! What is known of a copy: how far its lines were compared with those of the original, and what they add up to.
//!
//! It lies beside the copy, as a document of the session, and is only a saving: whoever finds none, or one that makes no
//! sense, compares everything.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::backend::{Backend, Expect, Key, LogName, Position};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::stamp::Line;

/// How the lines are added up today.
const VERSION: u32 = 1;

/// How far the logs of a copy were compared.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Compared {
    version: u32,
    logs: BTreeMap<String, Mark>,
}

/// How far one log was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Everything before this position.
    pub(super) next: Position,
    /// What those lines add up to.
    sha256: String,
}

impl Compared {
    /// Returns what is known. A place that cannot be read says so when its log is.
    pub(super) async fn load(backend: &dyn Backend, session: &SessionId) -> Self {
        let found = backend.get(&Key::replica(session)).await.ok().flatten();
        let known = found.and_then(|document| serde_json::from_slice::<Self>(&document.bytes).ok());
        known.filter(|known| known.version == VERSION).unwrap_or_default()
    }

    pub(super) async fn store(&self, backend: &dyn Backend, session: &SessionId) -> Result<()> {
        let known = Self { version: VERSION, logs: self.logs.clone() };
        let bytes = serde_json::to_vec(&known).map_err(|error| Error::BadEntry(error.to_string()))?;
        backend.put(&Key::replica(session), &bytes, Expect::Any).await.map(drop)
    }

    pub(super) fn mark(&self, log: LogName) -> Option<&Mark> {
        self.logs.get(log.as_str())
    }

    pub(super) fn set(&mut self, log: LogName, next: Position, sum: &Sum) {
        self.logs.insert(log.as_str().to_owned(), Mark { next, sha256: sum.to_string() });
    }
}

impl Mark {
    pub(super) fn fits(&self, sum: &Sum) -> bool {
        self.sha256 == sum.to_string()
    }
}

/// What the first lines of a log add up to: the SHA-256 of each behind that of the lines before it, so that whoever has the
/// sum of some can go on with the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum([u8; 32]);

impl Sum {
    pub(super) fn add(&mut self, line: &Line) {
        self.0 = Sha256::new().chain_update(self.0).chain_update(line.as_bytes()).finalize().into();
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

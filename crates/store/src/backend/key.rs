//! The names of documents.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::id::SessionId;

/// A document's name: of the store (`format`, `memory/ab12…`) or of one session (`metadata`, `lease`).
///
/// Its text form is a safe relative path: `sessions/ID/NAME` or `NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    session: Option<SessionId>,
    name: String,
}

impl Key {
    /// Names a document of the whole store: one or two parts of `[a-z0-9-]`, with a slash between them.
    pub fn store(name: &str) -> Result<Self> {
        let part = |part: &str| (1..=80).contains(&part.len()) && part.bytes().all(is_plain);
        if name.split('/').count() <= 2 && name.split('/').all(part) && !name.starts_with("sessions") {
            Ok(Self { session: None, name: name.to_owned() })
        } else {
            Err(Error::BadName {
                what: "document name",
                text: name.to_owned(),
                rule: "a-z 0-9 -, one slash at most",
            })
        }
    }

    /// Names a document of a session: `[a-z0-9-]`.
    pub fn session(session: SessionId, name: &str) -> Result<Self> {
        if (1..=80).contains(&name.len()) && name.bytes().all(is_plain) {
            Ok(Self { session: Some(session), name: name.to_owned() })
        } else {
            Err(Error::BadName { what: "document name", text: name.to_owned(), rule: "1 to 80 of a-z 0-9 -" })
        }
    }

    /// The cached fold of a session's notes.
    pub(crate) fn metadata(session: &SessionId) -> Self {
        Self { session: Some(session.clone()), name: "metadata".into() }
    }

    /// What the last listing learnt of a session whose log was growing.
    pub(crate) fn listed(session: &SessionId) -> Self {
        Self { session: Some(session.clone()), name: "listed".into() }
    }

    /// How far a copy of a session was compared with its original.
    pub(crate) fn replica(session: &SessionId) -> Self {
        Self { session: Some(session.clone()), name: "replica".into() }
    }

    /// Who drives a session.
    pub(crate) fn lease(session: &SessionId) -> Self {
        Self { session: Some(session.clone()), name: "lease".into() }
    }

    /// What the last listing learnt.
    pub(crate) fn catalog() -> Self {
        Self { session: None, name: "catalog".into() }
    }

    /// Which format the store has.
    pub(crate) fn format() -> Self {
        Self { session: None, name: "format".into() }
    }

    /// Returns the session that owns the document, if one does.
    pub fn owner(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// Returns the document's name without its owner.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.session {
            Some(session) => write!(f, "sessions/{session}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl FromStr for Key {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.strip_prefix("sessions/").and_then(|rest| rest.split_once('/')) {
            Some((session, name)) => Key::session(session.parse()?, name),
            None => Key::store(text),
        }
    }
}

//! Sessions and entries as people name them: by an id or by the beginning of one.

use std::str::FromStr;

use rethread_store::{EntryId, Error, Session, SessionId};

use crate::context::Context;
use crate::failure::Failure;

/// How many candidates an ambiguous beginning is answered with.
const CANDIDATES: usize = 5;

/// A session's id, or the beginning of one.
#[derive(Clone, Debug)]
pub(crate) struct NamedSession(SessionId);

impl FromStr for NamedSession {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // Whatever begins a session id obeys the same rules.
        text.parse().map(Self)
    }
}

impl NamedSession {
    /// Returns whether this is the id itself.
    pub(crate) fn is_whole(&self, id: &SessionId) -> bool {
        self.0 == *id
    }

    /// Finds the one session that is meant, in the trash too.
    pub(crate) async fn find(&self, context: &Context) -> Result<SessionId, Failure> {
        let (store, typed) = (&context.store, &self.0);
        if store.backend().stat(typed).await?.is_some() || !store.backend().capabilities().keeps {
            return Ok(typed.clone());
        }
        let mut found = store.ids_with_prefix(typed.as_str(), usize::MAX).await?;
        match found.len() {
            // The store may have a better reason for not knowing the session.
            0 => match store.load(typed).await {
                Err(error) => Err(error.into()),
                Ok(_) => Err(Error::SessionNotFound(typed.clone()).into()),
            },
            1 => Ok(found.remove(0)),
            count => {
                let candidates = found.iter().map(|id| context.short(id));
                Err(ambiguous("sessions", typed.as_str(), candidates, count))
            }
        }
    }

    /// Finds the one session that is meant and opens it.
    pub(crate) async fn open(&self, context: &Context) -> Result<Session, Failure> {
        Ok(context.store.open(&self.find(context).await?).await?)
    }
}

/// An entry's id, or the beginning of one.
#[derive(Clone, Debug)]
pub(crate) struct NamedEntry(EntryId);

impl FromStr for NamedEntry {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse().map(Self)
    }
}

impl NamedEntry {
    /// Finds the one entry of a session that is meant, on any branch.
    pub(crate) async fn find(&self, session: &Session) -> Result<EntryId, Failure> {
        let not_found = match session.at(&self.0).await {
            Ok(_) => return Ok(self.0.clone()),
            Err(error @ Error::EntryNotFound { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        for branched in session.all_branches().await? {
            let id = branched.record.entry.id();
            if id.as_str().starts_with(self.0.as_str()) && !found.contains(id) {
                found.push(id.clone());
            }
        }
        match found.len() {
            0 => Err(not_found.into()),
            1 => Ok(found.remove(0)),
            count => Err(ambiguous("entries", self.0.as_str(), found.iter().map(EntryId::to_string), count)),
        }
    }
}

fn ambiguous(what: &str, typed: &str, candidates: impl Iterator<Item = String>, count: usize) -> Failure {
    let mut list = candidates.take(CANDIDATES).collect::<Vec<_>>().join(", ");
    if count > CANDIDATES {
        list += &format!(" and {} more", count - CANDIDATES);
    }
    Failure::wrongly(format!("{count} {what} begin with {typed}"), format!("one of {list}"))
}

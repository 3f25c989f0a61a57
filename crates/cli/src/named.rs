//! Sessions and entries as people name them: by an id or by the beginning of one.

use std::str::FromStr;

use rethread_store::{EntryId, Error, Session, SessionId, Store};
use rethread_transcripts::ClaudeFolder;

use crate::context::Context;
use crate::failure::Failure;

/// How many candidates an ambiguous beginning is answered with.
const CANDIDATES: usize = 5;

/// A session's id, or the beginning of one, and perhaps which home it is in.
#[derive(Clone, Debug)]
pub(crate) struct NamedSession {
    id: SessionId,
    home: Home,
}

/// Where a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Claude Code's own folder if it is there, else the store.
    Either,
    /// Claude Code's own folder.
    Native,
    Stored,
}

impl FromStr for NamedSession {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (home, text) = match text.split_once(':') {
            Some(("native", id)) => (Home::Native, id),
            Some(("stored", id)) => (Home::Stored, id),
            _ => (Home::Either, text),
        };
        // Whatever begins a session id obeys the same rules.
        Ok(Self { id: text.parse()?, home })
    }
}

impl NamedSession {
    /// Returns what was typed, without the home.
    pub(crate) fn text(&self) -> &str {
        self.id.as_str()
    }

    /// Returns whether this is the id itself.
    pub(crate) fn is_whole(&self, id: &SessionId) -> bool {
        self.id == *id
    }

    /// Finds the one session of Claude Code's own that is meant; `None` if one of the store is.
    pub(crate) fn native(&self, context: &Context) -> Result<Option<String>, Failure> {
        if self.home == Home::Stored {
            return Ok(None);
        }
        let typed = self.id.as_str();
        let mut found: Vec<String> =
            context.native.ids().into_iter().filter(|id| id.starts_with(typed)).collect();
        if let Some(whole) = found.iter().position(|id| id == typed) {
            return Ok(Some(found.swap_remove(whole)));
        }
        if self.home == Home::Either && !found.is_empty() {
            let stored = pollster::block_on(context.store.ids_with_prefix(typed, usize::MAX))?;
            if stored.iter().any(|id| id == &self.id) {
                return Ok(None);
            }
            found.extend(stored.iter().map(|id| id.to_string()));
            found.sort_unstable();
            found.dedup();
        }
        match found.len() {
            0 if self.home == Home::Native => {
                Err(rethread_transcripts::Error::SessionNotFound(typed.to_owned()).into())
            }
            0 => Ok(None),
            1 => Ok(found.pop()),
            count => Err(ambiguous("sessions", typed, found.iter().map(|id| context.short_of(id)), count)),
        }
    }

    /// Finds the one session of Claude Code's own that is meant, in the trash; `None` if there is none.
    pub(crate) fn trashed_native(&self, context: &Context) -> Result<Option<String>, Failure> {
        if self.home == Home::Stored {
            return Ok(None);
        }
        let trashed = context.native.trash().map(|trash| ClaudeFolder::trashed(&trash)).unwrap_or_default();
        let ids = trashed.into_iter().map(|trashed| trashed.session_id);
        let mut found: Vec<String> = ids.filter(|id| id.starts_with(self.id.as_str())).collect();
        // One that came back and was deleted again is there twice; the newer is meant.
        found.sort_unstable();
        found.dedup();
        match found.len() {
            0 | 1 => Ok(found.pop()),
            count => Err(ambiguous("sessions", self.id.as_str(), found.into_iter(), count)),
        }
    }

    /// Finds the one session that is meant, in the trash too.
    pub(crate) async fn find(&self, context: &Context) -> Result<SessionId, Failure> {
        self.find_in(&context.store, context).await
    }

    /// Finds the one session that is meant in another store.
    pub(crate) async fn find_in(&self, store: &Store, context: &Context) -> Result<SessionId, Failure> {
        let typed = &self.id;
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
pub(crate) struct NamedEntry(pub(crate) EntryId);

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

pub(crate) fn ambiguous(
    what: &str,
    typed: &str,
    candidates: impl Iterator<Item = String>,
    count: usize,
) -> Failure {
    let mut list = candidates.take(CANDIDATES).collect::<Vec<_>>().join(", ");
    if count > CANDIDATES {
        list += &format!(" and {} more", count - CANDIDATES);
    }
    Failure::wrongly(format!("{count} {what} begin with {typed}"), format!("one of {list}"))
}

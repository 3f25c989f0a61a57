//! What the transcript of a session says here that the store does not: others went on without it.

use std::collections::HashSet;
use std::sync::Arc;

use rethread_store::{EntryId, SessionId};
use rethread_transcripts::History;

use crate::capture::blocking;
use crate::card::Home;
use crate::error::Result;
use crate::item::MessageItem;
use crate::keeper::Keeper;

/// How many messages are read at once.
const PAGE: u64 = 64;

impl Keeper {
    /// Returns the messages at the end of a transcript here that the store does not have.
    pub(super) async fn only_here(self: &Arc<Self>, session: &SessionId) -> Result<Vec<String>> {
        let (keeper, session) = (Arc::clone(self), session.clone());
        blocking(async move {
            let stored = keeper.store().open(&session).await?;
            let (mut said, mut only_here) = (Said::of(&keeper, &session)?, Vec::new());
            while let Some(uuid) = said.last()? {
                // The store gives an id of its own to what has none.
                let Ok(entry) = uuid.parse::<EntryId>() else { continue };
                match stored.at(&entry).await {
                    // It has what comes before it, too.
                    Ok(_) => break,
                    Err(rethread_store::Error::EntryNotFound { .. }) => only_here.push(uuid),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(only_here)
        })
        .await
    }

    /// Returns all messages of a transcript here.
    pub(super) async fn said_here(self: &Arc<Self>, session: &SessionId) -> Result<HashSet<String>> {
        let (keeper, session) = (Arc::clone(self), session.clone());
        blocking(async move {
            let (mut said, mut all) = (Said::of(&keeper, &session)?, HashSet::new());
            while let Some(uuid) = said.last()? {
                all.insert(uuid);
            }
            Ok(all)
        })
        .await
    }
}

/// The messages that a transcript shows, from its end.
struct Said {
    history: Option<History>,
    /// Those before this number have not been read.
    end: u64,
    /// Those that were, and not taken yet.
    read: Vec<String>,
}

impl Said {
    fn of(keeper: &Keeper, session: &SessionId) -> Result<Self> {
        let known = keeper.catalogue().find(Some(Home::Native), session.as_str()).cloned();
        let history = match known.and_then(|known| known.native) {
            Some(native) => Some(History::of(keeper.open_native(&native.path)?, &native.path, None)?),
            None => None,
        };
        Ok(Self { end: history.as_ref().map_or(0, History::lines), history, read: Vec::new() })
    }

    /// Takes the last one that was not taken yet.
    fn last(&mut self) -> Result<Option<String>> {
        let Some(history) = &self.history else { return Ok(None) };
        while self.read.is_empty() && self.end > 0 {
            let begin = self.end.saturating_sub(PAGE);
            let chain = history.chain(begin..self.end)?;
            let mut reader = history.read(&chain);
            while let Some(entry) = reader.next() {
                self.read.extend(MessageItem::of_entry(&entry?).uuid.map(|uuid| uuid.into_owned()));
            }
            self.end = begin;
        }
        Ok(self.read.pop())
    }
}

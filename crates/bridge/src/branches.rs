//! What a stored session has of conversations, so that none of it is written again.

use std::collections::HashMap;

use rethread_store::{Entry, EntryId, Metadata, Session as Stored};

use crate::error::Result;

/// Every entry of a stored session, by its id and the one it follows: after a compaction an entry may stand at two places.
pub(crate) struct Branches<'a> {
    stored: &'a Stored,
    known: HashMap<(Option<EntryId>, EntryId), Entry>,
}

impl<'a> Branches<'a> {
    /// Looks at what there is.
    pub(crate) async fn of(stored: &'a Stored) -> Result<Self> {
        let all = stored.all_branches().await?.into_iter();
        let known = all.map(|it| ((it.parent, it.record.entry.id().clone()), it.record.entry)).collect();
        Ok(Self { stored, known })
    }

    /// Returns whether a conversation is there.
    pub(crate) fn have(&self, entries: &[Entry]) -> bool {
        self.common(entries) == entries.len()
    }

    /// Makes a conversation the active one. Of its entries those are added that are not there.
    pub(crate) async fn save(
        &mut self,
        entries: &[Entry],
        change: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<()> {
        let present = self.stored.messages().await?;
        let same = present.entries().zip(entries).take_while(|(one, other)| one == other).count();
        // What is there on another branch is gone back to, and not written behind this one.
        if let Some(last) = self.common(entries).checked_sub(1).filter(|last| *last >= same) {
            self.stored.select(entries[last].id()).await?;
        }
        self.stored.save(entries, change).await?.await?;
        let parents = [None].into_iter().chain(entries.iter().map(|entry| Some(entry.id().clone())));
        self.known.extend(
            parents.zip(entries).map(|(parent, entry)| ((parent, entry.id().clone()), entry.clone())),
        );
        Ok(())
    }

    /// Returns how many entries are there, each after the one before it.
    fn common(&self, entries: &[Entry]) -> usize {
        let mut parent = None;
        let is_there = |entry: &&Entry| {
            let key = (parent.replace(entry.id().clone()), entry.id().clone());
            self.known.get(&key) == Some(*entry)
        };
        entries.iter().take_while(is_there).count()
    }
}

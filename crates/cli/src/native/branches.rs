//! What a stored session has of conversations, so that none of it is written again.

use std::collections::HashMap;

use rethread_store::{Entry, EntryId, Metadata, Session as Stored};

use crate::context::Context;
use crate::failure::Failure;

/// Every entry of a stored session, by its id and the one it follows: after a compaction an entry may stand at two places.
pub(super) struct Branches<'a> {
    stored: &'a Stored,
    known: HashMap<(Option<EntryId>, EntryId), Entry>,
}

impl<'a> Branches<'a> {
    /// Looks at what there is.
    pub(super) fn of(stored: &'a Stored) -> Result<Self, Failure> {
        let all = pollster::block_on(stored.all_branches())?.into_iter();
        let known = all.map(|it| ((it.parent, it.record.entry.id().clone()), it.record.entry)).collect();
        Ok(Self { stored, known })
    }

    /// Returns whether a conversation is there.
    pub(super) fn have(&self, entries: &[Entry]) -> bool {
        self.common(entries) == entries.len()
    }

    /// Makes a conversation the active one. Of its entries those are added that are not there.
    pub(super) fn save(
        &mut self,
        entries: &[Entry],
        context: &Context,
        change: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<(), Failure> {
        let present = pollster::block_on(self.stored.messages())?;
        let same = present.entries().zip(entries).take_while(|(one, other)| one == other).count();
        // What is there on another branch is gone back to, and not written behind this one.
        if let Some(last) = self.common(entries).checked_sub(1).filter(|last| *last >= same) {
            context.write(self.stored.select(entries[last].id()))?;
        }
        context.write(async {
            let ticket = self.stored.save(entries, change).await?;
            ticket.await.map(drop)
        })?;
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

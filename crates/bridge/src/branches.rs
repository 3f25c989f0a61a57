//! What a stored session has of conversations, so that none of it is written again.

use std::collections::HashMap;

use rethread_store::{Entry, EntryId, Metadata, Session as Stored};

use crate::error::Result;

/// Every entry of a stored session, by its id: after a compaction an entry may stand at two places.
pub(crate) struct Branches<'a> {
    stored: &'a Stored,
    known: HashMap<EntryId, Vec<Place>>,
}

/// Where an entry stands: after which other, and what it says there.
struct Place {
    parent: Option<EntryId>,
    entry: Entry,
}

impl<'a> Branches<'a> {
    /// Looks at what there is.
    pub(crate) async fn of(stored: &'a Stored) -> Result<Self> {
        let mut branches = Self { stored, known: HashMap::new() };
        for branched in stored.all_branches().await? {
            branches.learn(branched.parent.as_ref(), &branched.record.entry);
        }
        Ok(branches)
    }

    /// Returns whether a conversation is there.
    pub(crate) fn have(&self, entries: &[Entry]) -> bool {
        self.common(None, entries) == entries.len()
    }

    /// Adds what is missing of a conversation's end, given after an entry that is there with all before it. Returns
    /// whether that was possible: some take the whole conversation.
    pub(crate) async fn add_end(&mut self, after: &EntryId, end: &[Entry]) -> Result<bool> {
        let common = self.common(Some(after), end);
        let Some(next) = end.get(common) else { return Ok(true) };
        let before = common.checked_sub(1).map_or(after, |last| end[last].id());
        if !self.is_new_after(before, next) {
            return Ok(false);
        }
        self.stored.at(before).await?.append_all(end[common..].to_vec()).await?.await?;
        self.learn_all(Some(before), &end[common..]);
        Ok(true)
    }

    /// Makes a conversation the active one. Of its entries those are added that are not there.
    pub(crate) async fn save(
        &mut self,
        entries: &[Entry],
        change: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<()> {
        let common = self.common(None, entries);
        let before = common.checked_sub(1).map(|last| entries[last].id());
        let is_new = |before: &&EntryId| entries.get(common).is_some_and(|it| self.is_new_after(before, it));
        match before.filter(is_new) {
            Some(before) => self.add(before, &entries[common..], change).await?,
            None => self.save_whole(entries, common, change).await?,
        }
        self.learn_all(before, &entries[common..]);
        Ok(())
    }

    /// Adds entries after one that is there. What is there is not read for that, of which there may be a thousand times
    /// as much, once for each branch.
    async fn add(
        &self,
        before: &EntryId,
        entries: &[Entry],
        change: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<()> {
        let Some((last, others)) = entries.split_last() else { return Ok(()) };
        let branch = self.stored.at(before).await?;
        if !others.is_empty() {
            branch.append_all(others.to_vec()).await?.await?;
        }
        branch.append_and_save(last.clone(), change).await?.await?;
        Ok(())
    }

    /// Does the same in any case.
    async fn save_whole(
        &self,
        entries: &[Entry],
        common: usize,
        change: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<()> {
        let present = self.stored.messages().await?;
        let same = present.entries().zip(entries).take_while(|(one, other)| one == other).count();
        // What is there on another branch is gone back to, and not written behind this one.
        if let Some(last) = common.checked_sub(1).filter(|last| *last >= same) {
            self.stored.select(entries[last].id()).await?;
        }
        self.stored.save(entries, change).await?.await?;
        Ok(())
    }

    /// Returns how many entries are there, each after the one before it.
    fn common(&self, after: Option<&EntryId>, entries: &[Entry]) -> usize {
        let parents = [after].into_iter().chain(entries.iter().map(|entry| Some(entry.id())));
        let is_there = |(parent, entry): &(Option<&EntryId>, &Entry)| {
            self.place(*parent, entry.id()).is_some_and(|place| place.entry == **entry)
        };
        parents.zip(entries).take_while(is_there).count()
    }

    /// Returns whether an entry that is there names a single place, and the next is really new there: one that is there
    /// but says something else may be one that secrets were left out of.
    fn is_new_after(&self, before: &EntryId, next: &Entry) -> bool {
        let is_single = self.known.get(before).is_some_and(|places| places.len() == 1);
        is_single && self.place(Some(before), next.id()).is_none()
    }

    fn place(&self, parent: Option<&EntryId>, id: &EntryId) -> Option<&Place> {
        self.known.get(id)?.iter().find(|place| place.parent.as_ref() == parent)
    }

    fn learn_all(&mut self, after: Option<&EntryId>, entries: &[Entry]) {
        let parents = [after].into_iter().chain(entries.iter().map(|entry| Some(entry.id())));
        parents.zip(entries).for_each(|(parent, entry)| self.learn(parent, entry));
    }

    fn learn(&mut self, parent: Option<&EntryId>, entry: &Entry) {
        let places = self.known.entry(entry.id().clone()).or_default();
        let place = Place { parent: parent.cloned(), entry: entry.clone() };
        match places.iter_mut().find(|known| known.parent == place.parent) {
            Some(known) => *known = place,
            None => places.push(place),
        }
    }
}

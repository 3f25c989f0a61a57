//! A stored copy of a transcript that goes on: only what is new is read and added.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rethread_store::{Entry, EntryId, Metadata, Session as Stored};
use rethread_transcripts::{Chain, Session, Subagent, Transcript};
use serde_json::Value;

use crate::error::Result;
use crate::incoming::{bring_in_subagent, bring_in_to, description, entries, state, taken};
use crate::steps::Steps;

/// What is known of a transcript and of its copy in a store, as long as both go on.
#[derive(Debug)]
pub struct Shadow {
    native: Session,
    stored: Stored,
    transcript: Transcript,
    inode: Option<u64>,
    /// Entries that are in the store, by their places in the file, each after the one that it follows there.
    known: HashSet<(Option<u64>, u64)>,
    /// The entry that the stored conversation ends with.
    leaf: Option<u64>,
    /// Subagents' files, as they were when they were last brought in.
    subagents: HashMap<PathBuf, Option<Value>>,
}

impl Shadow {
    /// Brings everything of a session into a stored one, once.
    pub async fn begin(native: &Session, stored: Stored) -> Result<Self> {
        let inode = fs::metadata(&native.path).ok().map(|file| file.ino());
        let subagents =
            Subagent::all_of(&native.path).into_iter().map(|it| (it.path.clone(), state(&it.path)));
        let subagents = subagents.collect();
        let transcript = Transcript::open(&native.path)?;
        bring_in_to(native, &transcript, &stored).await?;
        let (mut known, mut leaf, mut steps) = (HashSet::new(), None, Steps::default());
        for chain in transcript.branches().chain([transcript.active()]) {
            leaf = note(&mut known, &chain, steps.go(&chain));
        }
        Ok(Self { native: native.clone(), stored, transcript, inode, known, leaf, subagents })
    }

    /// Adds what came since. Returns whether there was anything.
    pub async fn go_on(&mut self) -> Result<bool> {
        let inode = fs::metadata(&self.native.path).ok().map(|file| file.ino());
        let (before, read) = (self.transcript.length(), self.transcript.refresh());
        read?;
        if inode != self.inode || self.transcript.length() < before {
            // It is another file now, or was cut: whatever was known of places is void.
            *self = Self::begin(&self.native, self.stored.clone()).await?;
            return Ok(true);
        }
        let news = self.bring_in_subagents().await?;
        let active = self.transcript.active();
        let places: Vec<u64> = active.spans().map(|span| span.offset).collect();
        let after = |at: usize| at.checked_sub(1).map(|before| places[before]);
        let is_known = |at: &usize| self.known.contains(&(after(*at), places[*at]));
        let common = (0..places.len()).take_while(is_known).count();
        if common == places.len() && self.leaf == places.last().copied() {
            return Ok(news);
        }
        let fresh = entries(&self.transcript, &active.from(common), &self.stored, &mut Vec::new())?;
        if (common == 0 && self.leaf.is_some()) || !self.add(&active, common, fresh).await? {
            *self = Self::begin(&self.native, self.stored.clone()).await?;
            return Ok(true);
        }
        self.leaf = note(&mut self.known, &active, common);
        Ok(true)
    }

    /// Has the stored session say what is known of the other, and more.
    pub async fn describe(
        &self,
        native: &Session,
        mut more: impl FnMut(&mut Metadata) + Send + 'static,
    ) -> Result<Metadata> {
        let mut change = description(native);
        let both = move |metadata: &mut Metadata| {
            change(metadata);
            more(metadata);
        };
        Ok(self.stored.update(both).await?)
    }

    /// Adds entries behind the n-th of a conversation, and makes that the active one. Returns whether that was possible:
    /// not where the store refused all before them.
    async fn add(&self, active: &Chain, common: usize, fresh: Vec<Entry>) -> Result<bool> {
        let last = common.checked_sub(1).and_then(|last| active.spans().nth(last));
        let stored = match last.filter(|last| self.leaf != Some(last.offset)) {
            None => self.stored.clone(),
            Some(_) => match self.stored_before(active, common)? {
                None => return Ok(false),
                Some(id) if fresh.is_empty() => {
                    self.stored.select(&id).await?;
                    return Ok(true);
                }
                Some(id) => self.stored.at(&id).await?,
            },
        };
        if !fresh.is_empty() {
            stored.append_all(fresh).await?.await?;
        }
        Ok(true)
    }

    /// Returns the last entry that the store did not refuse among a conversation's first.
    fn stored_before(&self, chain: &Chain, count: usize) -> Result<Option<EntryId>> {
        for at in (0..count).rev() {
            let rest = chain.from(at);
            let mut reader = self.transcript.read(&rest);
            let entry = reader.next().transpose()?.and_then(|entry| taken(&entry, &self.stored).ok());
            if let Some(entry) = entry {
                return Ok(Some(entry.id().clone()));
            }
        }
        Ok(None)
    }

    async fn bring_in_subagents(&mut self) -> Result<bool> {
        let mut news = false;
        for subagent in Subagent::all_of(&self.native.path) {
            let now = state(&subagent.path);
            if self.subagents.get(&subagent.path) != Some(&now) {
                bring_in_subagent(&subagent, &self.stored, &mut Vec::new()).await?;
                self.subagents.insert(subagent.path.clone(), now);
                news = true;
            }
        }
        Ok(news)
    }
}

/// Notes that a conversation is in the store, of which so many entries were noted before. Returns its last one's place.
fn note(known: &mut HashSet<(Option<u64>, u64)>, chain: &Chain, noted: usize) -> Option<u64> {
    let places = || chain.spans().map(|span| Some(span.offset));
    let pairs = [None].into_iter().chain(places()).zip(places().flatten());
    known.extend(pairs.skip(noted));
    places().last().flatten()
}

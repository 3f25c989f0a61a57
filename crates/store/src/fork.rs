//! Sessions that begin in other sessions.

use std::sync::Arc;

use jiff::Timestamp;

use crate::backend::{From, LogKey, LogName, Target};
use crate::chain::{Record, Walk};
use crate::error::{Error, Result};
use crate::fold::{Fold, Leaf};
use crate::id::{EntryId, SessionId};
use crate::metadata::Metadata;
use crate::note::Origin;
use crate::session::Session;
use crate::writer::{Draft, Lane, Patience, Request};

/// How many copies go in together: a batch of them fits the queue.
const COPIES: usize = 128;

/// How to fork a session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Fork {
    /// After which entry; its end if none is given.
    pub at: Option<EntryId>,
    /// The new session's id; a new one if none is given.
    pub id: Option<SessionId>,
    /// What the new session is.
    pub kind: ForkKind,
    /// A person's name for it.
    pub name: Option<String>,
    /// The agent that it belongs to; its parent's if none is given.
    pub agent_name: Option<String>,
}

/// What a fork is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkKind {
    /// It inherits the conversation up to the entry, by reference.
    #[default]
    Attached,
    /// It remembers its parent and begins empty.
    Detached,
    /// A detached one for a subagent; never picked by "latest".
    Child,
    /// A detached one for a summary of the conversation; never picked by "latest".
    Digest,
}

impl Fork {
    /// Returns a fork of some kind.
    pub fn of_kind(kind: ForkKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Forks after an entry.
    pub fn at(mut self, entry: EntryId) -> Self {
        self.at = Some(entry);
        self
    }

    /// Sets the new session's id.
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the new session's name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the agent that it belongs to.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent_name = Some(name.into());
        self
    }
}

impl Session {
    /// Begins a session from an entry of this one. Nothing is copied: it costs the same at any length.
    pub async fn fork(&self, fork: Fork) -> Result<Session> {
        let fold = self.store.fold(&self.id).await?;
        let (record, leaf) = match &fork.at {
            Some(entry) => {
                let (leaf, record) = self.store.find(&self.id, entry).await?;
                (Some(record), leaf)
            }
            None => {
                let leaf = self.leaf(&fold);
                (self.record_at(&fold, leaf).await?, leaf)
            }
        };
        let parent = self.metadata().await?;
        let metadata = metadata_of(&parent, &fork, record.as_ref());
        let origin = record.filter(|_| fork.kind == ForkKind::Attached).map(|record| Origin {
            session: record.session,
            position: record.position,
            entry: record.entry.id().clone(),
            depth: leaf.depth,
        });
        let needs = origin.as_ref().map(|origin| origin.session.clone());
        if let Some(origin) = &origin {
            self.make_sure_of(origin).await?;
        }
        let session = self.store.create_with(metadata, origin).await?;
        if let Some(needed) = needs {
            // A purge looks for forks after it has said so in the log; whoever comes later must look there.
            let there = Fold::load(&*self.store.inner.backend, &needed).await?;
            if there.next == 0 || there.purging {
                self.store.inner.backend.remove(&Target::Session(session.id.clone())).await?;
                self.store.inner.writer.forget(&session.id);
                return Err(Error::Gone(needed));
            }
        }
        Ok(session)
    }

    /// Waits until the entry that a fork begins at is durable: another process may have written it and not yet synced
    /// it, and a fork must not outlive what it refers to.
    async fn make_sure_of(&self, origin: &Origin) -> Result<()> {
        let (backend, log) =
            (&*self.store.inner.backend, LogKey::new(origin.session.clone(), LogName::Messages));
        // The last record tells, without the lock, what was durable when it was written.
        let last = backend.read(&log, From::Last, 1).await?;
        if last.lines.last().is_some_and(|last| last.stamp().settled() > origin.position) {
            return Ok(());
        }
        self.store.settle(&log).await
    }

    /// Begins a session for a subagent: a detached fork that "latest" never picks.
    pub async fn spawn_child(&self, agent_name: impl Into<String>) -> Result<Session> {
        self.fork(Fork::of_kind(ForkKind::Child).agent(agent_name)).await
    }

    /// Copies what is inherited into this session's own log, so that it no longer needs its parent.
    ///
    /// Returns how many entries were copied; 0 if it inherits nothing. A gap in the inherited history is an error:
    /// a copy would hide it.
    pub async fn materialize(&self) -> Result<u64> {
        let fold = self.store.fold(&self.id).await?;
        let Some(origin) = &fold.origin else {
            return Ok(0);
        };
        let leaf = Leaf { position: None, depth: origin.depth };
        let history = self.walk_from(leaf).await?.collect(usize::MAX).await?;
        if let Some(gap) = history.gaps.first() {
            let what = format!("the history that session {} inherits", self.id);
            return Err(Error::Damaged { what, reason: gap.to_string() });
        }
        // The copies mean nothing before the last note says where they end: dying in between does no harm.
        let lane = Arc::new(Lane::at(Leaf::default()));
        let log = self.log(LogName::Messages);
        let send = |drafts| Request {
            drafts,
            lane: Some(lane.clone()),
            nonce: self.nonce.clone(),
            patience: Patience::UntilTrouble,
        };
        let mut tickets = Vec::new();
        for records in history.records.chunks(COPIES) {
            let copies = records.iter().map(|record| Draft::copy(&record.entry)).collect();
            tickets.push(self.store.request(&log, send(copies)).await?);
        }
        for ticket in tickets {
            ticket.await?;
        }
        self.inherit_checkpoints(&history.records).await?;
        // Only now that all of them are in.
        self.store.request(&log, send(vec![Draft::CopiesEnd])).await?.await?;
        Ok(history.records.len() as u64)
    }

    async fn record_at(&self, fold: &Fold, leaf: Leaf) -> Result<Option<Record>> {
        Walk::new(self.store.inner.backend.clone(), &self.id, fold.clone(), leaf).next().await
    }
}

fn metadata_of(parent: &Metadata, fork: &Fork, record: Option<&Record>) -> Metadata {
    let id = fork.id.clone().unwrap_or_else(SessionId::generate);
    let mut metadata = Metadata::new(id, Timestamp::now());
    metadata.project = parent.project.clone();
    metadata.cwd = parent.cwd.clone();
    metadata.model = parent.model.clone();
    metadata.provider = parent.provider.clone();
    metadata.agent_name = fork.agent_name.clone().or_else(|| parent.agent_name.clone());
    metadata.name = fork.name.clone();
    metadata.parent_id = Some(parent.session_id.clone());
    metadata.fork_message_id = record.map(|record| record.entry.id().clone());
    metadata.detached = fork.kind != ForkKind::Attached;
    metadata.child = fork.kind == ForkKind::Child;
    metadata.is_checkpoint = fork.kind == ForkKind::Digest;
    if fork.kind == ForkKind::Attached {
        metadata.first_prompt = parent.first_prompt.clone();
    }
    metadata
}

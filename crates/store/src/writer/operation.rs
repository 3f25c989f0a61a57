//! What waits in a queue: records to be, and whom to tell.

use std::fmt;
use std::sync::Arc;

use super::head::{Head, Lane};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fold::Leaf;
use crate::id::EntryId;
use crate::metadata::Metadata;
use crate::note::Note;
use crate::stamp::Prepared;
use crate::ticket::Ack;

/// A change of metadata, made again from the newest state whenever somebody else was faster.
pub(crate) type Change = Box<dyn FnMut(&mut Metadata) + Send>;

/// A record that does not know its place yet.
pub(crate) enum Draft {
    /// Part of the conversation.
    Entry(EntryId, Prepared),
    /// The same; nothing is written if the log holds an entry of this id.
    NewEntry(EntryId, Prepared),
    /// An inherited entry, copied.
    Copy(EntryId, Prepared),
    /// The session's first record, where nothing at all was a moment ago.
    Birth(Note),
    /// Something about the session.
    Note(Note),
    /// The same, once it is known where the copies before it ended up.
    CopiesEnd,
    /// The active leaf, chosen.
    Leaf(Leaf),
    /// A change of metadata; nothing is written if it changes nothing.
    Change(Change),
}

impl Draft {
    /// Drafts a part of the conversation.
    pub(crate) fn entry(entry: &Entry) -> Self {
        Draft::Entry(entry.id().clone(), Prepared::of(entry))
    }

    /// Drafts a part of the conversation that may be in it already.
    pub(crate) fn new_entry(entry: &Entry) -> Self {
        Draft::NewEntry(entry.id().clone(), Prepared::of(entry))
    }

    /// Drafts a copy of an inherited entry.
    pub(crate) fn copy(entry: &Entry) -> Self {
        Draft::Copy(entry.id().clone(), Prepared::of(entry))
    }

    /// Does what the writer need not do.
    pub(crate) fn sum_up(&mut self) {
        if let Draft::Entry(id, prepared) | Draft::NewEntry(id, prepared) | Draft::Copy(id, prepared) = self {
            prepared.sum_up(id);
        }
    }

    fn size(&self) -> usize {
        match self {
            Draft::Entry(_, prepared) | Draft::NewEntry(_, prepared) | Draft::Copy(_, prepared) => {
                prepared.size() + 128
            }
            _ => 512,
        }
    }
}

/// Records that go in together or not at all.
pub(crate) struct Operation {
    pub(crate) drafts: Vec<Draft>,
    /// About how many bytes they will be.
    pub(crate) size: usize,
    /// The handle's own place; `None`: the active leaf.
    pub(crate) lane: Option<Arc<Lane>>,
    /// The lease under which this was sent.
    pub(crate) nonce: Option<Arc<str>>,
    pub(crate) patience: Patience,
    /// Taken once somebody was told.
    pub(crate) reply: Option<oneshot::Sender<Result<Ack>>>,
}

/// How long an operation waits for a log that cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as it takes; the store keeps it and tries again.
    #[default]
    Endless,
    /// Until that is known: somebody waits for the call to return.
    UntilTrouble,
}

impl Operation {
    pub(crate) fn size_of(drafts: &[Draft]) -> usize {
        drafts.iter().map(Draft::size).sum()
    }

    /// Returns whether it does not outlast trouble.
    pub(crate) fn is_impatient(&self) -> bool {
        self.patience == Patience::UntilTrouble || self.is_barrier()
    }

    /// A barrier: nothing to write, done when everything before it is durable.
    pub(crate) fn is_barrier(&self) -> bool {
        self.drafts.is_empty()
    }

    pub(crate) fn has_note(&self) -> bool {
        self.drafts
            .iter()
            .any(|draft| !matches!(draft, Draft::Entry(..) | Draft::NewEntry(..) | Draft::Copy(..)))
    }

    pub(crate) fn is_birth(&self) -> bool {
        matches!(self.drafts[..], [Draft::Birth(_), ..])
    }

    pub(crate) fn needs_fold(&self) -> bool {
        let needs = |draft: &Draft| matches!(draft, Draft::Change(_) | Draft::CopiesEnd);
        self.nonce.is_some() || self.drafts.iter().any(needs)
    }

    /// Returns whether nothing of the log must be read for it that is not known of it already.
    pub(crate) fn is_easy_for(&self, head: &Head) -> bool {
        let must_read = self.needs_fold() && head.fold.is_none() || self.needs_seen() && head.seen.is_none();
        // A place that is not there yet may be one that another process has just made.
        let is_placed = self.lane.as_ref().is_none_or(|lane| lane.is_in(head));
        !self.has_note() && !must_read && is_placed
    }

    pub(crate) fn needs_seen(&self) -> bool {
        self.drafts.iter().any(|draft| matches!(draft, Draft::NewEntry(..)))
    }

    pub(crate) fn fail(mut self, error: &Error) {
        self.tell(Err(error.clone()));
    }

    /// Answers whoever waits, once. Returns whether somebody was there to hear it, now or before.
    pub(crate) fn tell(&mut self, result: Result<Ack>) -> bool {
        self.reply.take().is_none_or(|reply| reply.send(result).is_ok())
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({} records)", self.drafts.len())
    }
}

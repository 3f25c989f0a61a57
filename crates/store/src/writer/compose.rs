//! From drafts to lines: every record gets its position, its parent and its stamp.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::head::{Head, Lane};
use super::operation::{Draft, Operation};
use crate::backend::{LogKey, LogName, Position};
use crate::defect::Defect;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fold::Leaf;
use crate::id::EntryId;
use crate::note::Note;
use crate::stamp::{Kind, Line, Prepared, Stamp};
use crate::ticket::Placed;

/// A batch, ready to be written at one position and nowhere else.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    pub(crate) at: Position,
    pub(crate) lines: Vec<Line>,
    /// For each operation: where its records stand, or why it cannot be done.
    pub(crate) outcomes: Vec<Result<Vec<Placed>>>,
    /// Something was left out, for it is there already.
    pub(crate) left_out: bool,
    /// Where the handles' own places will be.
    lanes: Vec<(Arc<Lane>, Leaf)>,
    /// The first record's id of the log that they are in.
    birth: Option<EntryId>,
}

impl Composed {
    /// Moves the handles on, now that the lines are in.
    pub(crate) fn commit(&mut self) {
        for (lane, leaf) in self.lanes.drain(..) {
            lane.set(leaf);
            if let Some(birth) = &self.birth {
                lane.bind(birth);
            }
        }
    }

    /// Keeps what the first lines settle, and returns how many operations that is.
    pub(crate) fn cut(&mut self, count: usize) -> usize {
        let (end, mut lines) = (self.at + count as Position, 0);
        let fits = |outcome: &&Result<Vec<Placed>>| {
            lines += outcome.as_ref().map_or(0, Vec::len);
            lines <= count
        };
        let finished = self.outcomes.iter().take_while(fits).count();
        self.outcomes.truncate(finished);
        self.lanes.retain(|(_, leaf)| leaf.position.is_some_and(|position| position < end));
        finished
    }

    fn place_of(&self, lane: &Arc<Lane>) -> Leaf {
        let moved = self.lanes.iter().rev().find(|(other, _)| Arc::ptr_eq(other, lane));
        moved.map_or_else(|| lane.get(), |(_, leaf)| *leaf)
    }
}

/// Gives every record of a batch its place after `head`, which moves on.
pub(crate) fn compose(log: &LogKey, head: &mut Head, operations: &mut [Operation]) -> Composed {
    let mut composed = Composed { at: head.next, ..Composed::default() };
    compose_more(log, head, operations, &mut composed);
    composed
}

/// The same for what comes while the batch is made.
pub(crate) fn compose_more(
    log: &LogKey,
    head: &mut Head,
    operations: &mut [Operation],
    composed: &mut Composed,
) {
    for operation in operations {
        let outcome = admit(log, head, operation).and_then(|()| place(head, operation, composed));
        composed.outcomes.push(outcome);
    }
    if !composed.lanes.is_empty() {
        composed.birth.clone_from(&head.birth);
    }
}

/// Checks that this may be appended at all, as things stand.
fn admit(log: &LogKey, head: &Head, operation: &Operation) -> Result<()> {
    let session = || log.session.clone();
    let first = operation.drafts.first();
    if log.name != LogName::Messages || operation.is_barrier() {
        return Ok(());
    }
    let creates = matches!(first, Some(Draft::Birth(_) | Draft::Note(Note::Created { .. })));
    match (creates, head.next) {
        (true, 0) => return Ok(()),
        (true, _) => return Err(Error::SessionExists(session())),
        (false, 0) if head.unkept => {}
        // A handle exists, so the session did.
        (false, 0) => return Err(Error::Gone(session())),
        (false, _) => {}
    }
    if operation.lane.as_ref().is_some_and(|lane| !head.unkept && !lane.is_in(head)) {
        return Err(Error::Gone(session()));
    }
    let restores = matches!(first, Some(Draft::Note(Note::Restored { .. })));
    if head.purging && !restores {
        return Err(Error::Gone(session()));
    }
    // Forks go on through the trash, so a purge of their parent may still copy what they inherit.
    let about_trash = matches!(
        first,
        Some(Draft::Note(Note::Restored { .. } | Note::Purging { .. }) | Draft::Copy(..) | Draft::CopiesEnd)
    );
    if head.trashed && !about_trash {
        return Err(Error::Trashed(session()));
    }
    let fence = head.fold.as_ref().and_then(|fold| fold.fence.as_ref());
    match (&operation.nonce, fence) {
        (Some(nonce), Some(fence)) if **nonce != *fence.nonce && !Defect::IgnoreTheFence.is_on() => {
            Err(Error::Fenced { session: session(), holder: Box::new(fence.holder.clone()) })
        }
        _ => Ok(()),
    }
}

/// A draft that became a record.
struct Record<'a> {
    kind: Kind,
    content: Content<'a>,
    /// The active leaf from here on, if it is chosen.
    leaf: Option<Leaf>,
}

enum Content<'a> {
    Drafted(&'a EntryId, &'a Prepared),
    Made(Entry),
}

impl<'a> Record<'a> {
    fn new(kind: Kind, id: &'a EntryId, prepared: &'a Prepared) -> Self {
        Self { kind, content: Content::Drafted(id, prepared), leaf: None }
    }

    fn note(entry: Entry) -> Self {
        Self { kind: Kind::Note, content: Content::Made(entry), leaf: None }
    }
}

impl Content<'_> {
    fn id(&self) -> &EntryId {
        match self {
            Content::Drafted(id, _) => id,
            Content::Made(entry) => entry.id(),
        }
    }
}

fn place(head: &mut Head, operation: &mut Operation, composed: &mut Composed) -> Result<Vec<Placed>> {
    let mut records: Vec<Record> = Vec::with_capacity(operation.drafts.len());
    let mut twice = HashSet::new();
    let own = operation.lane.as_ref().map(|lane| composed.place_of(lane));
    for draft in &mut operation.drafts {
        records.extend(match draft {
            Draft::NewEntry(id, _) if is_there(head, id) || !twice.insert(id.clone()) => {
                composed.left_out = true;
                None
            }
            Draft::Entry(id, prepared) | Draft::NewEntry(id, prepared) => {
                Some(Record::new(Kind::Entry, id, prepared))
            }
            Draft::Copy(id, prepared) => Some(Record::new(Kind::Copy, id, prepared)),
            Draft::Birth(note) | Draft::Note(note) => {
                let inherited = match note {
                    Note::Created { origin: Some(origin), .. } => {
                        Some(Leaf { position: None, depth: origin.depth })
                    }
                    _ => None,
                };
                Some(Record { leaf: inherited, ..Record::note(note.to_entry_after(head.entry_at)?) })
            }
            // Somebody else was faster: their copies serve as well, and these mean nothing.
            Draft::CopiesEnd if head.fold.as_ref().is_some_and(|fold| fold.origin.is_none()) => None,
            Draft::CopiesEnd => {
                let Leaf { position: end, depth: count } = own.unwrap_or_default();
                let note = Note::Materialized { at: Timestamp::now(), end, count };
                Some(Record::note(note.to_entry_after(head.entry_at)?))
            }
            Draft::Leaf(leaf) => {
                let note = Note::Leaf { at: Timestamp::now() }.to_entry_after(head.entry_at)?;
                Some(Record { leaf: Some(*leaf), ..Record::note(note) })
            }
            Draft::Change(change) => {
                let note = changed(head, change)?;
                composed.left_out |= note.is_none();
                note.map(Record::note)
            }
        });
    }
    let count = records.len();
    let (mut placed, mut moved) = (Vec::with_capacity(count), None);
    composed.lines.reserve(count);
    for (index, Record { kind, content, leaf }) in records.into_iter().enumerate() {
        if let Some(leaf) = leaf {
            head.leaf = leaf;
        }
        let before = match (own, kind) {
            (Some(own), Kind::Entry | Kind::Copy) if !Defect::ReparentToTheTail.is_on() => {
                moved.unwrap_or(own)
            }
            _ => head.leaf,
        };
        let (position, id) = (head.next, content.id().clone());
        let depth = if kind == Kind::Note { before.depth } else { before.depth + 1 };
        let left = (count - index - 1) as u64;
        let unsettled = position - head.settled.min(position);
        let stamp = Stamp { position, parent: before.position, depth, kind, id: id.clone(), left, unsettled };
        let line = match content {
            Content::Drafted(_, prepared) => prepared.stamp(stamp),
            Content::Made(entry) => Line::new(&entry, stamp),
        };
        head.apply(&line);
        if kind != Kind::Note {
            moved = Some(Leaf { position: Some(position), depth });
        }
        composed.lines.push(line);
        placed.push(Placed { id, position });
    }
    composed.lanes.extend(operation.lane.clone().zip(moved));
    Ok(placed)
}

fn is_there(head: &Head, id: &EntryId) -> bool {
    head.seen.as_ref().is_some_and(|seen| seen.holds(id)) && !Defect::AddTwice.is_on()
}

fn changed(head: &Head, change: &mut super::operation::Change) -> Result<Option<Entry>> {
    let Some(fold) = &head.fold else {
        return Ok(None);
    };
    let mut after = fold.metadata.clone();
    change(&mut after);
    let set = fold.metadata.changes_to(&after);
    if set.is_empty() {
        return Ok(None);
    }
    Note::Set { at: Timestamp::now(), set }.to_entry_after(head.entry_at).map(Some)
}

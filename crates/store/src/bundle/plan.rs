//! What a bundle holds, learned from a first reading that changes nothing.

use jiff::Timestamp;
use serde_json::Map;

use super::Imported;
use super::contents::Pieces;
use super::read::{Item, Reader};
use crate::backend::{LogName, Position};
use crate::entry::Entry;
use crate::error::Result;
use crate::id::{EntryId, SessionId};
use crate::import::arrival::{Arriving, Placement};
use crate::note::{Arrival, Note, Origin};
use crate::stamp::Kind;

pub(super) const CHANGED: &str = "it was changed while it was read";

/// What a whole and well-formed bundle holds.
pub(super) struct Plan {
    pub(super) session_id: SessionId,
    pub(super) created: Placement,
    pub(super) arrival: Arrival,
    counts: Counts,
    /// The id of a note that ends the log, if there is one to be added.
    closing: Option<EntryId>,
}

#[derive(Default)]
struct Counts {
    /// Records of each log.
    records: [Position; 3],
    inherited: u64,
    lost: u64,
    files: u64,
    skipped: u64,
}

impl Plan {
    /// Reads a bundle to its end and checks every line.
    pub(super) fn of(mut reader: Reader) -> Result<Self> {
        let mut counts = Counts::default();
        let (mut created, mut last, mut materialized) = (None, None, false);
        let mut pieces = Pieces::default();
        while let Some(item) = reader.next()? {
            if let Some(reason) = pieces.take(&item).or_else(|| counts.take(&item)) {
                return Err(reader.bad_line(reason));
            }
            if let Item::Record(LogName::Messages, position, placement) = item {
                last = placement.as_ref().map(|placement| placement.entry.id().clone());
                materialized |= placement.as_ref().is_some_and(is_materialized);
                if position == 0 {
                    created = placement;
                }
            }
        }
        if let Some(reason) = pieces.end() {
            return Err(reader.bad(reason));
        }
        let created = created.filter(|created| created.kind == Kind::Note);
        let Some((created, origin)) = created.and_then(with_origin) else {
            return Err(reader.bad("its first record does not say how the session began"));
        };
        let inherited = origin.filter(|_| !materialized).map_or(0, |origin| origin.depth);
        if inherited != counts.inherited {
            return Err(reader.bad("the inherited entries are not those that the fork began with"));
        }
        let [messages, others @ ..] = counts.records;
        // The session is there with its last record, so that one must come after all other logs.
        let alone = messages == 1 && others != [0, 0];
        let closing = (alone || counts.inherited > 0 || last.is_none()).then(EntryId::generate);
        let end = messages + counts.inherited + u64::from(closing.is_some());
        let arrival = Arrival {
            at: Timestamp::now(),
            last: closing.clone().or(last).unwrap_or_else(EntryId::generate),
            position: Some(end - 1),
            updated_at: reader.header.updated_at,
        };
        Ok(Self { session_id: reader.header.session_id, created, arrival, counts, closing })
    }

    /// Adds the session's own records, all but the first.
    pub(super) async fn records(&self, mut reader: Reader, arriving: &mut Arriving) -> Result<()> {
        while let Some(item) = reader.next()? {
            match item {
                Item::Record(LogName::Messages, 0, _)
                | Item::Inherited(..)
                | Item::Piece(_)
                | Item::Unknown => {}
                Item::Record(log, position, _) if arriving.next(log) != position => {
                    return Err(reader.bad(CHANGED));
                }
                Item::Record(log, _, Some(placement)) => arriving.push(log, placement).await?,
                Item::Record(log, _, None) => arriving.lost(log).await?,
            }
        }
        Ok(())
    }

    /// Adds copies of what it inherits, and the note that ends the log, if it needs one.
    pub(super) async fn copies(&self, mut reader: Reader, arriving: &mut Arriving) -> Result<()> {
        let Some(id) = &self.closing else {
            return Ok(());
        };
        let mut end = None;
        let mut copied = 0;
        while copied < self.counts.inherited {
            match reader.next()? {
                Some(Item::Unknown | Item::Piece(_)) => {}
                Some(Item::Inherited(depth, entry)) => {
                    end = Some(copy(arriving, depth, end, entry).await?);
                    copied += 1;
                }
                _ => return Err(reader.bad(CHANGED)),
            }
        }
        let at = Timestamp::now();
        let note = match self.counts.inherited {
            0 => Note::Set { at, set: Map::new() },
            count => Note::Materialized { at, end, count },
        };
        arriving.note(LogName::Messages, note.to_entry()?.with_id(id.clone())).await
    }

    pub(super) fn imported(&self, session_id: SessionId) -> Imported {
        let Counts { records, inherited, lost, files, skipped } = self.counts;
        let without_files = records[LogName::Checkpoints as usize] > 0 && files == 0;
        let records = records.iter().sum();
        Imported { session_id, records, inherited, lost, files, without_files, skipped }
    }
}

/// Returns a creation note with where its inherited history is; `None` if it is not one.
fn with_origin(created: Placement) -> Option<(Placement, Option<Origin>)> {
    match Note::read(created.entry.as_bytes()) {
        Note::Created { origin, arrival: None, .. } => Some((created, origin)),
        _ => None,
    }
}

/// Returns whether a record says that the inherited history is among the session's own.
fn is_materialized(record: &Placement) -> bool {
    record.kind == Kind::Note && matches!(Note::read(record.entry.as_bytes()), Note::Materialized { .. })
}

/// Adds a copy, or a note in the place of a lost one: whoever reads the chain finds the gap there.
async fn copy(
    arriving: &mut Arriving,
    depth: u64,
    parent: Option<Position>,
    entry: Option<Entry>,
) -> Result<Position> {
    let position = arriving.next(LogName::Messages);
    match entry {
        Some(entry) => {
            let placement = Placement { kind: Kind::Copy, parent, depth, entry };
            arriving.push(LogName::Messages, placement).await?;
        }
        None => arriving.lost(LogName::Messages).await?,
    }
    Ok(position)
}

impl Counts {
    /// Counts a line in. Returns what is wrong with it.
    fn take(&mut self, item: &Item) -> Option<&'static str> {
        match item {
            Item::Unknown => self.skipped += 1,
            Item::Piece(piece) => self.files += u64::from(piece.last),
            Item::Inherited(depth, entry) => {
                if *depth != self.inherited + 1 || self.records != [0; 3] {
                    return Some("inherited entries come first, in order");
                }
                self.inherited += 1;
                self.lost += u64::from(entry.is_none());
            }
            Item::Record(log, position, placement) => {
                let next = &mut self.records[*log as usize];
                if position != next {
                    return Some("it is not the record that comes next");
                }
                if placement.as_ref().is_some_and(|placement| placement.parent >= Some(*position)) {
                    return Some("it follows a record that comes later");
                }
                *next += 1;
                self.lost += u64::from(placement.is_none());
            }
        }
        None
    }
}

//! A record about the session itself. Notes live in the session's own log, so they can never disagree with it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::backend::Position;
use crate::entry::Entry;
use crate::error::Result;
use crate::id::{EntryId, SessionId};
use crate::lease::Holder;
use crate::stamp::Stamp;

/// What is said about a session. An unknown note, from a newer version, is [`Note::Other`] and changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// The session begins; always the first record.
    Created {
        /// When.
        at: Timestamp,
        /// Its first metadata.
        set: Map<String, Value>,
        /// Where its inherited history is, for an attached fork.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// How its log ends, for an imported session; always the last member.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrival: Option<Arrival>,
    },
    /// Metadata changed: these members, `null` meaning removed.
    Set {
        /// When.
        at: Timestamp,
        /// The changed members.
        set: Map<String, Value>,
    },
    /// Another leaf became the active one; the stamp says which.
    Leaf {
        /// When.
        at: Timestamp,
    },
    /// Somebody drives the session from here on; an earlier driver may not append any more.
    Fence {
        /// When.
        at: Timestamp,
        /// The lease it belongs to.
        nonce: String,
        /// Who drives.
        holder: Holder,
        /// The how-many-th driver this is; one that arrives late does not undo a later one.
        #[serde(default)]
        epoch: u64,
    },
    /// The session went to the trash.
    Trashed {
        /// When.
        at: Timestamp,
    },
    /// The session came back from the trash.
    Restored {
        /// When.
        at: Timestamp,
    },
    /// The session is being removed for good; whoever finds this finishes the job.
    Purging {
        /// When.
        at: Timestamp,
    },
    /// The inherited history has been copied into this log and ends at this copy.
    Materialized {
        /// When.
        at: Timestamp,
        /// The position of the last copy; `None` if there was nothing to inherit.
        end: Option<Position>,
        /// How many copies there are.
        #[serde(default)]
        count: u64,
    },
    /// The record that stood here is lost.
    Lost {
        /// When that was found.
        at: Timestamp,
    },
    /// A note this version does not know.
    #[serde(other)]
    Other,
}

/// The entry of another session at which an attached fork begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The session that holds the entry.
    pub session: SessionId,
    /// Its position there.
    pub position: Position,
    /// Its id, to be checked against what stands at that position.
    pub entry: EntryId,
    /// How many entries are inherited.
    pub depth: u64,
}

/// How the log of an imported session ends. Before that record is there, the session is not: an import that was
/// interrupted leaves nothing that looks like a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// When the import began.
    pub at: Timestamp,
    /// The id of the last record.
    pub last: EntryId,
    /// Its position, where that was known when the import began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// When the session was last written to in its former place, in case its entries do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

impl Arrival {
    /// Returns whether this record is the last one.
    pub(crate) fn ends_with(&self, stamp: &Stamp) -> bool {
        stamp.id == self.last && self.position.is_none_or(|position| position == stamp.position)
    }
}

impl Note {
    /// Returns the note as a record's body.
    pub(crate) fn to_entry(&self) -> Result<Entry> {
        self.to_entry_after(None)
    }

    /// Returns the note as the body of a record that follows an entry made at some time.
    ///
    /// An entry that does not say when it was made leaves that to the log's own time, which a note changes too; so the
    /// note that follows it keeps it.
    pub(crate) fn to_entry_after(&self, entry_at: Option<Timestamp>) -> Result<Entry> {
        #[derive(Serialize)]
        struct Dated<'a> {
            #[serde(flatten)]
            note: &'a Note,
            #[serde(skip_serializing_if = "Option::is_none")]
            entry_at: Option<Timestamp>,
        }
        Ok(Entry::of(&Dated { note: self, entry_at })?.with_id(EntryId::generate()))
    }

    /// Returns when the entry before a note was made, if the note says so.
    pub(crate) fn entry_at(body: &[u8]) -> Option<Timestamp> {
        #[derive(Deserialize)]
        struct Dated {
            entry_at: Option<Timestamp>,
        }
        serde_json::from_slice::<Dated>(body).ok()?.entry_at
    }

    /// Reads a record's body.
    pub(crate) fn read(body: &[u8]) -> Note {
        serde_json::from_slice(body).unwrap_or(Note::Other)
    }
}

//! What is wrong with a transcript, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that is not as Claude Code writes it. What could be read was read all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// How many bytes it is about.
    pub length: u64,
    /// What it is.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// The file ends in the middle of a line: its writer died, or is just writing.
    TornTail,
    /// Bytes of zero, as a file system leaves them after a power cut.
    NulRun,
    /// Several entries on one line. Those that are whole were read.
    Glued {
        /// How many could be read.
        recovered: usize,
    },
    /// A line that is no JSON object.
    Garbage,
    /// Text with half a surrogate pair: some programs refuse the whole line.
    LoneSurrogate,
    /// Bytes that are no UTF-8.
    NotUtf8,
    /// An id that an earlier entry has too; the later one counts.
    DuplicateUuid {
        /// The id.
        uuid: String,
    },
    /// An entry that follows one that is not there. It was taken to follow the one before it in the file.
    DanglingParent {
        /// The entry.
        uuid: String,
        /// What it should follow.
        parent: String,
    },
    /// An entry that follows itself, over others or directly. It was taken to follow the one before it in the file.
    Cycle {
        /// The entry.
        uuid: String,
    },
    /// An empty file.
    Empty,
    /// A file without a single entry that can be read.
    NothingReadable,
    /// Entries, and no conversation among them: Claude Code cannot resume it.
    NoConversation,
}

impl FaultKind {
    /// Returns whether something of the conversation cannot be read, or only with luck.
    pub fn is_damage(&self) -> bool {
        !matches!(self, FaultKind::LoneSurrogate | FaultKind::NoConversation)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::TornTail => write!(f, "the file ends in the middle of a line"),
            FaultKind::NulRun => write!(f, "bytes of zero"),
            FaultKind::Glued { recovered: 1 } => {
                write!(f, "a broken line runs into the next one; 1 entry of it can be read")
            }
            FaultKind::Glued { recovered } => {
                write!(f, "several entries on one line; {recovered} of them can be read")
            }
            FaultKind::Garbage => write!(f, "a line that is no entry"),
            FaultKind::LoneSurrogate => write!(f, "half a surrogate pair in a text"),
            FaultKind::NotUtf8 => write!(f, "bytes that are no text"),
            FaultKind::DuplicateUuid { uuid } => write!(f, "entry {uuid} is there more than once"),
            FaultKind::DanglingParent { uuid, parent } => {
                write!(
                    f,
                    "entry {uuid} follows {parent}, which is not there; Claude Code may forget what came before"
                )
            }
            FaultKind::Cycle { uuid } => write!(f, "entry {uuid} follows itself"),
            FaultKind::Empty => write!(f, "the file is empty"),
            FaultKind::NothingReadable => write!(f, "nothing in the file can be read"),
            FaultKind::NoConversation => write!(f, "the file holds no conversation"),
        }
    }
}

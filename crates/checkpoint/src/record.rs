//! One record of a session's log `checkpoints`: a capture of files, or something about captures.

use jiff::Timestamp;
use rethread_store::backend::Position;
use rethread_store::{BlobId, Entry, EntryId, SessionId};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::error::Result;
use crate::name::Name;
use crate::path::TreePath;
use crate::state::State;

/// What was recorded of files at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Its name, by which files can be rewound to it.
    pub id: EntryId,
    /// What it is.
    pub what: What,
    /// When it was made.
    pub created_at: Timestamp,
    /// The user message whose turn it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<EntryId>,
    /// The tool calls in whose window its changes appeared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_use: Vec<String>,
    /// The child that made it; the session itself if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The folder that its paths are beneath.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<Name>,
    /// What is known of which paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What a whole-tree capture did not look at, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What was to be captured before this and could not be. Every plan across it is incomplete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<String>,
    /// What the whole tree was, for the captures that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tree: Option<Baseline>,
    /// What a rewind is about to do, or did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rewind: Option<Intent>,
    /// How a rewind ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Ended>,
    /// What retention took away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retire: Option<Retire>,
    /// What is to be kept, or no longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pin: Option<Pin>,
    /// The session that it was inherited from, in a fork that no longer needs that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inherited: Option<SessionId>,
    /// Where it stands in its log.
    #[serde(skip)]
    pub(crate) position: Position,
    /// Parts of the record that make no sense, in words.
    #[serde(skip)]
    pub(crate) unreadable: Vec<String>,
}

/// What a record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum What {
    /// What paths were before a tool was to change them.
    #[default]
    Before,
    /// What a tool left behind.
    After,
    /// What changed beneath the root since the last time.
    Tree,
    /// Something that was to be captured and was not.
    Missed,
    /// What a rewind replaces and restores; the receipt.
    Rewind,
    /// How a rewind ended.
    Ended,
    /// Older captures were given up.
    Retire,
    /// A capture is to be kept, or no longer.
    Pin,
    /// Everything that Claude Code keeps of the session, for another machine to take.
    Handoff,
    /// Something that a newer version writes.
    #[serde(other)]
    Other,
}

/// What is known of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where.
    pub path: TreePath,
    /// What it was; `None`: nobody looked.
    pub before: Option<State>,
    /// What it became; `None`: nobody looked.
    pub after: Option<State>,
    /// Who changed it, as far as that can be told.
    pub source: Source,
}

/// Who changed a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A tool that named the path.
    Named,
    /// It appeared while the listed tool calls ran; a person's save at that moment cannot be told apart.
    Window,
    /// It appeared when no tool ran.
    Outside,
    /// A rewind.
    Rewind,
}

/// Something that a whole-tree capture did not look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Where: a file, or a folder with all that is in it.
    pub path: TreePath,
    /// Why.
    pub reason: String,
}

/// A whole tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// The blob that lists every path with its state.
    pub(crate) list: BlobId,
    /// How many paths it lists.
    pub(crate) paths: u64,
    /// Every blob that the list refers to, so that nothing takes them away.
    pub(crate) holds: Vec<BlobId>,
}

/// What a rewind is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// What it goes back to.
    pub(crate) to: EntryId,
    /// The root folder itself, so that nobody finishes a rewind of another machine's folder of the same name.
    pub(crate) place: String,
}

/// How a rewind ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) receipt: EntryId,
    pub(crate) outcome: Outcome,
    /// Paths that somebody else had changed before a recovery came to them; they were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<TreePath>,
}

/// What became of a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every path is as planned.
    Done,
    /// Every path is as it was.
    TakenBack,
}

/// Captures that were given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retire {
    /// All records before this position.
    pub(crate) before: Position,
    /// But these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) keep: Vec<Position>,
}

/// A capture that retention must not touch, or may again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    pub(crate) checkpoint: EntryId,
    pub(crate) pinned: bool,
}

impl Checkpoint {
    pub(crate) fn new(id: EntryId, what: What) -> Self {
        Self {
            id,
            what,
            created_at: Timestamp::now(),
            message: None,
            tool_use: Vec::new(),
            session: None,
            root: None,
            changes: Vec::new(),
            left_out: Vec::new(),
            missed: Vec::new(),
            tree: None,
            rewind: None,
            ended: None,
            retire: None,
            pin: None,
            inherited: None,
            position: 0,
            unreadable: Vec::new(),
        }
    }

    /// Returns whether files can be rewound to it.
    pub fn is_capture(&self) -> bool {
        matches!(self.what, What::Before | What::After | What::Tree | What::Rewind)
    }

    pub(crate) fn entry(&self) -> Result<Entry> {
        Ok(Entry::of(self)?)
    }

    /// Reads a record, whoever wrote it. What makes no sense is named, and the rest is kept.
    pub(crate) fn read(entry: &Entry, position: Position) -> Self {
        let wire: Wire = match serde_json::from_slice(entry.as_bytes()) {
            Ok(wire) => wire,
            Err(error) => {
                let mut record = Self::new(entry.id().clone(), What::Other);
                record.position = position;
                record.unreadable.push(format!("record {position} makes no sense: {error}"));
                return record;
            }
        };
        let mut unreadable = Vec::new();
        let mut changes = Vec::with_capacity(wire.changes.len());
        for change in wire.changes {
            match serde_json::from_str(change.get()) {
                Ok(change) => changes.push(change),
                Err(error) => {
                    unreadable.push(format!("record {position} has a change that makes no sense: {error}"))
                }
            }
        }
        Self {
            id: entry.id().clone(),
            what: wire.what,
            created_at: wire.created_at.unwrap_or_default(),
            message: wire.message,
            tool_use: wire.tool_use,
            session: wire.session,
            root: wire.root,
            changes,
            left_out: wire.left_out,
            missed: wire.missed,
            tree: wire.tree,
            rewind: wire.rewind,
            ended: wire.ended,
            retire: wire.retire,
            pin: wire.pin,
            inherited: wire.inherited,
            position,
            unreadable,
        }
    }
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    what: What,
    #[serde(default, deserialize_with = "lenient")]
    created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient")]
    message: Option<EntryId>,
    #[serde(default)]
    tool_use: Vec<String>,
    #[serde(default)]
    session: Option<SessionId>,
    #[serde(default)]
    root: Option<Name>,
    #[serde(default)]
    changes: Vec<Box<RawValue>>,
    #[serde(default)]
    left_out: Vec<LeftOut>,
    #[serde(default)]
    missed: Vec<String>,
    #[serde(default)]
    tree: Option<Baseline>,
    #[serde(default)]
    rewind: Option<Intent>,
    #[serde(default)]
    ended: Option<Ended>,
    #[serde(default)]
    retire: Option<Retire>,
    #[serde(default)]
    pin: Option<Pin>,
    #[serde(default)]
    inherited: Option<SessionId>,
}

/// Older stores had other ideas of times and of ids; a record is worth more than either.
fn lenient<'de, D: Deserializer<'de>, T: std::str::FromStr>(
    deserializer: D,
) -> std::result::Result<Option<T>, D::Error> {
    let text = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(text.as_ref().and_then(serde_json::Value::as_str).and_then(|text| text.parse().ok()))
}

//! What a rewind would do: pure data, the same for a dry run and for the rewind itself.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rethread_store::{BlobId, SessionId};
use serde::Serialize;

use crate::look::Print;
use crate::path::TreePath;
use crate::point::Point;
use crate::state::{Present, State};

/// What a rewind would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// Whose files.
    pub session: SessionId,
    /// The folder that all paths are beneath.
    pub root: PathBuf,
    /// What it goes back to.
    pub to: Point,
    /// What the caller chose.
    pub choices: Choices,
    /// What would happen, path by path.
    pub steps: Vec<Step>,
    /// Paths that stop the rewind, unless they are forced or left out by name.
    pub conflicts: Vec<Conflict>,
    /// Paths that are never touched, and why: they were not kept, or the caller left them out.
    pub skipped: Vec<Skipped>,
    /// Why this may not be everything that changed since the point.
    pub incomplete: Vec<String>,
    /// Lines that the rewind adds.
    pub insertions: u64,
    /// Lines that it removes.
    pub deletions: u64,
    /// Stands for all of the above: applying the plan makes sure that it still holds.
    pub digest: BlobId,
}

/// What the caller says about paths, by name. A folder's name means everything in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Choices {
    /// If not empty, nothing else is looked at.
    pub only: BTreeSet<TreePath>,
    /// Rewound in spite of a conflict; what is there is saved first.
    pub force: BTreeSet<TreePath>,
    /// Left as they are.
    pub leave: BTreeSet<TreePath>,
}

/// What would happen to one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Where.
    pub path: TreePath,
    /// What would happen, in one word.
    pub action: Action,
    /// What is there now.
    pub now: State,
    /// What will be there.
    pub target: State,
    /// What the agent left there last, if somebody looked.
    pub expected: Option<State>,
    /// Nobody looked after the agent's last change: what is there now is taken for the agent's.
    pub assumed: bool,
    /// There is a conflict, and the caller wants it so.
    pub forced: bool,
    /// The file has other names, which keep the content that it has now.
    pub several_names: bool,
    /// Lines that it adds; `None` for what has no lines to count.
    pub insertions: Option<u64>,
    /// Lines that it removes.
    pub deletions: Option<u64>,
    #[serde(skip)]
    pub(crate) print: Option<Print>,
}

/// What happens to a path, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is there and gets its former content or permissions.
    Restore,
    /// It is not there and comes back.
    Create,
    /// It was not there and goes.
    Remove,
}

/// Why a path stops a rewind, with what it was, what the agent left and what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Conflict {
    /// Where.
    pub path: TreePath,
    /// Why.
    pub reason: Reason,
    /// In words.
    pub because: String,
    /// What it was at the point.
    pub base: State,
    /// What the agent left there last.
    pub ours: Option<State>,
    /// What is there now.
    pub theirs: State,
}

/// Why a path stops a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It is not as the agent left it.
    Edited,
    /// Somebody changed it between two changes of the agent's.
    EditedBetween,
    /// It changed when no tool ran.
    Outside,
    /// What it was, or what it is, nobody knows.
    Unknown,
    /// Its former content is not in the store.
    Missing,
    /// Something that is not part of this rewind is in its place.
    Blocked,
}

impl Reason {
    /// Returns whether forcing helps: there is something to restore, and what is there can be saved.
    pub fn can_be_forced(self) -> bool {
        matches!(self, Reason::Edited | Reason::EditedBetween | Reason::Outside)
    }
}

/// A path that is not touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Where.
    pub path: TreePath,
    /// Why.
    pub reason: String,
    /// Whether the caller wanted it so.
    pub wanted: bool,
}

impl Plan {
    /// Returns whether it can be applied.
    pub fn is_ready(&self) -> bool {
        self.conflicts.is_empty()
    }

    /// Returns whether it restores everything that changed since the point, as far as was asked for.
    pub fn is_complete(&self) -> bool {
        let all = self.skipped.iter().all(|skipped| skipped.wanted);
        self.incomplete.is_empty() && self.conflicts.is_empty() && all
    }

    /// Computes what stands for the plan. Line counts follow from the states.
    pub(crate) fn seal(&mut self) {
        let steps: Vec<_> = self.steps.iter().map(|step| (&step.path, &step.now, &step.target)).collect();
        let whole = (&self.session, &self.root, &self.to, &self.choices, steps, &self.conflicts);
        // States are made of what JSON can hold.
        self.digest = BlobId::of(&serde_json::to_vec(&whole).unwrap_or_default());
    }
}

impl Choices {
    pub(crate) fn is_wanted(&self, path: &TreePath) -> bool {
        self.only.is_empty() || names(&self.only, path)
    }

    pub(crate) fn is_left(&self, path: &TreePath) -> bool {
        names(&self.leave, path)
    }

    pub(crate) fn is_forced(&self, path: &TreePath) -> bool {
        names(&self.force, path)
    }
}

fn names(chosen: &BTreeSet<TreePath>, path: &TreePath) -> bool {
    !chosen.is_empty() && (chosen.contains(path) || path.ancestors().any(|folder| chosen.contains(&folder)))
}

impl Action {
    pub(crate) fn of(now: &State, target: &State) -> Self {
        match (now, target) {
            (_, State::Absent) => Action::Remove,
            (State::Absent, _) => Action::Create,
            _ => Action::Restore,
        }
    }
}

impl Step {
    pub(crate) fn new(path: TreePath, now: State, target: State) -> Self {
        let several_names = matches!(&now, State::Present(Present::File(file)) if file.names > 1);
        let action = Action::of(&now, &target);
        Self {
            path,
            action,
            now,
            target,
            expected: None,
            assumed: false,
            forced: false,
            several_names,
            insertions: None,
            deletions: None,
            print: None,
        }
    }
}

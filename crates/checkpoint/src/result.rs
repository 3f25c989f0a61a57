//! What a rewind came to, in the shape that the agent SDK gives it.

use std::path::PathBuf;

use rethread_store::EntryId;
use serde::Serialize;

use crate::error::Error;
use crate::plan::{Conflict, Plan, Skipped};
use crate::state::{Present, State};

/// What a rewind did, would do, or could not do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Rewound {
    /// Whether there is, or was, something to go back to.
    pub can_rewind: bool,
    /// Why nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was changed, as absolute paths.
    pub files_changed: Vec<PathBuf>,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// By which it can be undone; none if nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<EntryId>,
    /// Whether everything that changed since the point is as it was then.
    pub complete: bool,
    /// Why this may not be everything that changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
    /// What is in the way.
    pub conflicts: Vec<Conflict>,
    /// What was not touched.
    pub skipped: Vec<Skipped>,
}

impl Rewound {
    /// Returns what applying a plan came to, or would come to without a receipt.
    pub fn of(plan: &Plan, receipt: Option<EntryId>) -> Self {
        let error = (!plan.is_ready()).then(|| match &plan.conflicts[..] {
            [only] => format!("{}: {}", only.path, only.because),
            all => format!("{} paths are in the way", all.len()),
        });
        Self {
            can_rewind: plan.is_ready(),
            error,
            files_changed: files(plan),
            insertions: plan.insertions,
            deletions: plan.deletions,
            receipt,
            complete: plan.is_complete(),
            incomplete: plan.incomplete.clone(),
            conflicts: plan.conflicts.clone(),
            skipped: plan.skipped.clone(),
        }
    }

    /// Returns that nothing was changed, and why.
    pub fn refused(error: &Error) -> Self {
        Self { error: Some(error.to_string()), ..Self::default() }
    }
}

/// Folders that come and go with their files are none.
fn files(plan: &Plan) -> Vec<PathBuf> {
    let is_file = |state: &State| matches!(state, State::Present(Present::File(_) | Present::Symlink(_)));
    let steps = plan.steps.iter().filter(|step| is_file(&step.now) || is_file(&step.target));
    steps.map(|step| plan.root.join(step.path.as_path())).collect()
}

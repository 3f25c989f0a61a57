//! How a session is driven.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::keeper::COMPANION;

/// How a session is driven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) session: String,
    pub(crate) cwd: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) permission_mode: Option<String>,
    pub(crate) model: Option<String>,
}

impl Begin {
    /// Notes in a session's companion how it was begun, for whoever drives it next.
    pub(crate) fn note(&self, companion: &mut rethread_store::Metadata) {
        let how = serde_json::json!({ "permission_mode": self.permission_mode, "model": self.model });
        companion.extra.insert(COMPANION.into(), how);
    }

    /// Takes over how a session was begun, by what its companion says.
    pub(crate) fn recall(&mut self, companion: &rethread_store::Metadata) {
        (self.permission_mode, self.model) = (Self::mode_of(companion), noted(companion, "model"));
    }

    /// Returns the permission mode that a session was begun in, by what its companion says.
    pub(crate) fn mode_of(companion: &rethread_store::Metadata) -> Option<String> {
        noted(companion, "permission_mode")
    }
}

fn noted(companion: &rethread_store::Metadata, name: &str) -> Option<String> {
    companion.extra.get(COMPANION)?.get(name).and_then(Value::as_str).map(str::to_owned)
}

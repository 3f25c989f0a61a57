//! Which machine this is, and which of Claude Code's folders on it.

use std::path::Path;

use rethread_store::Holder;

use crate::credentials::hash;

/// Where native sessions are: two keepers of one place see the same files.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) id: String,
    /// The machine, for people.
    pub(crate) host: String,
}

impl Place {
    pub(crate) fn of(claude_folder: Option<&Path>) -> Self {
        let host = Holder::this_process("keeps").host;
        let folder = claude_folder.map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
        let folder = folder.unwrap_or_default();
        Self { id: hash(&format!("{host}:{}", folder.display()))[..16].to_owned(), host }
    }
}

//! Which machine this is, and which of Claude Code's folders on it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
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
        // Machines may be alike in name and in paths: then their folders differ in their numbers, or the systems do.
        let inode = fs::metadata(&folder).map(|it| it.ino()).unwrap_or_default();
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let id = hash(&format!("{host}:{}:{inode}:{}", folder.display(), machine.trim()));
        Self { id: id[..16].to_owned(), host }
    }
}

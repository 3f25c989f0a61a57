//! The folders in a folder. Links are no folders: nothing that is listed leads elsewhere.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType};

/// A folder in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Folder {
    pub(crate) name: String,
}

impl Folder {
    /// Returns whether it is the root of a git repository, or of a worktree.
    pub(crate) fn is_repository(&self, parent: &OwnedFd) -> bool {
        rustix::fs::statat(parent, format!("{}/.git", self.name), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }
}

/// Lists the folders in a folder, by name. A name that is no text can be named by nobody, and is left out.
pub(crate) fn folders(folder: &OwnedFd) -> io::Result<Vec<Folder>> {
    let mut all = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            // Not every file system says.
            FileType::Unknown => rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()),
            _ => false,
        };
        if is_folder && !matches!(name, "." | "..") {
            all.push(Folder { name: name.to_owned() });
        }
    }
    all.sort();
    Ok(all)
}

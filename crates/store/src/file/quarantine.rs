//! Where damaged bytes are kept: copied, named by their place, never deleted by us.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, Open, write_all_at};
use crate::backend::Damage;
use crate::error::{Error, Result};
use crate::id::{BlobId, SessionId};

/// The quarantine of one session.
#[derive(Debug)]
pub(crate) struct Quarantine {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    session: SessionId,
}

impl Quarantine {
    pub(crate) fn new(disk: &Arc<dyn Disk>, root: &Path, session: &SessionId) -> Self {
        Self { disk: disk.clone(), folder: root.join("quarantine"), session: session.clone() }
    }

    /// Keeps a copy of damaged bytes; the same bytes of the same place only once.
    pub(crate) fn keep(&self, damage: &Damage, bytes: &[u8]) -> Result<()> {
        let hash = BlobId::of(bytes).to_string();
        let path =
            self.folder.join(format!("{}.{}.{}.{}", self.session, damage.file, damage.offset, &hash[..12]));
        if self.disk.stat(&path).is_ok() {
            return Ok(());
        }
        make_folder(&*self.disk, &self.folder)?;
        let keep = || {
            let file = self.disk.open(&path, Open::Update)?;
            write_all_at(&*file, bytes, 0)?;
            file.sync()?;
            self.disk.sync_folder(&self.folder)
        };
        keep().map_err(Error::io("copy damaged bytes to", &path))
    }

    /// Makes a folder for the files of a log as they were before a repair.
    pub(crate) fn backup_folder(&self, label: &str) -> Result<PathBuf> {
        make_folder(&*self.disk, &self.folder)?;
        let path = self.folder.join(format!("{}.{label}", self.session));
        make_folder(&*self.disk, &path)?;
        Ok(path)
    }
}

/// Makes a folder, and those it is in, unless it is there.
pub(crate) fn make_folder(disk: &dyn Disk, path: &Path) -> Result<()> {
    let failed = match disk.make_folder(path) {
        Ok(()) => return sync_parent(disk, path),
        Err(error) => error,
    };
    match (failed.kind(), path.parent()) {
        (std::io::ErrorKind::AlreadyExists, _) => Ok(()),
        (std::io::ErrorKind::NotFound, Some(parent)) => {
            make_folder(disk, parent)?;
            // Once more and no oftener: there are places where a folder can never be made.
            match disk.make_folder(path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    Err(Error::io("make folder", path)(error))
                }
                _ => sync_parent(disk, path),
            }
        }
        _ => Err(Error::io("make folder", path)(failed)),
    }
}

/// Makes the names in a folder durable, and its own, up to the one that the store is in: whoever made one of them may
/// have died before its name was durable, and everybody since has found it there.
pub(crate) fn sync_up(disk: &dyn Disk, root: &Path, folder: &Path) -> Result<()> {
    for folder in folder.ancestors().take_while(|ancestor| ancestor.starts_with(root)) {
        disk.sync_folder(folder).map_err(Error::io("sync", folder))?;
    }
    match sync_parent(disk, root) {
        // A folder that is not ours to read is not ours to sync either; the root was there before us.
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Makes a new folder's name durable.
fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    disk.sync_folder(parent).map_err(Error::io("sync", parent))
}

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

/// Makes a folder unless it is there.
pub(crate) fn make_folder(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.make_folder(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.parent().is_some() => {
            path.parent().map_or(Ok(()), |parent| make_folder(disk, parent))?;
            make_folder(disk, path)
        }
        made => made.map_err(Error::io("make folder", path)),
    }
}

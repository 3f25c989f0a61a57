//! Files that only their owner may read, whatever the umask.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::{Error, Result};

/// Makes a folder that is closed to others, or closes it.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// Replaces a file whole, or not at all. It is durable when this returns.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replaced(path, bytes).map(drop)
}

/// Replaces a file whole, or not at all, and returns it, to be written on from its end.
pub(crate) fn replaced(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let aside = path.with_extension(format!("{}.aside", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    path.parent().map_or(Ok(()), sync)?;
    Ok(file)
}

/// Makes what was made or renamed in a folder durable.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Opens a file to append to.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Has a folder to itself, as what is named, until the file is dropped.
pub(crate) fn lock(home: &Path, what: &'static str) -> Result<File> {
    let path = home.join("lock");
    let file = append(&path).map_err(Error::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let pid = fs::read_to_string(&path).ok().and_then(|pid| pid.trim().parse().ok()).unwrap_or(0);
            return Err(Error::RunsAlready { what, pid });
        }
        Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
    }
    // Written in place, so that the lock stays with the file.
    file.set_len(0).map_err(Error::io("write", &path))?;
    (&file).write_all(std::process::id().to_string().as_bytes()).map_err(Error::io("write", &path))?;
    Ok(file)
}

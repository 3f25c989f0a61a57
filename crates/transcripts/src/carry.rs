//! Files and folders moved elsewhere, over to another file system too, such that nothing is ever lost on the way.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// Moves a file or a folder. What is not there needs no moving; what is there already stays as it is.
///
/// Called again after it was cut short, it goes on.
pub(crate) fn carry(from: &Path, to: &Path) -> Result<()> {
    let Ok(kind) = fs::symlink_metadata(from) else { return Ok(()) };
    // A file would take the place of another without a word.
    let is_taken = !kind.is_dir() && fs::symlink_metadata(to).is_ok();
    let moved = if is_taken { Err(io::ErrorKind::AlreadyExists.into()) } else { fs::rename(from, to) };
    match moved.map_err(|error| (error.kind(), error)) {
        Ok(()) => Ok(()),
        Err((io::ErrorKind::CrossesDevices | io::ErrorKind::DirectoryNotEmpty, _))
        | Err((io::ErrorKind::AlreadyExists, _)) => {
            copy_all(from, to).map_err(Error::io("move", from))?;
            let remove = if kind.is_dir() { fs::remove_dir_all(from) } else { fs::remove_file(from) };
            remove.map_err(Error::io("remove", from))
        }
        Err((_, error)) => Err(Error::io("move", from)(error)),
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if !kind.is_dir() {
        return copy(from, to);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    // Its names are to be on disk before the others go.
    File::open(to)?.sync_all()
}

/// Copies a file, whole or not at all.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Ok(there) = fs::read(to) {
        let is_same = there == fs::read(from)?;
        return if is_same { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) };
    }
    let folder = to.parent().unwrap_or(Path::new("."));
    let aside = tempfile::NamedTempFile::new_in(folder)?.into_temp_path();
    fs::copy(from, &aside)?;
    // Opened for reading: what may not be written may still be told its time.
    let file = File::open(&aside)?;
    file.set_modified(fs::metadata(from)?.modified()?)?;
    file.sync_all()?;
    aside.persist_noclobber(to).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_already_is_kept_and_the_rest_follows() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for place in [&from, &to] {
            fs::create_dir_all(place.join("deep")).unwrap();
            fs::write(place.join("deep/same"), "same").unwrap();
        }
        fs::write(from.join("deep/new"), "new").unwrap();
        carry(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("deep/new")).unwrap(), b"new");
        assert!(!from.try_exists().unwrap());
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/same"), "another").unwrap();
        carry(&from, &to).unwrap_err();
        assert_eq!(fs::read(to.join("deep/same")).unwrap(), b"same");
        assert_eq!(fs::read(from.join("deep/same")).unwrap(), b"another");
    }

    #[test]
    fn another_file_system_gets_the_same_with_its_times_and_modes() {
        use std::os::unix::fs::PermissionsExt as _;
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), other.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink("kept", from.join("link")).unwrap();
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::options().append(true).open(from.join("kept")).unwrap().set_modified(at).unwrap();
        fs::set_permissions(from.join("kept"), fs::Permissions::from_mode(0o444)).unwrap();
        carry(&from, &to).unwrap();
        let there = fs::metadata(to.join("kept")).unwrap();
        assert_eq!((there.modified().unwrap(), there.permissions().mode() & 0o777), (at, 0o444));
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("kept"));
        assert!(!from.try_exists().unwrap());
    }
}

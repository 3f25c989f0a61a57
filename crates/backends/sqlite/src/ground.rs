//! The file system that the file is on.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rethread_store::{Error, Result};

use crate::shared_file_system::is_shared;

/// Refuses a file system that locks and shared memory do not work on.
pub(crate) fn check(path: &Path) -> Result<()> {
    check_by(path, |there| rustix::fs::statfs(there).ok().map(|it| it.f_type))
}

fn check_by(path: &Path, kind_of: impl Fn(&Path) -> Option<i64>) -> Result<()> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The file itself, if it is there: it may be a link to somewhere else.
    let there = absolute.ancestors().find(|there| there.try_exists().unwrap_or(false));
    if !there.and_then(kind_of).is_some_and(is_shared) {
        return Ok(());
    }
    Err(Error::BadName {
        what: "place for SQLite",
        text: path.display().to_string(),
        rule: "it is on a network file system, where SQLite may lose data; use a local disk, or PostgreSQL",
    })
}

/// Makes a file that only its owner can read, unless it is there; what SQLite puts beside it gets the same rights.
pub(crate) fn make_file(path: &Path) -> Result<()> {
    make_folder_of(path)?;
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Error::io("create", path)(error)),
        _ => Ok(()),
    }
}

/// Makes the folder of a file, and sees to it that a power cut does not take it away again.
fn make_folder_of(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.is_dir()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Error::io("create", folder))?;
    for made in missing {
        let above = made.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(above).and_then(|above| above.sync_all()).map_err(Error::io("sync", above))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a file system takes another machine; here a folder is taken for one.
    #[test]
    fn a_file_that_is_shared_or_would_be_is_refused_and_a_link_to_one_too() {
        let folder = tempfile::tempdir().unwrap();
        let (here, shared) = (folder.path().join("here"), folder.path().join("shared"));
        [&here, &shared].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::fs::write(shared.join("old.db"), b"").unwrap();
        std::os::unix::fs::symlink(shared.join("old.db"), here.join("link.db")).unwrap();
        let real = shared.canonicalize().unwrap();
        let kind_of =
            |there: &Path| Some(if there.canonicalize().ok()?.starts_with(&real) { 0x6969 } else { 0xEF53 });
        for refused in [
            shared.join("new.db"),
            shared.join("deep/er/new.db"),
            shared.join("old.db"),
            here.join("link.db"),
        ] {
            let error = check_by(&refused, kind_of).unwrap_err();
            assert!(error.to_string().contains("network file system"), "{}: {error}", refused.display());
        }
        check_by(&here.join("deep/new.db"), kind_of).unwrap();
    }
}

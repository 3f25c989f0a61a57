//! Documents as files, replaced whole: written aside, synced, renamed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use twox_hash::XxHash3_64;

use super::disk::{Disk, Open, Stat, read_range, write_all_at};
use super::lock::LockFile;
use super::quarantine::{make_folder, sync_up};
use crate::backend::{Document, Expect, Key, Listed, Put, Version};
use crate::defect::Defect;
use crate::error::{Error, Result};

/// A temporary file older than this belongs to a process that died.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Returns a document's file.
pub(crate) fn path(root: &Path, key: &Key) -> PathBuf {
    root.join(format!("{key}.json"))
}

/// Reads a document.
pub(crate) fn get(disk: &dyn Disk, path: &Path) -> Result<Option<Document>> {
    let file = match disk.open(path, Open::Read) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let read = || read_range(&*file, 0, file.stat()?.length);
    let bytes = read().map_err(Error::io("read", path))?;
    Ok(Some(Document { version: version(&bytes), bytes: bytes.into() }))
}

/// Replaces a document, if what is there is what was expected. Run under a lock unless anything goes.
pub(crate) fn put(disk: &dyn Disk, root: &Path, path: &Path, bytes: &[u8], expect: &Expect) -> Result<Put> {
    if *expect != Expect::Any {
        let current = get(disk, path)?;
        let holds = match (expect, &current) {
            (Expect::Version(expected), Some(current)) => current.version == *expected,
            (Expect::Absent, None) => true,
            _ => false,
        };
        if !holds {
            return Ok(Put::Conflict(current));
        }
    }
    let folder = path.parent().unwrap_or(path);
    make_folder(disk, folder)?;
    // A session's folder is durable since its log is.
    let settled = path.starts_with(root.join("sessions")) && disk.stat(path).is_ok();
    replace(disk, path, bytes)?;
    if !settled {
        sync_up(disk, root, folder)?;
    }
    Ok(Put::Done(version(bytes)))
}

/// Replaces a file whole: written aside, synced, renamed.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    let mut aside = folder.join(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    if Defect::ReplaceInPlace.is_on() {
        let _ = disk.remove_file(path);
        aside = path.to_owned();
    }
    let write = || {
        let file = disk.open(&aside, Open::New)?;
        write_all_at(&*file, bytes, 0)?;
        if !Defect::RenameBeforeSync.is_on() {
            file.sync()?;
        }
        disk.rename(&aside, path)?;
        disk.sync_folder(folder)
    };
    write().map_err(|error| {
        // The old document is untouched; what was written aside is swept up later if this fails too.
        let _ = disk.remove_file(&aside);
        Error::io("write", path)(error)
    })
}

/// Runs something under the lock of the whole store.
pub(crate) fn locked<T>(
    disk: &Arc<dyn Disk>,
    root: &Path,
    owner: &str,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    make_folder(&**disk, root)?;
    let mut lock = LockFile::open(disk, root, owner)?;
    lock.acquire(&"the store", Duration::from_secs(5))?;
    let done = work();
    lock.release();
    done
}

/// Removes a file, durably.
pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> Result<bool> {
    match disk.remove_file(path) {
        Ok(()) => {
            let folder = path.parent().unwrap_or(path);
            disk.sync_folder(folder).map_err(Error::io("sync", folder))?;
            Ok(true)
        }
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}

/// Lists the documents of the store itself: those beside `sessions`, and those one folder down.
pub(crate) fn list(disk: &dyn Disk, root: &Path, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    let folders =
        [root.to_owned()].into_iter().chain(names(disk, root)?.into_iter().map(|name| root.join(name)));
    for folder in folders {
        let prefix = folder.strip_prefix(root).map(|path| path.display().to_string()).unwrap_or_default();
        for file in names(disk, &folder)? {
            let Some(stem) = file.strip_suffix(".json") else {
                continue;
            };
            let name = if prefix.is_empty() { stem.to_owned() } else { format!("{prefix}/{stem}") };
            if name.parse::<Key>().is_err() {
                continue;
            }
            let path = folder.join(&file);
            let stat = disk.stat(&path).map_err(Error::io("look at", &path))?;
            let change = format!("{}:{}:{}", stat.inode, stat.length, stat.modified);
            listed.push(Listed { name, change, modified: super::timestamp(stat.modified) });
        }
    }
    listed.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(listed
        .into_iter()
        .filter(|listed| after.is_none_or(|after| listed.name.as_str() > after))
        .take(limit)
        .collect())
}

/// Removes temporary files whose process died.
pub(crate) fn sweep(disk: &dyn Disk, root: &Path) -> Result<u64> {
    let sessions = root.join("sessions");
    let mut folders = vec![root.to_owned()];
    folders.extend(names(disk, root)?.into_iter().map(|name| root.join(name)));
    folders.extend(names(disk, &sessions)?.into_iter().map(|name| sessions.join(name)));
    folders.iter().map(|folder| sweep_folder(disk, folder)).sum()
}

/// The same for one folder.
pub(crate) fn sweep_folder(disk: &dyn Disk, folder: &Path) -> Result<u64> {
    let mut swept = 0;
    for name in names(disk, folder)? {
        let path = folder.join(&name);
        let temporary = name.starts_with('.') && name.ends_with(".tmp");
        if temporary && disk.stat(&path).is_ok_and(|stat| is_abandoned(&stat)) {
            swept += u64::from(remove(disk, &path)?);
        }
    }
    Ok(swept)
}

/// Returns whether nobody can still be at work on this.
pub(crate) fn is_abandoned(stat: &Stat) -> bool {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    stat.modified < now.saturating_sub(ABANDONED).as_nanos() as i128
}

fn names(disk: &dyn Disk, folder: &Path) -> Result<Vec<String>> {
    match disk.names(folder) {
        Ok(names) => Ok(names),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(Error::io("list", folder)(error)),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Returns what a document is called as it is now. Nobody forges one, and a SHA-256 would take a quarter of the time of a
/// listing where the processor is of no help with it.
fn version(bytes: &[u8]) -> Version {
    Version(format!("{}:{:016x}", bytes.len(), XxHash3_64::oneshot(bytes)))
}

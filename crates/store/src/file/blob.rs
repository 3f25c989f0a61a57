//! Content by its hash: `blobs/sha256/<first two digits>/<the rest>`, written once.

use std::collections::HashSet;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::disk::{Disk, DiskFile, Open, read_range, write_all_at};
use super::document;
use super::quarantine::{make_folder, sync_up};
use crate::backend::Listed;
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::id::BlobId;

/// Returns a blob's file.
pub(crate) fn path(root: &Path, blob: &BlobId) -> PathBuf {
    let name = blob.to_string();
    root.join("blobs/sha256").join(&name[..2]).join(&name[2..])
}

/// How many blobs are synced one by one before it is better to sync the whole file system at once.
const FEW: usize = 4;

/// How many blobs are remembered to be durable.
const MOST_REMEMBERED: usize = 1 << 16;

/// What this process has made durable: folders of blobs by their own names, and blobs in them. They need not be
/// looked after again.
#[derive(Debug, Default)]
pub(crate) struct Shelves(Mutex<Settled>);

#[derive(Debug, Default)]
struct Settled {
    folders: HashSet<PathBuf>,
    blobs: HashSet<BlobId>,
}

impl Shelves {
    /// Makes the names in a folder of blobs durable, and the folder's own.
    fn sync(&self, disk: &dyn Disk, root: &Path, folder: &Path) -> Result<()> {
        if self.lock().folders.contains(folder) {
            return disk.sync_folder(folder).map_err(Error::io("sync", folder));
        }
        // Whoever made it may have died before its name was durable.
        sync_up(disk, root, folder)?;
        self.lock().folders.insert(folder.to_owned());
        Ok(())
    }

    fn knows(&self, blob: &BlobId) -> bool {
        self.lock().blobs.contains(blob)
    }

    fn remember(&self, blob: &BlobId) {
        let mut settled = self.lock();
        if settled.blobs.len() >= MOST_REMEMBERED {
            settled.blobs.clear();
        }
        settled.blobs.insert(*blob);
    }

    fn lock(&self) -> MutexGuard<'_, Settled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores content under its hash. One that is there already only gets younger.
pub(crate) fn put(
    disk: &dyn Disk,
    root: &Path,
    shelves: &Shelves,
    blob: &BlobId,
    content: &mut (dyn Read + Send),
) -> Result<()> {
    let path = path(root, blob);
    let folder = path.parent().unwrap_or(root);
    if is_there(disk, root, shelves, blob)? {
        // Whoever put it may have died before its name was durable.
        return if shelves.knows(blob) { Ok(()) } else { shelves.sync(disk, root, folder) };
    }
    make_folder(disk, folder)?;
    let aside = aside(folder);
    let written = copy(disk, &aside, content).and_then(|(file, found)| {
        if !blob.fits_hashed(found) {
            return Err(Error::WrongBlob(*blob));
        }
        file.sync().map_err(Error::io("sync", &aside))?;
        disk.rename(&aside, &path).map_err(Error::io("write", &path))?;
        shelves.sync(disk, root, folder)?;
        shelves.remember(blob);
        Ok(())
    });
    if written.is_err() {
        // Nothing refers to it; if this fails too, it is swept up later.
        let _ = disk.remove_file(&aside);
    }
    written
}

/// Stores several contents. Many of them cost two syncs of everything instead of two each.
pub(crate) fn put_all(
    disk: &dyn Disk,
    root: &Path,
    shelves: &Shelves,
    blobs: &[(BlobId, Bytes)],
) -> Result<()> {
    let one_by_one =
        || blobs.iter().try_for_each(|(blob, content)| put(disk, root, shelves, blob, &mut &content[..]));
    if blobs.len() <= FEW {
        return one_by_one();
    }
    let mut waiting = Vec::new();
    let stored = write_all(disk, root, shelves, blobs, &mut waiting);
    if !matches!(stored, Ok(true)) {
        for (aside, _) in &waiting {
            // Nothing refers to it; if this fails too, it is swept up later.
            let _ = disk.remove_file(aside);
        }
    }
    if stored? { Ok(()) } else { one_by_one() }
}

/// Returns false if the disk cannot sync everything at once; then nothing counts yet.
fn write_all(
    disk: &dyn Disk,
    root: &Path,
    shelves: &Shelves,
    blobs: &[(BlobId, Bytes)],
    waiting: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<bool> {
    let (mut seen, mut settled) = (HashSet::new(), true);
    for (blob, content) in blobs.iter().filter(|(blob, _)| seen.insert(*blob)) {
        let path = path(root, blob);
        if is_there(disk, root, shelves, blob)? {
            settled &= shelves.knows(blob);
            continue;
        }
        settled = false;
        let folder = path.parent().unwrap_or(root);
        make_folder(disk, folder)?;
        let aside = aside(folder);
        waiting.push((aside.clone(), path));
        let (_, found) = copy(disk, &aside, &mut &content[..])?;
        if !blob.fits_hashed(found) {
            return Err(Error::WrongBlob(*blob));
        }
    }
    // Contents before names: a name must never be durable without what it names.
    let sync = || disk.sync_all(root).map_err(Error::io("sync", root));
    if !waiting.is_empty() && !Defect::NameBeforeContent.is_on() && !sync()? {
        return Ok(false);
    }
    for (aside, path) in waiting.iter() {
        disk.rename(aside, path).map_err(Error::io("write", path))?;
    }
    waiting.clear();
    if settled {
        return Ok(true);
    }
    let synced = sync()?;
    if synced {
        blobs.iter().for_each(|(blob, _)| shelves.remember(blob));
    }
    Ok(synced)
}

/// Makes a blob young, if it is there and whole.
pub(crate) fn refresh(disk: &dyn Disk, root: &Path, shelves: &Shelves, blob: &BlobId) -> Result<bool> {
    let there = is_there(disk, root, shelves, blob)?;
    if there && !shelves.knows(blob) {
        shelves.sync(disk, root, path(root, blob).parent().unwrap_or(root))?;
        shelves.remember(blob);
    }
    Ok(there)
}

/// Returns whether a blob is there and whole, and makes it young: whoever puts it is about to refer to it. One that is
/// damaged counts as absent, so that it is written again.
fn is_there(disk: &dyn Disk, root: &Path, shelves: &Shelves, blob: &BlobId) -> Result<bool> {
    let path = path(root, blob);
    if disk.stat(&path).is_err() {
        return Ok(false);
    }
    match disk.touch(&path) {
        Ok(()) => {}
        // Cleared away just now.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io("touch", &path)(error)),
    }
    // Whoever clears away takes it aside first and then looks how young it is, so one of the two sees the other.
    if disk.stat(&path).is_err() {
        return Ok(false);
    }
    Ok(shelves.knows(blob) || Defect::KeepDamagedContent.is_on() || is_whole(disk, &path, blob)?)
}

/// Reads a blob and compares its hash.
fn is_whole(disk: &dyn Disk, path: &Path, blob: &BlobId) -> Result<bool> {
    let read = || {
        let file = disk.open(path, Open::Read)?;
        let (mut hasher, mut offset, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
        loop {
            match file.read_at(&mut buffer, offset)? {
                0 => return Ok::<_, std::io::Error>(blob.fits_hashed(hasher)),
                count => {
                    hasher.update(&buffer[..count]);
                    offset += count as u64;
                }
            }
        }
    };
    match read() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        whole => whole.map_err(Error::io("read", path)),
    }
}

/// Removes a blob, unless it was put again since then. Run under the store's lock: two at once would take each other's
/// for stale.
pub(crate) fn remove_stale(disk: &dyn Disk, root: &Path, blob: &BlobId, since: Timestamp) -> Result<bool> {
    let path = path(root, blob);
    let modified = |path: &Path| disk.stat(path).map(|stat| super::timestamp(stat.modified));
    let is_stale = |modified| modified <= since || Defect::CollectWhatIsPutAgain.is_on();
    let Ok(true) = modified(&path).map(is_stale) else { return Ok(false) };
    // Out of the way first: a put that comes now writes it again, and one that came before has made it young.
    let aside = going(&path);
    match disk.rename(&path, &aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        moved => moved.map_err(Error::io("remove", &path))?,
    }
    let young = match modified(&aside) {
        Ok(modified) => !is_stale(modified),
        Err(error) => return Err(Error::io("look at", &aside)(error)),
    };
    if young {
        return bring_back(disk, &aside, &path).map(|()| false);
    }
    document::remove(disk, &aside)
}

/// Returns where a blob is while it is decided whether it goes.
fn going(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.going"))
}

/// Gives a blob its name again, unless it was put meanwhile: both have the same content.
fn bring_back(disk: &dyn Disk, aside: &Path, path: &Path) -> Result<()> {
    if disk.stat(path).is_ok() {
        return document::remove(disk, aside).map(drop);
    }
    disk.rename(aside, path).map_err(Error::io("bring back", path))?;
    let folder = path.parent().unwrap_or(path);
    disk.sync_folder(folder).map_err(Error::io("sync", folder))
}

fn aside(folder: &Path) -> PathBuf {
    folder.join(format!(".{}.tmp", uuid::Uuid::new_v4().simple()))
}

fn copy(
    disk: &dyn Disk,
    path: &Path,
    content: &mut (dyn Read + Send),
) -> Result<(Box<dyn DiskFile>, Sha256)> {
    let file = disk.open(path, Open::New).map_err(Error::io("write", path))?;
    let (mut hasher, mut offset, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
    loop {
        let count = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read the content of", path)(error)),
        };
        hasher.update(&buffer[..count]);
        write_all_at(&*file, &buffer[..count], offset).map_err(Error::io("write", path))?;
        offset += count as u64;
    }
    Ok((file, hasher))
}

/// Returns part of a blob; a whole one is checked against its hash.
pub(crate) fn get(disk: &dyn Disk, root: &Path, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
    let path = path(root, blob);
    let is_absent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    // It may be about to go, or have come back meanwhile.
    let mut opened = disk.open(&path, Open::Read);
    for place in [going(&path), path.clone()] {
        if opened.as_ref().is_err_and(is_absent) {
            opened = disk.open(&place, Open::Read);
        }
    }
    let file = match opened {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(Error::io("open", &path)(error)),
    };
    let length = file.stat().map_err(Error::io("look at", &path))?.length;
    let bytes = read_range(&*file, range.start, range.end.min(length)).map_err(Error::io("read", &path))?;
    if range.start == 0 && range.end >= length && !blob.fits(&bytes) {
        return Err(Error::Damaged {
            what: format!("blob {blob}"),
            reason: "its content has another hash".into(),
        });
    }
    Ok(Some(bytes.into()))
}

/// Removes what puts that were interrupted left behind.
pub(crate) fn sweep(disk: &dyn Disk, root: &Path) -> Result<u64> {
    shelves(disk, root).iter().map(|folder| document::sweep_folder(disk, folder)).sum()
}

/// Returns whether a removal is under way, or was interrupted.
pub(crate) fn is_undecided(disk: &dyn Disk, root: &Path) -> bool {
    shelves(disk, root).iter().any(|folder| undecided(disk, folder).next().is_some())
}

/// Brings back what an interrupted removal did not decide. Run under the store's lock.
pub(crate) fn bring_all_back(disk: &dyn Disk, root: &Path) -> Result<()> {
    for folder in shelves(disk, root) {
        for (aside, path) in undecided(disk, &folder) {
            bring_back(disk, &aside, &path)?;
        }
    }
    Ok(())
}

fn shelves(disk: &dyn Disk, root: &Path) -> Vec<PathBuf> {
    let base = root.join("blobs/sha256");
    disk.names(&base).unwrap_or_default().into_iter().map(|first| base.join(first)).collect()
}

/// Returns what is on its way out of a folder, and where it was.
fn undecided(disk: &dyn Disk, folder: &Path) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let names = disk.names(folder).unwrap_or_default().into_iter();
    names.filter_map(|name| {
        let rest = name.strip_prefix('.')?.strip_suffix(".going")?;
        Some((folder.join(&name), folder.join(rest)))
    })
}

/// Lists blobs by hash.
pub(crate) fn list(disk: &dyn Disk, root: &Path, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
    let base = root.join("blobs/sha256");
    let names = |folder: &Path| match disk.names(folder) {
        Ok(mut names) => {
            names.sort_unstable();
            Ok(names)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("list", folder)(error)),
    };
    let mut listed = Vec::new();
    for first in names(&base)? {
        if after.is_some_and(|after| first.as_str() < after.get(..2).unwrap_or_default()) {
            continue;
        }
        let folder = base.join(&first);
        for rest in names(&folder)? {
            let name = format!("{first}{rest}");
            if name.parse::<BlobId>().is_err() || after.is_some_and(|after| name.as_str() <= after) {
                continue;
            }
            let path = folder.join(rest);
            let stat = disk.stat(&path).map_err(Error::io("look at", &path))?;
            if listed.len() == limit {
                return Ok(listed);
            }
            listed.push(Listed { name, change: String::new(), modified: super::timestamp(stat.modified) });
        }
    }
    Ok(listed)
}

//! Content by its hash: `blobs/sha256/<first two digits>/<the rest>`, written once.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::disk::{Disk, Open, read_range, write_all_at};
use super::document;
use super::quarantine::{make_folder, sync_up};
use crate::backend::Listed;
use crate::error::{Error, Result};
use crate::id::BlobId;

/// Returns a blob's file.
pub(crate) fn path(root: &Path, blob: &BlobId) -> PathBuf {
    let name = blob.to_string();
    root.join("blobs/sha256").join(&name[..2]).join(&name[2..])
}

/// Stores content under its hash. One that is there already only gets younger.
pub(crate) fn put(
    disk: &dyn Disk,
    root: &Path,
    blob: &BlobId,
    content: &mut (dyn Read + Send),
) -> Result<()> {
    let path = path(root, blob);
    if disk.stat(&path).is_ok() {
        disk.touch(&path).map_err(Error::io("touch", &path))?;
        // Whoever put it may have died before its name was durable.
        return sync_up(disk, root, path.parent().unwrap_or(root));
    }
    let folder = path.parent().unwrap_or(root);
    make_folder(disk, folder)?;
    let aside = folder.join(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    let written = copy(disk, &aside, content).and_then(|found| {
        if found != *blob {
            return Err(Error::WrongBlob(*blob));
        }
        disk.rename(&aside, &path).map_err(Error::io("write", &path))?;
        sync_up(disk, root, folder)
    });
    if written.is_err() {
        // Nothing refers to it; if this fails too, it is swept up later.
        let _ = disk.remove_file(&aside);
    }
    written
}

fn copy(disk: &dyn Disk, path: &Path, content: &mut (dyn Read + Send)) -> Result<BlobId> {
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
    file.sync().map_err(Error::io("sync", path))?;
    Ok(BlobId::of_hasher(hasher))
}

/// Returns part of a blob; a whole one is checked against its hash.
pub(crate) fn get(disk: &dyn Disk, root: &Path, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
    let path = path(root, blob);
    let file = match disk.open(&path, Open::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", &path)(error)),
    };
    let length = file.stat().map_err(Error::io("look at", &path))?.length;
    let bytes = read_range(&*file, range.start, range.end.min(length)).map_err(Error::io("read", &path))?;
    if range.start == 0 && range.end >= length && BlobId::of(&bytes) != *blob {
        return Err(Error::Damaged {
            what: format!("blob {blob}"),
            reason: "its content has another hash".into(),
        });
    }
    Ok(Some(bytes.into()))
}

/// Removes what puts that were interrupted left behind.
pub(crate) fn sweep(disk: &dyn Disk, root: &Path) -> Result<u64> {
    let base = root.join("blobs/sha256");
    let folders = disk.names(&base).unwrap_or_default();
    folders.iter().map(|first| document::sweep_folder(disk, &base.join(first))).sum()
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

//! What was learnt of sessions, kept beside nothing of Claude Code's: a cache that may be deleted at any time.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::skim::Skim;
use crate::walk::State;

/// Changes with everything that is kept, and with what it means.
const FORMAT: &[u8] = b"rethread transcripts 4\n";

/// Everything that was learnt, by the sessions' files.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// Boxed, because they are moved a lot.
    pub(crate) records: HashMap<String, Box<Record>>,
}

/// What was learnt of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The file, beneath the folder of projects.
    pub(crate) file: String,
    pub(crate) size: u64,
    pub(crate) modified: i64,
    pub(crate) inode: u64,
    pub(crate) message_count: Option<u64>,
    pub(crate) skim: Skim,
}

impl Record {
    pub(crate) fn new(file: String, state: State, skim: Skim) -> Self {
        Self {
            file,
            size: state.size,
            modified: state.modified,
            inode: state.inode,
            message_count: None,
            skim,
        }
    }

    /// Returns whether the file is as it was.
    pub(crate) fn fits(&self, state: State) -> bool {
        State { size: self.size, modified: self.modified, inode: self.inode } == state
    }

    /// Returns whether the file may have grown since, so that its beginning is the same.
    pub(crate) fn may_begin(&self, state: State) -> bool {
        self.inode == state.inode && self.size <= state.size
    }
}

impl Catalog {
    /// Reads what was kept. A catalog that is missing, damaged or of another version knows nothing.
    pub(crate) fn load(path: &Path) -> Self {
        let Ok(bytes) = fs::read(path) else { return Self::default() };
        let kept = bytes.strip_prefix(FORMAT).and_then(checked);
        let records: Vec<Box<Record>> =
            kept.and_then(|kept| postcard::from_bytes(kept).ok()).unwrap_or_default();
        Self { records: records.into_iter().map(|record| (record.file.clone(), record)).collect() }
    }

    /// Replaces what was kept, whole or not at all.
    pub(crate) fn save<'a>(path: &Path, records: impl Iterator<Item = &'a Record>) -> Result<()> {
        let records: Vec<&Record> = records.collect();
        let not_kept = |error: postcard::Error| Error::io("write", path)(std::io::Error::other(error));
        let kept = postcard::to_allocvec(&records).map_err(not_kept)?;
        let sum = crc32c::crc32c(&kept).to_le_bytes();
        write_whole(path, &[FORMAT, &sum, &kept].concat()).map_err(Error::io("write", path))
    }
}

/// Returns what follows its own checksum.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, kept) = bytes.split_first_chunk()?;
    (u32::from_le_bytes(*sum) == crc32c::crc32c(kept)).then_some(kept)
}

/// Writes a file such that nobody ever sees half of it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut aside = tempfile::NamedTempFile::new_in(folder)?;
    aside.write_all(bytes)?;
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

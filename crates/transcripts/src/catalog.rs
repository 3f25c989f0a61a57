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
const FORMAT: &str = "{\"rethread transcripts\":2}";

/// About how many bytes a record has at least.
const SHORTEST: usize = 256;

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
    #[serde(rename = "f")]
    pub(crate) file: String,
    #[serde(rename = "s")]
    pub(crate) size: u64,
    #[serde(rename = "m")]
    pub(crate) modified: i64,
    #[serde(rename = "i")]
    pub(crate) inode: u64,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(crate) message_count: Option<u64>,
    #[serde(rename = "k")]
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
        let Ok(text) = fs::read_to_string(path) else { return Self::default() };
        let Some((FORMAT, lines)) = text.split_once('\n') else { return Self::default() };
        let mut records = HashMap::with_capacity(lines.len() / SHORTEST);
        for record in lines.lines().filter_map(|line| serde_json::from_str::<Box<Record>>(line).ok()) {
            records.insert(record.file.clone(), record);
        }
        Self { records }
    }

    /// Replaces what was kept, whole or not at all.
    pub(crate) fn save<'a>(path: &Path, records: impl Iterator<Item = &'a Record>) -> Result<()> {
        let mut bytes = format!("{FORMAT}\n").into_bytes();
        for record in records {
            if serde_json::to_writer(&mut bytes, record).is_ok() {
                bytes.push(b'\n');
            }
        }
        write_whole(path, &bytes).map_err(Error::io("write", path))
    }
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

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
const FORMAT: &[u8] = b"rethread transcripts 5\n";

/// Everything that was learnt, by the sessions' files.
#[derive(Debug, Default)]
pub(crate) struct Catalog<'a> {
    pub(crate) kept: HashMap<&'a str, Kept<'a>>,
}

/// When what was learnt of a session is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decode {
    /// At once, because most will be asked for.
    Now,
    /// When it is asked for.
    Later,
}

/// What was learnt of one session, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kept<'a> {
    /// The file, beneath the folder of projects.
    file: &'a str,
    pub(crate) size: u64,
    modified: i64,
    inode: u64,
    pub(crate) message_count: Option<u64>,
    skim: &'a [u8],
    /// The same, decoded. Boxed, because it is moved a lot.
    #[serde(skip)]
    decoded: Option<Box<Skim>>,
}

/// What was learnt of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) state: State,
    pub(crate) message_count: Option<u64>,
    pub(crate) skim: Skim,
}

impl Kept<'_> {
    /// Returns whether the file is as it was.
    pub(crate) fn fits(&self, state: State) -> bool {
        State { size: self.size, modified: self.modified, inode: self.inode } == state
    }

    /// Returns what was learnt of a file that is still as it was, once.
    pub(crate) fn take(&mut self, state: State) -> Option<Box<Record>> {
        let skim = self.fits(state).then(|| self.decoded.take().or_else(|| self.decode())).flatten()?;
        Some(Box::new(Record { state, message_count: self.message_count, skim: *skim }))
    }

    /// Returns what was learnt of a file that may have grown since, so that its beginning is the same.
    pub(crate) fn beginning(&self, state: State) -> Option<Box<Skim>> {
        let may_begin = self.inode == state.inode && self.size <= state.size;
        may_begin.then(|| self.decode()).flatten()
    }

    fn decode(&self) -> Option<Box<Skim>> {
        postcard::from_bytes(self.skim).ok()
    }
}

impl<'a> Catalog<'a> {
    /// Reads the file that it is kept in; empty if there is none.
    pub(crate) fn bytes(path: &Path) -> Vec<u8> {
        fs::read(path).unwrap_or_default()
    }

    /// Reads what was kept. A catalog that is missing, damaged or of another version knows nothing.
    pub(crate) fn of(bytes: &'a [u8], decode: Decode) -> Self {
        let kept = bytes.strip_prefix(FORMAT).and_then(checked);
        let mut kept: Vec<Kept<'a>> =
            kept.and_then(|kept| postcard::from_bytes(kept).ok()).unwrap_or_default();
        if decode == Decode::Now {
            kept.iter_mut().for_each(|kept| kept.decoded = kept.decode());
        }
        Self { kept: kept.into_iter().map(|kept| (kept.file, kept)).collect() }
    }

    /// Replaces what was kept, whole or not at all.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let kept: Vec<&Kept<'_>> = self.kept.values().collect();
        let kept = postcard::to_allocvec(&kept).map_err(not_kept(path))?;
        let sum = crc32c::crc32c(&kept).to_le_bytes();
        write_whole(path, &[FORMAT, &sum, &kept].concat()).map_err(Error::io("write", path))
    }

    /// Keeps what was learnt of files, and nothing else.
    pub(crate) fn keep<'r, N: AsRef<str>>(
        path: &Path,
        records: impl Iterator<Item = (N, &'r Record)>,
    ) -> Result<()> {
        let skims = records.map(|(file, record)| Ok((file, record, postcard::to_allocvec(&record.skim)?)));
        let skims: Vec<(N, &Record, Vec<u8>)> =
            skims.collect::<postcard::Result<_>>().map_err(not_kept(path))?;
        let kept = skims.iter().map(|(file, record, skim)| {
            let (file, State { size, modified, inode }) = (file.as_ref(), record.state);
            let message_count = record.message_count;
            (file, Kept { file, size, modified, inode, message_count, skim, decoded: None })
        });
        Catalog { kept: kept.collect() }.save(path)
    }
}

fn not_kept(path: &Path) -> impl Fn(postcard::Error) -> Error {
    move |error| Error::io("write", path)(std::io::Error::other(error))
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

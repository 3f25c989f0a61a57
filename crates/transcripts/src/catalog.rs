//! What was learnt of sessions, kept beside nothing of Claude Code's: a cache that may be deleted at any time.

use std::borrow::Cow;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::opening::Opening;
use crate::skim::{SHORT, Skim};
use crate::walk::State;

/// Changes with everything that is kept, and with what it means.
const FORMAT: &[u8] = b"rethread transcripts 7\n";

/// Everything that was learnt, by the sessions' files.
#[derive(Debug, Default)]
pub(crate) struct Catalog<'a> {
    pub(crate) kept: HashMap<&'a str, Kept<'a>>,
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
}

/// What was learnt of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record<T = String> {
    pub(crate) state: State,
    pub(crate) message_count: Option<u64>,
    pub(crate) skim: Skim<T>,
}

/// What was learnt of one session, now or before.
#[derive(Debug)]
pub(crate) enum Learnt<'a> {
    Kept(&'a Kept<'a>),
    /// Boxed, because nearly all are of the other kind.
    Fresh(Box<Record>),
}

/// What is kept of it beside its name: its file's state, its count of messages, its skim.
type Encoded<'a> = (State, Option<u64>, Cow<'a, [u8]>);

impl<'a> Kept<'a> {
    fn state(&self) -> State {
        State { size: self.size, modified: self.modified, inode: self.inode }
    }

    /// Returns whether the file is as it was.
    pub(crate) fn fits(&self, state: State) -> bool {
        self.state() == state
    }

    /// Returns how a file begins that may have grown since.
    pub(crate) fn beginning(&self, state: State) -> Option<Opening> {
        // What a short one begins with is not over.
        let may_begin = self.inode == state.inode && (SHORT + 1..=state.size).contains(&self.size);
        may_begin.then(|| self.decoded().opening.with(|text| (*text).to_owned()))
    }

    /// Returns what was learnt; its texts are those of the catalog itself.
    fn decoded(&self) -> Skim<&'a str> {
        // The catalog's checksum is that of what was encoded.
        postcard::from_bytes(self.skim).unwrap_or_default()
    }
}

impl Learnt<'_> {
    /// Returns it, with texts that are only lent.
    pub(crate) fn lent(&self) -> Record<&str> {
        match self {
            Learnt::Kept(kept) => {
                Record { state: kept.state(), message_count: kept.message_count, skim: kept.decoded() }
            }
            Learnt::Fresh(record) => {
                Record { state: record.state, message_count: record.message_count, skim: record.skim.lent() }
            }
        }
    }

    fn encoded(&self) -> postcard::Result<Encoded<'_>> {
        Ok(match self {
            Learnt::Kept(kept) => (kept.state(), kept.message_count, Cow::Borrowed(kept.skim)),
            Learnt::Fresh(record) => {
                let skim = postcard::to_allocvec(&record.skim)?;
                (record.state, record.message_count, Cow::Owned(skim))
            }
        })
    }
}

impl<'a> Catalog<'a> {
    /// Reads the file that it is kept in; empty if there is none.
    pub(crate) fn bytes(path: &Path) -> Vec<u8> {
        fs::read(path).unwrap_or_default()
    }

    /// Reads what was kept. A catalog that is missing, damaged or of another version knows nothing.
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        let kept = bytes.strip_prefix(FORMAT).and_then(checked);
        let kept: Vec<Kept<'a>> = kept.and_then(|kept| postcard::from_bytes(kept).ok()).unwrap_or_default();
        Self { kept: kept.into_iter().map(|kept| (kept.file, kept)).collect() }
    }

    /// Replaces what was kept, whole or not at all.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let kept: Vec<&Kept<'_>> = self.kept.values().collect();
        let kept = postcard::to_allocvec(&kept).map_err(not_kept(path))?;
        let sum = crc32c::crc32c(&kept).to_le_bytes();
        write_whole(path, &[FORMAT, &sum, &kept].concat()).map_err(Error::io("write", path))
    }

    /// Keeps what was learnt of files, unless they were written to after some time, and nothing else.
    pub(crate) fn keep<'r, N: AsRef<str>>(
        path: &Path,
        until: i64,
        learnt: impl Iterator<Item = (N, &'r Learnt<'r>)>,
    ) -> Result<()> {
        let encoded = learnt.map(|(file, learnt)| Ok((file, learnt.encoded()?)));
        let encoded: Vec<(N, Encoded<'_>)> =
            encoded.collect::<postcard::Result<_>>().map_err(not_kept(path))?;
        let settled = encoded.iter().filter(|(_, (state, ..))| state.modified < until);
        let kept = settled.map(|(file, (state, message_count, skim))| {
            let (file, State { size, modified, inode }) = (file.as_ref(), *state);
            (file, Kept { file, size, modified, inode, message_count: *message_count, skim })
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

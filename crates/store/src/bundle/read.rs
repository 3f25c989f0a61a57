//! The reading end of a bundle: one line after the other, and nothing after a line that should not be there.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::VERSION;
use super::contents::Piece;
use crate::backend::{LogName, Position};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::{BlobId, EntryId, SessionId};
use crate::import::arrival::Placement;
use crate::import::lines::{Found, Lines};
use crate::stamp::Kind;

const BUFFER: usize = 256 << 10;
/// How much longer than its body a line may be: the other members, or a header with its metadata.
const AROUND: usize = 1 << 20;

/// Reads a bundle.
#[derive(Debug)]
pub(super) struct Reader {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    hasher: Sha256,
    /// How many lines were read, for messages that name one.
    number: u64,
    pub(super) header: Header,
}

/// The first line.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) session_id: SessionId,
    pub(super) updated_at: Option<Timestamp>,
}

/// Any other line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A record of the session's own; `None`: it is lost.
    Record(LogName, Position, Option<Placement>),
    /// An entry that it inherits; `None`: it is lost.
    Inherited(u64, Option<Entry>),
    /// Part of a content.
    Piece(Piece),
    /// Something that this version does not know.
    Unknown,
}

/// The members of a line. Raw, so that a line of a kind that comes later may use the same names differently.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    log: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    position: Option<&'a RawValue>,
    #[serde(borrow)]
    parent: Option<&'a RawValue>,
    #[serde(borrow)]
    depth: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    end: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct End {
    records: u64,
    sha256: BlobId,
}

impl Reader {
    /// Opens a bundle and reads its first line.
    pub(super) fn open(path: &Path, max_record: usize) -> Result<Self> {
        if !std::fs::metadata(path).map_err(Error::io("open", path))?.is_file() {
            return Err(bad(path, "it is not a plain file, and it has to be read twice"));
        }
        let file = File::open(path).map_err(Error::io("open", path))?;
        let lines = Lines::new(BufReader::with_capacity(BUFFER, file), max_record.saturating_add(AROUND));
        let header = Header { session_id: SessionId::generate(), updated_at: None };
        let mut reader = Self { path: path.to_owned(), lines, hasher: Sha256::new(), number: 0, header };
        reader.header = reader.read_header()?;
        Ok(reader)
    }

    fn read_header(&mut self) -> Result<Header> {
        #[derive(Deserialize)]
        struct First {
            rethread: String,
            version: u32,
        }
        #[derive(Deserialize)]
        struct Rest {
            session_id: SessionId,
            #[serde(default)]
            metadata: serde_json::Map<String, serde_json::Value>,
        }
        let line = self.line()?.ok_or_else(|| bad(&self.path, "it is empty"))?;
        let first: First = serde_json::from_slice(&line)
            .ok()
            .filter(|first: &First| first.rethread == "session")
            .ok_or_else(|| bad(&self.path, "it is not a session that was exported by this program"))?;
        if first.version > VERSION {
            let found = first.version;
            let reason = format!("it has format {found}, this program knows up to {VERSION}");
            return Err(bad(&self.path, reason));
        }
        let rest: Rest = serde_json::from_slice(&line).map_err(|error| self.bad_line(error))?;
        let updated_at = rest.metadata.get("updated_at").and_then(|at| at.as_str()?.parse().ok());
        Ok(Header { session_id: rest.session_id, updated_at })
    }

    /// Returns the next line; `None` only after a last line whose checksum is right, with nothing behind it.
    pub(super) fn next(&mut self) -> Result<Option<Item>> {
        let before = self.hasher.clone();
        let Some(line) = self.line()? else {
            return Err(bad(&self.path, "it is cut off: its last line is missing"));
        };
        let members: Members = serde_json::from_slice(&line).map_err(|error| self.bad_line(error))?;
        if members.end.is_some() && members.log.is_none() {
            let end: End = serde_json::from_slice(&line).map_err(|error| self.bad_line(error))?;
            return self.finish(&end, before).map(|()| None);
        }
        let is = |raw: Option<&RawValue>, text: &str| raw.is_some_and(|raw| raw.get() == text);
        if is(members.log, "\"blobs\"") && is(members.kind, "\"piece\"") {
            let piece = serde_json::from_slice(&line).map_err(|error| self.bad_line(error))?;
            return Ok(Some(Item::Piece(piece)));
        }
        self.item(&members).map(Some)
    }

    fn finish(&mut self, end: &End, hasher: Sha256) -> Result<()> {
        // The first line and this one are not counted.
        if end.records.checked_add(2) != Some(self.number) || end.sha256 != BlobId::of_hasher(hasher) {
            return Err(bad(&self.path, "it was altered: its checksum is not that of its content"));
        }
        match self.line()? {
            None => Ok(()),
            Some(_) => Err(bad(&self.path, "it goes on after its last line")),
        }
    }

    fn item(&self, members: &Members) -> Result<Item> {
        let name = members.log.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let Some(log) = LogName::ALL.into_iter().find(|log| Some(log.as_str()) == name.as_deref()) else {
            return Ok(Item::Unknown);
        };
        let kind = match self.get::<String>("kind", members.kind)?.as_str() {
            "entry" => Kind::Entry,
            "note" => Kind::Note,
            "copy" => Kind::Copy,
            "lost" => return Ok(Item::Record(log, self.get("position", members.position)?, None)),
            "inherited" => {
                let entry = members.body.map(|_| self.entry(members)).transpose()?;
                return Ok(Item::Inherited(self.get("depth", members.depth)?, entry));
            }
            _ => return Ok(Item::Unknown),
        };
        let position = self.get("position", members.position)?;
        let parent = members.parent.map(|raw| self.get("parent", Some(raw))).transpose()?;
        let depth = self.get("depth", members.depth)?;
        let entry = self.entry(members)?;
        Ok(Item::Record(log, position, Some(Placement { kind, parent, depth, entry })))
    }

    fn entry(&self, members: &Members) -> Result<Entry> {
        let id: EntryId = self.get("id", members.id)?;
        let body = members.body.ok_or_else(|| self.bad_line("it has no body"))?;
        let entry = Entry::parse(Bytes::copy_from_slice(body.get().as_bytes()));
        Ok(entry.map_err(|error| self.bad_line(error))?.with_id(id))
    }

    fn get<T: DeserializeOwned>(&self, name: &str, raw: Option<&RawValue>) -> Result<T> {
        let raw = raw.ok_or_else(|| self.bad_line(format!("it has no {name}")))?;
        serde_json::from_str(raw.get()).map_err(|error| self.bad_line(format!("its {name}: {error}")))
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>> {
        let line = match self.lines.next().map_err(Error::io("read", &self.path))? {
            None => return Ok(None),
            Some(Found::Whole(line)) => line.to_vec(),
            Some(Found::Unended(_)) => return Err(bad(&self.path, "it is cut off in the middle of a line")),
            Some(Found::TooLong(_)) => {
                let reason = format!("line {} is longer than this store takes", self.number + 1);
                return Err(bad(&self.path, reason));
            }
        };
        self.hasher.update(&line);
        self.hasher.update(b"\n");
        self.number += 1;
        Ok(Some(line))
    }

    /// Returns the error that this line is not what it should be.
    pub(super) fn bad_line(&self, reason: impl std::fmt::Display) -> Error {
        bad(&self.path, format!("line {}: {reason}", self.number))
    }

    /// Returns the error that the bundle is not what it should be.
    pub(super) fn bad(&self, reason: &str) -> Error {
        bad(&self.path, reason)
    }
}

fn bad(path: &Path, reason: impl Into<String>) -> Error {
    Error::BadImport { path: path.to_owned(), reason: reason.into() }
}

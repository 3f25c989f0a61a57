//! The writing end of a bundle.

use std::io::Write;

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Exported;
use crate::backend::{LogName, Position};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::{BlobId, SessionId};
use crate::metadata::Metadata;
use crate::stamp::{Kind, Line, Stamp};

/// How much is gathered before it is written.
const GATHERED: usize = 64 << 10;

/// Writes lines and adds up their checksum.
pub(super) struct Sink<'a> {
    out: &'a mut (dyn Write + Send),
    gathered: Vec<u8>,
    hasher: Sha256,
    bytes: u64,
    records: u64,
    inherited: u64,
    lost: u64,
    pieces: u64,
    files: u64,
    missing: u64,
    /// Where the log of checkpoints goes on.
    checkpoints: Position,
}

#[derive(Serialize)]
struct Header<'a> {
    rethread: &'static str,
    version: u32,
    session_id: &'a SessionId,
    exported_at: Timestamp,
    metadata: &'a Metadata,
}

impl<'a> Sink<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        let (gathered, hasher) = (Vec::new(), Sha256::new());
        let (bytes, records, inherited, lost) = (0, 0, 0, 0);
        Self {
            out,
            gathered,
            hasher,
            bytes,
            records,
            inherited,
            lost,
            pieces: 0,
            files: 0,
            missing: 0,
            checkpoints: 0,
        }
    }

    pub(super) fn header(&mut self, version: u32, metadata: &Metadata) -> Result<()> {
        let session_id = &metadata.session_id;
        let header =
            Header { rethread: "session", version, session_id, exported_at: Timestamp::now(), metadata };
        serde_json::to_writer(&mut self.gathered, &header)
            .map_err(|error| Error::BadEntry(error.to_string()))?;
        self.gathered.push(b'\n');
        Ok(())
    }

    /// Writes a record of the session's own.
    pub(super) fn record(&mut self, log: LogName, line: &Line, body: &[u8]) -> Result<()> {
        let kind = match line.stamp().kind {
            Kind::Entry => "entry",
            Kind::Note => "note",
            Kind::Copy => "copy",
        };
        self.records += 1;
        if log == LogName::Checkpoints {
            self.checkpoints = line.stamp().position + 1;
        }
        self.line(log, kind, Some(line.stamp().position), line, body)
    }

    /// Returns the position after the last checkpoint that was written.
    pub(super) fn next_checkpoint(&self) -> Position {
        self.checkpoints
    }

    /// Writes a copy of an ancestor's checkpoint.
    pub(super) fn inherited_checkpoint(&mut self, position: Position, entry: &Entry) -> Result<()> {
        let (parent, depth, kind, id) = (None, 1, Kind::Entry, entry.id().clone());
        let line = Line::new(entry, Stamp { position, parent, depth, kind, id, left: 0, unsettled: 0 });
        self.record(LogName::Checkpoints, &line, entry.as_bytes())
    }

    /// Writes an entry that the session inherits.
    pub(super) fn inherited(&mut self, line: &Line) -> Result<()> {
        self.inherited += 1;
        self.line(LogName::Messages, "inherited", None, line, &line.body())
    }

    /// Says that a record is lost.
    pub(super) fn lost(&mut self, log: LogName, position: Position) -> Result<()> {
        (self.records, self.lost) = (self.records + 1, self.lost + 1);
        if log == LogName::Checkpoints {
            self.checkpoints = position + 1;
        }
        self.lost_line(log, "lost", &position.to_string(), "null")
    }

    /// Says that an inherited entry is lost.
    pub(super) fn lost_inherited(&mut self, depth: u64) -> Result<()> {
        (self.inherited, self.lost) = (self.inherited + 1, self.lost + 1);
        self.lost_line(LogName::Messages, "inherited", "null", &depth.to_string())
    }

    /// Writes part of a content.
    pub(super) fn piece(&mut self, blob: &BlobId, at: u64, last: bool, body: &str) -> Result<()> {
        self.pieces += 1;
        self.files += u64::from(last);
        self.text(format_args!(
            "{{\"log\":\"blobs\",\"kind\":\"piece\",\"hash\":\"{blob}\",\"at\":{at},\"last\":{last},\"body\":\"{body}\"}}\n"
        ));
        self.drain_if_full()
    }

    /// Counts a content that cannot be had.
    pub(super) fn missing(&mut self) {
        self.missing += 1;
    }

    /// Writes the last line, which makes the bundle whole.
    pub(super) fn finish(mut self) -> Result<Exported> {
        self.drain()?;
        let sha256 = BlobId::of_hasher(std::mem::take(&mut self.hasher));
        let lines = self.records + self.inherited + self.pieces;
        self.text(format_args!("{{\"end\":true,\"records\":{lines},\"sha256\":\"{sha256}\"}}\n"));
        self.drain()?;
        self.out.flush().map_err(Error::io("write", "the bundle"))?;
        let Self { records, inherited, lost, bytes, files, missing, .. } = self;
        Ok(Exported { records, inherited, lost, files, missing, bytes, sha256 })
    }

    fn line(
        &mut self,
        log: LogName,
        kind: &str,
        position: Option<Position>,
        line: &Line,
        body: &[u8],
    ) -> Result<()> {
        let stamp = line.stamp();
        let number = |number: Option<u64>| number.map_or("null".into(), |number| number.to_string());
        // An inherited entry stands in another log; there its parent means nothing here.
        let parent = number(position.and(stamp.parent));
        let (log, position, depth, id) = (log.as_str(), number(position), stamp.depth, &stamp.id);
        self.text(format_args!(
            "{{\"log\":\"{log}\",\"kind\":\"{kind}\",\"position\":{position},\"parent\":{parent},\
             \"depth\":{depth},\"id\":\"{id}\",\"body\":"
        ));
        self.gathered.extend_from_slice(body);
        self.gathered.extend_from_slice(b"}\n");
        self.drain_if_full()
    }

    fn lost_line(&mut self, log: LogName, kind: &str, position: &str, depth: &str) -> Result<()> {
        let log = log.as_str();
        self.text(format_args!(
            "{{\"log\":\"{log}\",\"kind\":\"{kind}\",\"position\":{position},\"parent\":null,\
             \"depth\":{depth},\"id\":null,\"body\":null}}\n"
        ));
        self.drain_if_full()
    }

    fn text(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a Vec cannot fail.
        let _ = self.gathered.write_fmt(text);
    }

    fn drain_if_full(&mut self) -> Result<()> {
        if self.gathered.len() >= GATHERED { self.drain() } else { Ok(()) }
    }

    fn drain(&mut self) -> Result<()> {
        self.hasher.update(&self.gathered);
        self.out.write_all(&self.gathered).map_err(Error::io("write", "the bundle"))?;
        self.bytes += self.gathered.len() as u64;
        self.gathered.clear();
        Ok(())
    }
}

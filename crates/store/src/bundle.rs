//! A session as one file that stands alone.
//!
//! # Format
//!
//! JSON lines, UTF-8, each ended by one newline:
//!
//! ```text
//! {"rethread":"session","version":1,"session_id":"…","exported_at":"…","metadata":{…}}
//! {"log":"messages","kind":"inherited","position":null,"parent":null,"depth":1,"id":"…","body":{…}}
//! {"log":"messages","kind":"note","position":0,"parent":null,"depth":1,"id":"…","body":{…}}
//! {"log":"messages","kind":"entry","position":1,"parent":null,"depth":2,"id":"…","body":{…}}
//! {"log":"transcript","kind":"entry","position":0,"parent":null,"depth":1,"id":"…","body":{…}}
//! {"log":"blobs","kind":"piece","hash":"…","at":0,"last":true,"body":"…"}
//! {"end":true,"records":5,"sha256":"…"}
//! ```
//!
//! * `body` is what the caller gave, byte for byte. The other members are those of the record's stamp.
//! * First what an attached fork inherits, oldest first, one line for each depth; then every record of the logs
//!   `messages`, `transcript` and `checkpoints`, one line for each position. `kind` is `inherited`, `entry`, `note`
//!   or `copy`. A record that could not be read is `lost`; an inherited one has `null` for `id` and `body`.
//! * After the checkpoints of its own an attached fork's bundle has copies of those that it inherits, each with the
//!   session that it is from in `inherited`, as if they followed in the log.
//! * Last the contents that the checkpoints refer to, unless they were left out: base64 of at most 384 KiB in a line,
//!   the pieces of one content one after the other, `last` in the last of them.
//! * `records` counts the lines between the first and the last one; `sha256` is that of every byte before the last.
//! * `metadata` is there to be read by people and tools; an import takes it from the notes again.
//! * A line that has no `log`, or one with a name or kind that is not listed here, is skipped and counted. That is
//!   the room for what comes later.
//!
//! # Contract
//!
//! * An import changes nothing unless the whole file is there, unaltered and well-formed, and it imports all of it
//!   or nothing, also when it is killed ([`import::arrival`](crate::import)).
//! * Positions, parents, depths, ids and bodies are the same afterwards. What was inherited is appended as copies,
//!   as [`Session::materialize`](crate::Session::materialize) does. Where the first record of the conversation is
//!   the only one, a note that changes nothing follows it, if there are other logs to wait for.
//! * Neither direction keeps more in memory than a few records.

mod contents;
mod inherited;
mod plan;
mod read;
mod write;

use std::path::Path;

use bytes::Bytes;

pub use self::contents::Files;
use self::inherited::Inherited;
use self::plan::Plan;
use self::read::Reader;
use self::write::Sink;
use crate::backend::{From, LogKey, LogName, Position};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::id::{BlobId, SessionId};
use crate::import::arrival::{Arriving, without_arrival};
use crate::note::Note;
use crate::session::Session;
use crate::stamp::Line;
use crate::store::Store;

/// The newest version of the format that this program knows.
const VERSION: u32 = 1;
const READ_AHEAD: usize = 1 << 20;
/// How many lost records in a row a bundle names one by one.
const MOST_LOST: u64 = 1 << 20;

/// What was written to a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Records of the session's own logs.
    pub records: u64,
    /// Entries that it inherits.
    pub inherited: u64,
    /// How many of both could not be read; the bundle says which.
    pub lost: u64,
    /// Contents that the checkpoints refer to.
    pub files: u64,
    /// How many of those are damaged here, and were left out.
    pub missing: u64,
    /// The bundle's size.
    pub bytes: u64,
    /// The checksum that the bundle ends with.
    pub sha256: BlobId,
}

/// What was read from a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The session's id here.
    pub session_id: SessionId,
    /// Records of its own logs.
    pub records: u64,
    /// Entries that it inherited, and that it holds copies of here.
    pub inherited: u64,
    /// How many of both had been lost before the bundle was made.
    pub lost: u64,
    /// Contents that its checkpoints refer to.
    pub files: u64,
    /// Whether there are checkpoints whose contents did not come with it.
    pub without_files: bool,
    /// Lines of a kind that this version does not know.
    pub skipped: u64,
}

impl Store {
    /// Writes a session to one file that stands alone: every branch, every note, the transcript, and what it
    /// inherits, and the contents that its checkpoints refer to. Records that come in meanwhile are left out. A session
    /// in the trash can be exported too.
    pub async fn export(&self, id: &SessionId, out: &mut (dyn std::io::Write + Send)) -> Result<Exported> {
        self.export_with(id, Files::Included, out).await
    }

    /// The same, with or without those contents.
    pub async fn export_with(
        &self,
        id: &SessionId,
        files: Files,
        out: &mut (dyn std::io::Write + Send),
    ) -> Result<Exported> {
        self.check_format().await?;
        let fold = self.fold(id).await?;
        if fold.next == 0 || fold.purging {
            return Err(Error::SessionNotFound(id.clone()));
        }
        self.check_beginning(id).await?;
        let modified = self.inner.backend.stat(id).await?.map(|listed| listed.modified);
        let mut sink = Sink::new(out);
        sink.header(VERSION, &fold.metadata(modified))?;
        if let Some(origin) = &fold.origin {
            let mut inherited = Inherited::of(self, id, &fold, origin.depth).await?;
            inherited.write(self, &mut sink).await?;
        }
        for name in LogName::ALL {
            let log = LogKey::new(id.clone(), name);
            let end = match name {
                LogName::Messages => fold.next,
                _ => self.end_of(&log).await?,
            };
            self.export_log(&log, end, &mut sink).await?;
        }
        let inherited = self.inherited_checkpoints(id, &fold).await?;
        let end = sink.next_checkpoint();
        for (position, entry) in (end..).zip(&inherited) {
            sink.inherited_checkpoint(position, entry)?;
        }
        if files == Files::Included {
            contents::write(self, id, &inherited, &mut sink).await?;
        }
        sink.finish()
    }

    /// Returns copies of what an attached fork inherits of its ancestors' checkpoints.
    async fn inherited_checkpoints(&self, id: &SessionId, fold: &Fold) -> Result<Vec<Entry>> {
        if fold.origin.is_none() || fold.copied_to.is_some() {
            return Ok(Vec::new());
        }
        let session = Session::new(self.clone(), id.clone());
        let history = session.messages().await?;
        session.inherited_checkpoints(&history.records).await
    }

    async fn end_of(&self, log: &LogKey) -> Result<Position> {
        // What cannot be written now must not keep anybody from taking the rest away.
        let _ = self.inner.writer.settle(log).await;
        let last = self.inner.backend.read(log, From::Last, 1).await?;
        Ok(last.lines.last().map_or(0, |line| line.stamp().position + 1))
    }

    async fn export_log(&self, log: &LogKey, end: Position, sink: &mut Sink<'_>) -> Result<()> {
        let mut next = 0;
        while next < end {
            let chunk = self.inner.backend.read(log, From::Position(next), READ_AHEAD).await?;
            if chunk.next == next {
                return Err(Error::Gone(log.session.clone()));
            }
            for line in chunk.lines.iter().filter(|line| line.stamp().position < end) {
                check_lost(&log.session, line.stamp().position - next)?;
                (next..line.stamp().position).try_for_each(|lost| sink.lost(log.name, lost))?;
                next = line.stamp().position + 1;
                sink.record(log.name, line, &body_of(log, line))?;
            }
            check_lost(&log.session, chunk.next.min(end).saturating_sub(next))?;
            (next..chunk.next.min(end)).try_for_each(|lost| sink.lost(log.name, lost))?;
            next = chunk.next;
        }
        Ok(())
    }

    /// Without its first record nobody could say what the session is.
    async fn check_beginning(&self, id: &SessionId) -> Result<()> {
        let log = LogKey::new(id.clone(), LogName::Messages);
        let chunk = self.inner.backend.read(&log, From::Position(0), 1).await?;
        let first = chunk.lines.first().filter(|line| line.stamp().position == 0);
        if first.is_some_and(|line| matches!(Note::read(&line.body()), Note::Created { .. })) {
            return Ok(());
        }
        let reason = "its first record, which says how it began, is lost".into();
        Err(Error::Damaged { what: format!("session {id}"), reason })
    }

    /// Reads a session from a file that [`export`](Store::export) wrote, under its own id or another. All of it is
    /// durable when this returns, or there is no such session. An id that is taken, even in the trash, is an error.
    pub async fn import_bundle(&self, path: &Path, as_id: Option<SessionId>) -> Result<Imported> {
        self.check_format().await?;
        let limit = self.inner.backend.capabilities().max_record;
        let plan = Plan::of(Reader::open(path, limit)?)?;
        let id = as_id.unwrap_or_else(|| plan.session_id.clone());
        let mut arriving = Arriving::begin(self, id.clone(), plan.created.clone(), &plan.arrival).await?;
        let filled = async {
            contents::store(Reader::open(path, limit)?, &*self.inner.backend).await?;
            plan.records(Reader::open(path, limit)?, &mut arriving).await?;
            plan.copies(Reader::open(path, limit)?, &mut arriving).await
        };
        if let Err(error) = filled.await {
            return Err(arriving.abandon(error).await);
        }
        arriving.finish().await?;
        Ok(plan.imported(id))
    }
}

/// Refuses to name more lost records than any damage can have taken: one stray position would fill the disk with them.
fn check_lost(session: &SessionId, count: u64) -> Result<()> {
    match count {
        ..=MOST_LOST => Ok(()),
        count => {
            let reason = format!("{count} records in a row are not there");
            Err(Error::Damaged { what: format!("session {session}"), reason })
        }
    }
}

/// Returns a record's body as it was given, without what an import added to the first one.
fn body_of(log: &LogKey, line: &Line) -> Bytes {
    match (log.name, line.stamp().position) {
        (LogName::Messages, 0) => without_arrival(line.body()),
        _ => line.body(),
    }
}

//! Everything that Claude Code keeps of a session, as contents of a store, for another machine to take.
//!
//! Files are cut into pieces of one size. Transcripts only grow, so of one that was handed over before only the last piece
//! and what came behind it is new.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use rethread_checkpoint::note_folder;
use rethread_store::backend::{Backend, From, LogKey, LogName};
use rethread_store::{BlobId, Entry, EntryId, Error, Holder, Session as Stored};
use rethread_transcripts::{Incoming, Session};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::Ui;

const PIECE: u64 = 1 << 20;
/// The member of the metadata that names the newest record.
const NEWEST: &str = "handoff";

/// What was handed over, as a record of the session's checkpoints: what those refer to is kept, copied and verified.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Handoff {
    id: EntryId,
    what: String,
    created_at: Timestamp,
    /// The machine that it comes from.
    pub(crate) host: String,
    /// Where the session worked there.
    pub(crate) cwd: PathBuf,
    pub(crate) files: Vec<HandedFile>,
}

/// A file of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandedFile {
    name: String,
    pub(crate) size: u64,
    pieces: Vec<BlobId>,
}

impl Handoff {
    /// Puts everything into the store, and says so in the session's log. What is there already is not put again.
    pub(crate) fn pack(
        native: &Session,
        stored: &Stored,
        context: &Context,
        ui: &mut Ui,
    ) -> Result<Self, Failure> {
        let claude = context.native.claude()?;
        let names = claude.belongings(&native.session_id)?;
        let mut files = Vec::with_capacity(names.len());
        for (number, name) in names.iter().enumerate() {
            ui.progress("handing over file", number + 1, names.len());
            let mut file = claude.belonging(&native.session_id, name)?;
            let (mut size, mut pieces) = (0, Vec::new());
            loop {
                let mut piece = Vec::new();
                let read = file.by_ref().take(PIECE).read_to_end(&mut piece);
                read.map_err(|error| {
                    Failure::failed(format!("cannot read {name}: {error}"), "type it again")
                })?;
                if piece.is_empty() {
                    break;
                }
                size += piece.len() as u64;
                pieces.push(put(&piece, context)?);
            }
            files.push(HandedFile { name: name.clone(), size, pieces });
        }
        let cwd = native.cwd.clone().unwrap_or_default();
        if let Some(last) = Self::of(stored)?.filter(|last| last.cwd == cwd && last.files == files) {
            return Ok(last);
        }
        let holder = Holder::this_process("hands over");
        let (id, what) = (EntryId::generate(), "handoff".to_owned());
        let handoff = Self { id, what, created_at: holder.since, host: holder.host, cwd, files };
        context.write(async { stored.append_checkpoint(Entry::of(&handoff)?).await })?;
        let (newest, cwd) = (json!(handoff.id), handoff.cwd.clone());
        context.write(stored.update(move |metadata| {
            metadata.extra.insert(NEWEST.into(), newest.clone());
            note_folder(metadata, &cwd);
        }))?;
        Ok(handoff)
    }

    /// Returns what was last handed over of a session.
    pub(crate) fn of(stored: &Stored) -> Result<Option<Self>, Failure> {
        let metadata = pollster::block_on(stored.metadata())?;
        let Some(id) = metadata.extra.get(NEWEST).and_then(|id| id.as_str()?.parse::<EntryId>().ok()) else {
            return Ok(None);
        };
        let (log, backend) =
            (LogKey::new(stored.id().clone(), LogName::Checkpoints), stored.store().backend());
        let Some(position) = pollster::block_on(backend.find(&log, &id))? else { return Ok(None) };
        let chunk = pollster::block_on(backend.read(&log, From::Position(position), 1))?;
        let read = |entry: Entry| {
            entry.read().map_err(|error| Error::Damaged { what: log.to_string(), reason: error.to_string() })
        };
        Ok(chunk.lines.first().map(|line| read(line.entry())).transpose()?)
    }

    /// Writes it to Claude Code's folder, as a session that works in another place. Returns its transcript.
    pub(crate) fn unpack(
        &self,
        stored: &Stored,
        cwd: PathBuf,
        context: &Context,
    ) -> Result<PathBuf, Failure> {
        let backend = stored.store().backend();
        let open = |name: &str| -> io::Result<Box<dyn io::Read>> {
            let file = self.files.iter().find(|file| file.name == name);
            let pieces = file.map(|file| file.pieces.clone()).unwrap_or_default();
            let (backend, current) = (Arc::clone(backend), io::Cursor::default());
            Ok(Box::new(Pieces { backend, rest: pieces.into_iter(), current }))
        };
        let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let session = stored.id().as_str();
        let incoming = Incoming { session, was_at: &self.cwd, cwd: &cwd, names: &names, open: &open };
        Ok(context.native.claude()?.receive(&incoming)?)
    }
}

fn put(piece: &[u8], context: &Context) -> Result<BlobId, Failure> {
    let (blob, backend) = (BlobId::of(piece), context.store.backend());
    if !pollster::block_on(backend.refresh_blob(&blob))? {
        pollster::block_on(backend.put_blob(&blob, &mut &*piece))?;
    }
    Ok(blob)
}

/// A file, read piece by piece from a store.
struct Pieces {
    backend: Arc<dyn Backend>,
    rest: std::vec::IntoIter<BlobId>,
    current: io::Cursor<Vec<u8>>,
}

impl io::Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(blob) = self.rest.next() else { return Ok(0) };
            let piece =
                pollster::block_on(self.backend.get_blob(&blob, 0..PIECE)).map_err(io::Error::other)?;
            let piece =
                piece.ok_or_else(|| io::Error::other(format!("content {blob} is not in the store")))?;
            // What a store gives back is what was put, or it is nothing to put into somebody's folder.
            if BlobId::of(&piece) != blob {
                return Err(io::Error::other(format!("content {blob} is damaged")));
            }
            self.current = io::Cursor::new(piece.to_vec());
        }
    }
}

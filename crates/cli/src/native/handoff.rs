//! Everything that Claude Code keeps of a session, as contents of a store, for another machine to take.
//!
//! Files are cut into pieces of one size. Transcripts only grow, so of one that was handed over before only the last piece
//! and what came behind it is new.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
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

/// What such a record is called.
const WHAT: &str = "handoff";

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    what: String,
}

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
    pub(crate) name: String,
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
        let belongings = claude.belongings(&native.session_id)?;
        let names = belongings.names();
        let (mut files, mut batch) = (Vec::with_capacity(names.len()), Batch::default());
        for (number, name) in names.iter().enumerate() {
            ui.progress("handing over file", number + 1, names.len());
            let mut file = belongings.open_own(name)?;
            let (mut size, mut pieces) = (0, Vec::new());
            loop {
                let piece = piece_of(&mut file).map_err(cannot_read(name))?;
                if piece.is_empty() {
                    break;
                }
                size += piece.len() as u64;
                pieces.push(batch.put(piece, context)?);
            }
            files.push(HandedFile { name: name.clone(), size, pieces });
        }
        batch.flush(context)?;
        let cwd = native.cwd.clone().unwrap_or_default();
        if let Some(last) = Self::of(stored)?.filter(|last| last.cwd == cwd && last.files == files) {
            return Ok(last);
        }
        let holder = Holder::this_process("hands over");
        let (id, what) = (EntryId::generate(), WHAT.to_owned());
        let handoff = Self { id, what, created_at: holder.since, host: holder.host, cwd, files };
        context.write(async { stored.append_checkpoint(Entry::of(&handoff)?).await })?;
        let (newest, cwd) = (json!(handoff.id), handoff.cwd.clone());
        context.write(stored.update(move |metadata| {
            metadata.extra.insert(NEWEST.into(), newest.clone());
            note_folder(metadata, &cwd);
        }))?;
        Ok(handoff)
    }

    /// Returns what was last handed over of a session. What is still on its way, or never came, does not count.
    pub(crate) fn of(stored: &Stored) -> Result<Option<Self>, Failure> {
        Ok(Self::all_of(stored)?.pop())
    }

    /// Returns whether a session was handed over from here, or taken to here, with this.
    pub(crate) fn is_in(&self, stored: &Stored) -> Result<bool, Failure> {
        Ok(Self::all_of(stored)?.iter().any(|handoff| handoff.id == self.id))
    }

    /// Returns whether a session here is as this has it: whoever took it and did nothing has nothing to hand back, and
    /// whoever handed it over goes on from that.
    pub(crate) fn is_all_of(&self, session: &str, context: &Context) -> Result<bool, Failure> {
        let belongings = context.native.claude()?.belongings(session)?;
        if belongings.names().len() != self.files.len() {
            return Ok(false);
        }
        for name in belongings.names() {
            let here = pieces_in(&mut belongings.open_own(name)?).map_err(cannot_read(name))?;
            if self.file(name).is_none_or(|file| file.pieces != here) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the transcript of a session here goes on from this.
    pub(crate) fn is_gone_on_from(&self, session: &str, context: &Context) -> Result<bool, Failure> {
        let belongings = context.native.claude()?.belongings(session)?;
        let Some(name) = belongings.names().first() else { return Ok(false) };
        let Some(file) = self.file(name) else { return Ok(true) };
        file.is_beginning_of(&mut belongings.open(name)?).map_err(cannot_read(name))
    }

    /// Returns whether a session here, whose transcript goes on from this, is still at something that was handed over
    /// before. Only that with the same transcript can be meant: whoever takes a handoff has its transcript last.
    pub(crate) fn is_missed(&self, shared: &Stored, context: &Context) -> Result<bool, Failure> {
        let belongings = context.native.claude()?.belongings(shared.id().as_str())?;
        let names = belongings.names();
        let here = |name: &String| match names.contains(name) {
            true => pieces_in(&mut belongings.open(name)?).map(Some).map_err(cannot_read(name)),
            false => Ok(None),
        };
        let Some(transcript) = names.first() else { return Ok(false) };
        let before = Self::all_of(shared)?.into_iter().take_while(|handoff| handoff.id != self.id);
        for before in before.filter(|before| before.file(transcript) == self.file(transcript)) {
            let all = self.files.iter().chain(&before.files).map(|file| &file.name);
            let differing: Vec<&String> = all.filter(|name| self.file(name) != before.file(name)).collect();
            let mut is_older = !differing.is_empty();
            for name in differing {
                is_older &= here(name)?.as_ref() == before.file(name).map(|file| &file.pieces);
            }
            if is_older {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn file(&self, name: &str) -> Option<&HandedFile> {
        self.files.iter().find(|file| file.name == name)
    }

    fn all_of(stored: &Stored) -> Result<Vec<Self>, Failure> {
        let metadata = pollster::block_on(stored.metadata())?;
        if !metadata.extra.contains_key(NEWEST) {
            return Ok(Vec::new());
        }
        let (log, backend) =
            (LogKey::new(stored.id().clone(), LogName::Checkpoints), stored.store().backend());
        let (mut next, mut all) = (0, Vec::new());
        loop {
            let chunk = pollster::block_on(backend.read(&log, From::Position(next), 1 << 20))?;
            for entry in chunk.lines.iter().map(|line| line.entry()) {
                if entry.read::<Kind>().is_ok_and(|kind| kind.what == WHAT) {
                    let damaged =
                        |error: Error| Error::Damaged { what: log.to_string(), reason: error.to_string() };
                    all.push(entry.read().map_err(damaged)?);
                }
            }
            if chunk.next == next {
                return Ok(all);
            }
            next = chunk.next;
        }
    }

    /// Looks whether it can be written to Claude Code's folder, as a session that works in another place, and does so if
    /// `between` does not fail. Returns the transcript.
    pub(crate) fn unpack(
        &self,
        shared: &Stored,
        cwd: &Path,
        context: &Context,
        between: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        let backend = shared.store().backend();
        let by_name: HashMap<&str, &HandedFile> =
            self.files.iter().map(|file| (file.name.as_str(), file)).collect();
        let open = |name: &str| -> io::Result<Box<dyn io::Read>> {
            match by_name.get(name) {
                Some(file) => Ok(file.open(backend)),
                None => Ok(Box::new(io::empty())),
            }
        };
        // What is here as it was once handed over is in the store, so nothing is lost with it. Which of all handoffs was
        // the last one here need not be known: this machine may have nothing of its own to remember that.
        let all = Self::all_of(shared)?;
        let is_as_it_was = |name: &str, here: &mut dyn io::Read| {
            let here = pieces_in(here)?;
            Ok(all.iter().filter_map(|handoff| handoff.file(name)).any(|file| file.pieces == here))
        };
        let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let (session, was_at) = (shared.id().as_str(), self.cwd.as_path());
        let incoming =
            Incoming { session, was_at, cwd, names: &names, open: &open, is_as_it_was: &is_as_it_was };
        let reception = context.native.claude()?.receive(incoming)?;
        between()?;
        Ok(reception.finish()?)
    }
}

impl HandedFile {
    /// Opens it, to be read from a store.
    pub(crate) fn open(&self, backend: &Arc<dyn Backend>) -> Box<dyn io::Read> {
        let (rest, current) = (self.pieces.clone().into_iter(), io::Cursor::default());
        Box::new(Pieces { backend: Arc::clone(backend), rest, current })
    }

    /// Returns whether what a reader gives begins with this.
    fn is_beginning_of(&self, here: &mut dyn io::Read) -> io::Result<bool> {
        Ok(pieces_in(&mut here.take(self.size))? == self.pieces)
    }
}

/// Returns the names of the pieces that a file would be put into a store with.
fn pieces_in(file: &mut dyn io::Read) -> io::Result<Vec<BlobId>> {
    let mut pieces = Vec::new();
    loop {
        match piece_of(file)? {
            piece if piece.is_empty() => return Ok(pieces),
            piece => pieces.push(BlobId::of(&piece)),
        }
    }
}

fn cannot_read(name: &str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::failed(format!("cannot read {name}: {error}"), "type it again")
}

fn piece_of(file: &mut dyn io::Read) -> io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    file.take(PIECE).read_to_end(&mut piece)?;
    Ok(piece)
}

/// Pieces that go into the store together: a sync for each would be what a handoff waits for.
#[derive(Default)]
struct Batch {
    pieces: Vec<(BlobId, Bytes)>,
    size: usize,
}

impl Batch {
    const MOST: usize = 1000;
    const LARGEST: usize = 16 << 20;

    fn put(&mut self, piece: Vec<u8>, context: &Context) -> Result<BlobId, Failure> {
        let blob = BlobId::of(&piece);
        self.size += piece.len();
        self.pieces.push((blob, piece.into()));
        if self.pieces.len() >= Self::MOST || self.size >= Self::LARGEST {
            self.flush(context)?;
        }
        Ok(blob)
    }

    fn flush(&mut self, context: &Context) -> Result<(), Failure> {
        pollster::block_on(context.store.backend().put_blobs(&self.pieces))?;
        *self = Self::default();
        Ok(())
    }
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

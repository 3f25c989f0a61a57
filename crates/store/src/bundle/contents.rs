//! The contents that checkpoints refer to, in pieces that a line can hold.

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::plan::CHANGED;
use super::read::{Item, Reader};
use super::write::Sink;
use crate::backend::Backend;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::{BlobId, SessionId};
use crate::references;
use crate::store::Store;

/// How much of a content goes into one line.
const PIECE: u64 = 384 << 10;

/// Whether a bundle holds the contents that checkpoints refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Files {
    /// It does: whoever imports it can rewind files too.
    #[default]
    Included,
    /// It is smaller without them.
    LeftOut,
}

/// The pieces of contents that a first reading has met: each goes on where the one before it ended, and the whole has
/// the hash that it is said to have.
#[derive(Default)]
pub(super) struct Pieces(Option<(BlobId, u64, sha2::Sha256)>);

impl Pieces {
    /// Takes the next line, which may be no piece. Returns what is wrong with it.
    pub(super) fn take(&mut self, item: &Item) -> Option<&'static str> {
        use sha2::Digest as _;
        let Item::Piece(piece) = item else { return self.end() };
        let (hash, at, mut hasher) = self.0.take().unwrap_or_else(|| (piece.hash, 0, sha2::Sha256::new()));
        if (hash, at) != (piece.hash, piece.at) {
            return Some("a content does not go on where it should");
        }
        hasher.update(&piece.body);
        if !piece.last {
            self.0 = Some((hash, at + piece.body.len() as u64, hasher));
            return None;
        }
        (BlobId::of_hasher(hasher) != hash).then_some("a content has another hash")
    }

    /// Returns whether a content is cut off.
    pub(super) fn end(&self) -> Option<&'static str> {
        self.0.as_ref().map(|_| "a content is cut off")
    }
}

/// Part of a content, as it stands in a line.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Piece {
    pub(super) hash: BlobId,
    /// Where in the content it begins.
    pub(super) at: u64,
    /// Whether the content ends with it.
    #[serde(default)]
    pub(super) last: bool,
    #[serde(deserialize_with = "unpacked")]
    pub(super) body: Vec<u8>,
}

fn unpacked<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)
}

/// Writes the contents that a session's checkpoints refer to, those that it inherits too. What is damaged is left out
/// and counted: `verify` says which.
pub(super) async fn write(
    store: &Store,
    session: &SessionId,
    inherited: &[Entry],
    sink: &mut Sink<'_>,
) -> Result<()> {
    let backend = &*store.inner.backend;
    let (mut referred, _) = references::of(backend, session).await?;
    referred.extend(inherited.iter().flat_map(|entry| references::hashes(entry.as_bytes())));
    for blob in referred {
        match is_whole(backend, &blob).await? {
            Some(true) => write_one(backend, &blob, sink).await?,
            Some(false) => sink.missing(),
            // Part of a pack has a hash as well, and any 64 digits of a record look like one.
            None => {}
        }
    }
    Ok(())
}

async fn is_whole(backend: &dyn Backend, blob: &BlobId) -> Result<Option<bool>> {
    use sha2::Digest as _;
    let (mut hasher, mut at) = (sha2::Sha256::new(), 0);
    loop {
        match backend.get_blob(blob, at..at + PIECE).await {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) if bytes.is_empty() => return Ok(Some(BlobId::of_hasher(hasher) == *blob)),
            Ok(Some(bytes)) => {
                at += bytes.len() as u64;
                hasher.update(&bytes);
            }
            Err(Error::Damaged { .. }) => return Ok(Some(false)),
            Err(error) => return Err(error),
        }
    }
}

async fn write_one(backend: &dyn Backend, blob: &BlobId, sink: &mut Sink<'_>) -> Result<()> {
    let mut at = 0;
    loop {
        let piece = backend.get_blob(blob, at..at + PIECE).await?.unwrap_or_default();
        let last = (piece.len() as u64) < PIECE;
        sink.piece(blob, at, last, &STANDARD.encode(&piece))?;
        at += piece.len() as u64;
        if last {
            return Ok(());
        }
    }
}

/// Stores every content of a bundle. Contents that nothing refers to do no harm: they go with a clean-up.
pub(super) async fn store(mut reader: Reader, backend: &dyn Backend) -> Result<()> {
    while let Some(item) = reader.next()? {
        let Item::Piece(piece) = item else { continue };
        let (blob, whole, at) = (piece.hash, piece.last, piece.body.len() as u64);
        let mut content = Content { reader: &mut reader, blob, next: piece.body, used: 0, at, whole };
        let mut stored = backend.put_blob(&blob, &mut content).await;
        // Whoever has it already need not read all of it.
        while stored.is_ok() && !content.whole {
            stored = content.advance().map_err(Error::io("read", "the bundle"));
        }
        match stored {
            // All of it was looked at before.
            Err(Error::WrongBlob(_) | Error::Io { action: "read the content of" | "read", .. }) => {
                return Err(reader.bad(CHANGED));
            }
            stored => stored?,
        }
    }
    Ok(())
}

/// One content, read piece by piece.
struct Content<'a> {
    reader: &'a mut Reader,
    blob: BlobId,
    next: Vec<u8>,
    used: usize,
    at: u64,
    /// Whether its last piece was read.
    whole: bool,
}

impl Content<'_> {
    /// Reads the next piece.
    fn advance(&mut self) -> io::Result<()> {
        match self.reader.next().map_err(io::Error::other)? {
            Some(Item::Piece(piece)) if piece.hash == self.blob && piece.at == self.at => {
                self.at += piece.body.len() as u64;
                (self.next, self.used, self.whole) = (piece.body, 0, piece.last);
                Ok(())
            }
            _ => Err(io::Error::other("a content does not go on where it should")),
        }
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.next.len() {
            if self.whole {
                return Ok(0);
            }
            self.advance()?;
        }
        let count = buffer.len().min(self.next.len() - self.used);
        buffer[..count].copy_from_slice(&self.next[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

//! Many small contents in one blob: the first capture of a tree must not make a blob of each of its files.

use std::collections::HashMap;

use rethread_store::BlobId;

use crate::state::{File, Place, Present, State};
use crate::walk::Found;

/// How large a pack gets.
const FULL: usize = 8 << 20;
/// Packs of source text are a quarter of its size at this level, and it costs less than writing the rest would.
const LEVEL: i32 = 1;

/// A pack that is being filled.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    known: HashMap<BlobId, (u64, u64)>,
    found: Vec<(Found, u64, u64)>,
}

/// A pack that is full.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) pack: BlobId,
    pub(crate) bytes: Vec<u8>,
    pub(crate) found: Vec<Found>,
}

impl Packer {
    /// Adds a content. Returns the pack if that fills it.
    pub(crate) fn add(&mut self, found: Found, content: &[u8]) -> std::io::Result<Option<Packed>> {
        let Some(hash) = found.state.file().map(|file| file.hash) else { return Ok(None) };
        let (at, length) = match self.known.get(&hash) {
            Some(place) => *place,
            None => {
                let packed = zstd::bulk::compress(content, LEVEL)?;
                let place = (self.bytes.len() as u64, packed.len() as u64);
                self.bytes.extend_from_slice(&packed);
                self.known.insert(hash, place);
                place
            }
        };
        self.found.push((found, at, length));
        Ok((self.bytes.len() >= FULL).then(|| self.finish()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Ends the pack, and tells everything in it where it is.
    pub(crate) fn finish(&mut self) -> Packed {
        let Packer { bytes, found, .. } = std::mem::take(self);
        let pack = BlobId::of(&bytes);
        let placed = found.into_iter().map(|(mut found, at, length)| {
            if let State::Present(Present::File(File { place, .. })) = &mut found.state {
                *place = Some(Place { pack, at, length });
            }
            found
        });
        Packed { pack, found: placed.collect(), bytes }
    }
}

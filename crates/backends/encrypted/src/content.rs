//! Contents, sealed piece by piece, so that part of one can be read without the rest.
//!
//! The key of a content follows from its hash, so the same content is sealed in the same way by whoever puts it, and
//! pieces are numbered. The last one says that it is: what was cut off is noticed.

use std::io::{self, Read};
use std::ops::Range;

use rethread_store::{BlobId, Result};
use sha2::{Digest as _, Sha256};

use crate::seal::{Secret, TAG};

const PIECE: u64 = 64 << 10;
const SEALED_PIECE: u64 = PIECE + TAG as u64;

/// Returns the key of a content.
pub(crate) fn key_of(contents: &Secret, blob: &BlobId) -> Secret {
    contents.derived(&[b"content", blob.as_hash()])
}

fn number(at: u64, is_last: bool) -> [u8; 12] {
    let mut number = [0; 12];
    number[0] = u8::from(is_last);
    number[4..].copy_from_slice(&at.to_be_bytes());
    number
}

/// Seals content that is in memory.
pub(crate) fn seal(content: &[u8], key: &Secret) -> Result<Vec<u8>> {
    let pieces = content.chunks(PIECE as usize);
    let count = pieces.len().max(1);
    let mut sealed = Vec::with_capacity(content.len() + count * TAG);
    for (at, piece) in pieces.chain(content.is_empty().then_some(&[][..])).enumerate() {
        let mut piece = piece.to_vec();
        key.seal_numbered(&mut piece, number(at as u64, at + 1 == count))?;
        sealed.extend_from_slice(&piece);
    }
    Ok(sealed)
}

/// Content on its way, sealed as it is read.
pub(crate) struct Sealing<'a> {
    content: &'a mut (dyn Read + Send),
    key: Secret,
    hasher: Sha256,
    /// The piece after the one that is handed out: only then is it known which is the last.
    ahead: Option<Vec<u8>>,
    at: u64,
    current: io::Cursor<Vec<u8>>,
}

impl<'a> Sealing<'a> {
    pub(crate) fn new(content: &'a mut (dyn Read + Send), key: Secret) -> io::Result<Self> {
        let ahead = Some(piece_of(content)?);
        Ok(Self { content, key, hasher: Sha256::new(), ahead, at: 0, current: io::Cursor::default() })
    }

    /// Returns the name of what was read.
    pub(crate) fn name(&self) -> BlobId {
        BlobId::of_hasher(self.hasher.clone())
    }
}

impl Read for Sealing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut piece) = self.ahead.take() else { return Ok(0) };
            self.hasher.update(&piece);
            let next = if (piece.len() as u64) < PIECE { Vec::new() } else { piece_of(self.content)? };
            self.key.seal_numbered(&mut piece, number(self.at, next.is_empty())).map_err(io::Error::other)?;
            self.at += 1;
            self.ahead = Some(next).filter(|next| !next.is_empty());
            self.current = io::Cursor::new(piece);
        }
    }
}

fn piece_of(content: &mut (dyn Read + Send)) -> io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    content.take(PIECE).read_to_end(&mut piece)?;
    Ok(piece)
}

/// Returns which part of what is sealed holds a part of the content, and one byte more: if there is one, it goes on.
pub(crate) fn sealed_range(range: &Range<u64>) -> Range<u64> {
    let end = range.end.div_ceil(PIECE).saturating_mul(SEALED_PIECE).saturating_add(1);
    (range.start / PIECE).saturating_mul(SEALED_PIECE)..end
}

/// Opens what was read of that, and cuts it to what was asked for; `None` if it is not as it was sealed.
pub(crate) fn open(sealed: &[u8], range: &Range<u64>, key: &Secret) -> Option<Vec<u8>> {
    let asked = sealed_range(range);
    let first = range.start / PIECE;
    let goes_on = sealed.len() as u64 >= asked.end.saturating_sub(asked.start);
    let sealed = if goes_on { &sealed[..sealed.len() - 1] } else { sealed };
    let pieces = sealed.chunks(SEALED_PIECE as usize);
    let count = pieces.len() as u64;
    let mut plain = Vec::with_capacity(sealed.len());
    for (at, piece) in (0..).zip(pieces) {
        let is_last = !goes_on && at + 1 == count;
        let mut piece = piece.to_vec();
        plain.extend_from_slice(key.open_numbered(&mut piece, number(first + at, is_last))?);
    }
    let begins = first * PIECE;
    let cut = |at: u64| usize::try_from(at.saturating_sub(begins)).unwrap_or(usize::MAX).min(plain.len());
    let (start, end) = (cut(range.start), cut(range.end));
    plain.truncate(end);
    plain.drain(..start.min(end));
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_length_comes_back_and_nothing_that_was_changed() {
        let contents = Secret::random().unwrap();
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let key = key_of(&contents, &BlobId::of(&content));
            let sealed = seal(&content, &key).unwrap();
            let mut streamed = Vec::new();
            Sealing::new(&mut &content[..], key_of(&contents, &BlobId::of(&content)))
                .unwrap()
                .read_to_end(&mut streamed)
                .unwrap();
            assert_eq!(streamed, sealed, "{length}: in pieces or at once");
            let read = |range: Range<u64>, sealed: &[u8]| {
                let asked = sealed_range(&range);
                let end = (sealed.len() as u64).min(asked.end);
                open(&sealed[asked.start.min(end) as usize..end as usize], &range, &key)
            };
            for start in [0, 1, PIECE - 1, PIECE, 2 * PIECE + 5, length, length + 9] {
                for end in [start, start + 1, start + PIECE, u64::MAX] {
                    let cut = |at: u64| at.min(length) as usize;
                    let expected = &content[cut(start)..cut(end)];
                    assert_eq!(
                        read(start..end, &sealed).as_deref(),
                        Some(expected),
                        "{length}: {start}..{end}"
                    );
                }
            }
            for cut in [1, TAG, sealed.len()] {
                let cut = &sealed[..sealed.len() - cut];
                assert!(cut.is_empty() || read(0..u64::MAX, cut).is_none(), "{length}: cut short");
            }
            if length > PIECE {
                let cut = &sealed[..SEALED_PIECE as usize];
                assert!(read(0..u64::MAX, cut).is_none(), "{length}: cut between pieces");
            }
            let mut flipped = sealed.clone();
            flipped[0] ^= 1;
            assert!(read(0..u64::MAX, &flipped).is_none(), "{length}: flipped");
        }
    }
}

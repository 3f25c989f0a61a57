//! What the contract says of blobs.

use std::io::{self, Read};
use std::ops::Range;

use bytes::Bytes;
use pollster::block_on;

use super::rule::{Rule, together};
use crate::backend::{Backend, Space};
use crate::id::BlobId;

const THREADS: usize = 6;
const EVERYTHING: Range<u64> = 0..u64::MAX;

/// Content that comes back.
pub(super) async fn stored(backend: &dyn Backend) {
    let rule = Rule("a blob that nobody put is absent");
    gives(rule, backend, &BlobId::of(b"nobody's"), EVERYTHING, None).await;

    let rule = Rule("a blob comes back as it was put");
    let large: Vec<u8> = (0..1_200_000).map(|at: u32| (at % 251) as u8).collect();
    for content in [&b""[..], b"\0\r\n\xff", &large] {
        let blob = put(rule, backend, content).await;
        gives(rule, backend, &blob, EVERYTHING, Some(content)).await;
    }

    let rule = Rule("content may come in pieces");
    let longer = [&large[..], b"more"].concat();
    let blob = BlobId::of(&longer);
    rule.ok(backend.put_blob(&blob, &mut Pieces(&longer, Ok(()))).await);
    gives(rule, backend, &blob, EVERYTHING, Some(&longer)).await;

    let rule = Rule("putting a blob again is not an error");
    put(rule, backend, b"twice").await;
    let twice = put(rule, backend, b"twice").await;
    gives(rule, backend, &twice, EVERYTHING, Some(b"twice")).await;

    let rule = Rule("a range of a blob is cut at its end");
    let digits = put(rule, backend, b"0123456789").await;
    let ranges: [(Range<u64>, &[u8]); 7] = [
        (0..10, b"0123456789"),
        (0..1, b"0"),
        (3..7, b"3456"),
        (9..1000, b"9"),
        (5..5, b""),
        (10..11, b""),
        (1000..2000, b""),
    ];
    for (range, expected) in ranges {
        gives(rule, backend, &digits, range, Some(expected)).await;
    }
    gives(rule, backend, &BlobId::of(&large), 1_100_000..1_100_005, Some(&large[1_100_000..1_100_005])).await;
}

/// Content that is not what it is said to be.
pub(super) async fn refused(backend: &dyn Backend) {
    let rule = Rule("content with another hash is an error, and nothing is stored");
    let blob = BlobId::of(b"right");
    for wrong in [&b"wrong"[..], b"", b"right and more", b"righ"] {
        let answer = backend.put_blob(&blob, &mut &*wrong).await;
        rule.check(answer.is_err(), &answer);
        nothing(rule, backend, &blob).await;
        nothing(rule, backend, &BlobId::of(wrong)).await;
    }

    let rule = Rule("content that cannot be read to its end is an error, and nothing is stored");
    let mut torn = Pieces(b"right", Err(io::ErrorKind::UnexpectedEof));
    let answer = backend.put_blob(&blob, &mut torn).await;
    rule.check(answer.is_err(), &answer);
    nothing(rule, backend, &blob).await;

    let rule = Rule("wrong content leaves the blob that is there as it was");
    put(rule, backend, b"right").await;
    // Whether what is there already is looked at once more is the backend's choice.
    let _ = backend.put_blob(&blob, &mut &b"wrong"[..]).await;
    gives(rule, backend, &blob, EVERYTHING, Some(b"right")).await;
}

/// The same blob, from many threads.
pub(super) fn contended(backend: &dyn Backend) {
    let rule = Rule("several puts of one blob all succeed, and each is seen afterwards");
    for round in 0..8 {
        let content = format!("round {round} ").repeat(5_000).into_bytes();
        let blob = BlobId::of(&content);
        together(THREADS, |_| {
            rule.ok_in_turn(|| block_on(backend.put_blob(&blob, &mut &content[..])));
            block_on(gives(rule, backend, &blob, EVERYTHING, Some(&content)));
        });
    }
}

async fn nothing(rule: Rule, backend: &dyn Backend, blob: &BlobId) {
    gives(rule, backend, blob, EVERYTHING, None).await;
    rule.same(rule.ok(backend.list(Space::Blobs, None, 10).await), Vec::new());
}

/// Puts content under its own hash.
pub(super) async fn put(rule: Rule, backend: &dyn Backend, content: &[u8]) -> BlobId {
    let blob = BlobId::of(content);
    rule.ok(backend.put_blob(&blob, &mut &*content).await);
    blob
}

/// Returns what listings call a blob that was just put.
pub(super) fn listed_as(backend: &dyn Backend, blob: &BlobId) -> String {
    backend.listed_as(blob).first().unwrap_or(blob).to_string()
}

/// Checks what a range of a blob holds; `None`: that there is no such blob.
pub(super) async fn gives(
    rule: Rule,
    backend: &dyn Backend,
    blob: &BlobId,
    range: Range<u64>,
    expected: Option<&[u8]>,
) {
    let found = rule.ok(backend.get_blob(blob, range).await);
    rule.same(found, expected.map(Bytes::copy_from_slice));
}

/// Gives its content in small pieces of different sizes, and may fail at the end.
struct Pieces<'a>(&'a [u8], Result<(), io::ErrorKind>);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return self.1.map(|()| 0).map_err(io::Error::from);
        }
        let size = (1 + self.0.len() % 8191).min(buffer.len()).min(self.0.len());
        let (piece, rest) = self.0.split_at(size);
        buffer[..size].copy_from_slice(piece);
        self.0 = rest;
        Ok(size)
    }
}

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
    rule.same(get(rule, backend, &BlobId::of(b"nobody's"), EVERYTHING).await, None);

    let rule = Rule("a blob comes back as it was put");
    let large: Vec<u8> = (0..3 << 20).map(|at: u32| (at % 251) as u8).collect();
    for content in [&b""[..], b"\0\r\n\xff", &large] {
        let blob = put(rule, backend, content).await;
        let found = get(rule, backend, &blob, EVERYTHING).await;
        rule.same(found.as_deref(), Some(content));
    }

    let rule = Rule("content may come in pieces");
    let blob = BlobId::of(&large);
    let again = [large, b"more".to_vec()].concat();
    let longer = BlobId::of(&again);
    rule.ok(backend.put_blob(&longer, &mut Pieces(&again, Ok(()))).await);
    rule.same(get(rule, backend, &longer, EVERYTHING).await, Some(again.into()));

    let rule = Rule("putting a blob again is not an error");
    put(rule, backend, b"twice").await;
    let twice = put(rule, backend, b"twice").await;
    rule.same(
        get(rule, backend, &twice, EVERYTHING).await.as_deref(),
        Some(&b"twice"[..]),
    );

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
        rule.same(get(rule, backend, &digits, range).await.as_deref(), Some(expected));
    }
    let middle = get(rule, backend, &blob, (1 << 20)..(1 << 20) + 3).await;
    let expected: Vec<u8> = (1 << 20..(1 << 20) + 3).map(|at: u32| (at % 251) as u8).collect();
    rule.same(middle.as_deref(), Some(&expected[..]));
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

    let rule = Rule("a refused put leaves the blob as it was");
    put(rule, backend, b"right").await;
    // Whether a blob that is there already is looked at again is the backend's choice.
    let _ = backend.put_blob(&blob, &mut &b"wrong"[..]).await;
    rule.same(
        get(rule, backend, &blob, EVERYTHING).await.as_deref(),
        Some(&b"right"[..]),
    );
}

/// The same blob, from many threads.
pub(super) fn contended(backend: &dyn Backend) {
    let rule = Rule("several puts of one blob all succeed, and each is seen afterwards");
    for round in 0..8 {
        let content = format!("round {round} ").repeat(20_000).into_bytes();
        let blob = BlobId::of(&content);
        together(THREADS, |_| {
            rule.ok_in_turn(|| block_on(backend.put_blob(&blob, &mut &content[..])));
            let found = rule.ok(block_on(backend.get_blob(&blob, EVERYTHING)));
            rule.same(found.as_deref(), Some(&content[..]));
        });
    }
}

async fn nothing(rule: Rule, backend: &dyn Backend, blob: &BlobId) {
    rule.same(get(rule, backend, blob, EVERYTHING).await, None);
    rule.same(rule.ok(backend.list(Space::Blobs, None, 10).await), Vec::new());
}

/// Puts content under its own hash.
pub(super) async fn put(rule: Rule, backend: &dyn Backend, content: &[u8]) -> BlobId {
    let blob = BlobId::of(content);
    rule.ok(backend.put_blob(&blob, &mut &*content).await);
    blob
}

async fn get(rule: Rule, backend: &dyn Backend, blob: &BlobId, range: Range<u64>) -> Option<Bytes> {
    rule.ok(backend.get_blob(blob, range).await)
}

/// Gives its content in small pieces of different sizes, with interruptions, and may fail at the end.
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

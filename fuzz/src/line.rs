//! One stored line.

use bytes::Bytes;
use rethread_store::{Entry, Kind, Line, Stamp};
use serde::de::IgnoredAny;

use super::choices::Choices;

/// Reads a line that may be anything: what is a record has a body and a stamp that make the same record again.
pub fn line(data: &[u8]) {
    sound(data);
    // No input gets past the checksum by chance, so each is also given the right one.
    let checksum = format!("{:08x}\"}}", crc32c::crc32c(data));
    sound(&[data, checksum.as_bytes()].concat());
}

fn sound(bytes: &[u8]) {
    let Ok(line) = Line::parse(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    assert_eq!(line.as_bytes(), bytes);
    let body = line.body();
    assert!(bytes.starts_with(&body[..body.len() - 1]), "the caller's bytes stand in front");
    let again = Line::new(&line.entry(), line.stamp().clone());
    let read = Line::parse(Bytes::copy_from_slice(again.as_bytes())).expect("what was just stamped");
    assert_eq!((read.stamp(), read.body()), (line.stamp(), body));
}

/// Stamps an entry that may be anything: the caller's bytes come back exactly, and the line is still one JSON object.
pub fn entry(data: &[u8]) {
    let mut choices = Choices::new(data);
    let number = |choices: &mut Choices| choices.number() & ((1 << 53) - 1);
    let stamp = Stamp {
        position: number(&mut choices),
        parent: choices.coin().then(|| number(&mut choices)),
        depth: number(&mut choices),
        kind: [Kind::Entry, Kind::Note, Kind::Copy][choices.below(3)],
        id: "e".repeat(choices.below(256) + 1).parse().expect("an id"),
        left: number(&mut choices),
        unsettled: number(&mut choices),
    };
    let Ok(entry) = Entry::parse(Bytes::copy_from_slice(choices.rest())) else {
        return;
    };
    let mut bytes = Bytes::copy_from_slice(entry.as_bytes());
    for _ in 0..2 {
        let line = Line::new(&Entry::parse(bytes.clone()).expect("an entry"), stamp.clone());
        assert!(!line.as_bytes().contains(&b'\n'));
        let read = Line::parse(Bytes::copy_from_slice(line.as_bytes())).expect("what was just stamped");
        assert_eq!((read.stamp(), read.body()), (&stamp, bytes), "the caller's bytes come back");
        serde_json::from_slice::<IgnoredAny>(line.as_bytes()).expect("still JSON");
        // A line that is stamped once more, as a caller's own `_rt`, loses the outer stamp only.
        bytes = Bytes::copy_from_slice(line.as_bytes());
    }
}

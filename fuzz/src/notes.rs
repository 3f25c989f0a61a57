//! Whole records whose bodies are any JSON: what notes say is folded, cached, exported and imported.

use bytes::Bytes;
use rethread_store::backend::Position;
use rethread_store::{Entry, Error, Kind, Line, Problem, Stamp};

use super::home::{Home, run};
use super::{agreement, sample, soundness, travel};

/// Makes a log of the input's lines. The first byte of each says what record it is, the rest is its body.
pub fn notes(data: &[u8]) {
    let home = Home::default();
    let mut file = [sample::line(0, "", 0).as_bytes(), b"\n"].concat();
    let (mut leaf, mut depth, mut next) = (None, 0, 1);
    for line in data.split(|byte| *byte == b'\n').take(64) {
        let Some(line) = record(line, next, leaf, depth) else {
            continue;
        };
        if line.stamp().kind == Kind::Entry {
            (leaf, depth) = (Some(next), depth + 1);
        }
        next += 1;
        file.extend_from_slice(line.as_bytes());
        file.push(b'\n');
    }
    home.put("messages.jsonl", &file);
    soundness::everything_can_be_called(&home);
    let before = agreement::readers_agree(&home);
    soundness::an_append_takes_nothing_away(&home, &before);
    its_metadata_is_cached_as_it_is(&home);
    travel::there_and_back(&home);
}

fn record(line: &[u8], position: Position, leaf: Option<Position>, depth: u64) -> Option<Line> {
    let (kind, body) = line.split_first()?;
    let entry = Entry::parse(Bytes::copy_from_slice(body)).ok()?;
    let (kind, depth) = match kind {
        b'e' => (Kind::Entry, depth + 1),
        _ => (Kind::Note, depth),
    };
    let id = entry.id().clone();
    Some(Line::new(&entry, Stamp { position, parent: leaf, depth, kind, id, left: 0, unsettled: 0 }))
}

fn its_metadata_is_cached_as_it_is(home: &Home) {
    let store = home.store();
    if let Ok(Some(session)) = run(store.load(&home.session())) {
        let renamed = run(session.update(|metadata| metadata.name = Some("renamed".into())));
        match renamed {
            Ok(metadata) => assert_eq!(metadata.name.as_deref(), Some("renamed")),
            Err(error) => assert!(matches!(error, Error::Fenced { .. }), "{error:?}"),
        }
    }
    store.close().expect("all was acknowledged");
    let report = run(home.store().verify(&home.session())).expect("readable");
    let wrong = |problem: &&Problem| matches!(problem, Problem::Damage(..) | Problem::Metadata);
    assert_eq!(report.problems.iter().find(wrong), None);
}

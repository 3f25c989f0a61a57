//! A folder of an older store, in one of the two layouts, whose files hold anything.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use rethread_store::backend::{LogKey, LogName};
use rethread_store::{BlobId, Entry, FolderOutcome, Kind, Line, Problem, SessionId};

use super::home::{Home, read_all, run};
use super::travel;

/// Separates the files of an input; no text holds it.
const BETWEEN: u8 = 0xff;

/// Imports a session. The input is its layout, then its metadata, messages, transcript, manifest, a content and the
/// project's memory, each ended by `0xff`.
pub fn folder(data: &[u8]) {
    let (layout, rest) = data.split_first().unwrap_or((&0, &[]));
    let parts: Vec<&[u8]> = rest.split(|byte| *byte == BETWEEN).collect();
    let part = |index: usize| parts.get(index).copied().unwrap_or_default();
    let base = travel::folder().join("source");
    let (session, contents) = match layout % 2 {
        0 => (base.join("projects/p1/sessions/old"), "files"),
        _ => (base.join("old"), "blobs"),
    };
    let checkpoint = session.join("checkpoints/c1");
    let files = [
        (session.join("metadata.json"), part(0)),
        (session.join("messages.jsonl"), part(1)),
        (session.join("transcript.jsonl"), part(2)),
        (checkpoint.join("manifest.json"), part(3)),
        (checkpoint.join(contents).join(BlobId::of(part(4)).to_string()), part(4)),
        (base.join("projects/p1/memory/summary.md"), part(5)),
    ];
    drop(std::fs::remove_dir_all(&base));
    for (path, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("room for a folder");
        std::fs::write(path, bytes).expect("room for a file");
    }
    import(&base, &files);
}

fn import(base: &Path, files: &[(PathBuf, &[u8])]) {
    let home = Home::default();
    let store = home.store();
    let Ok(done) = run(store.import_folder(base, &mut |_| {})) else {
        return assert!(home.disk.files().is_empty(), "nothing was found, so nothing was written");
    };
    for session in &done.sessions {
        match &session.outcome {
            FolderOutcome::Imported { session_id, messages, transcript, .. } => {
                let count = holds(&home, session_id, LogName::Messages, files[1].1);
                assert_eq!(*messages, count);
                assert_eq!(*transcript, holds(&home, session_id, LogName::Transcript, files[2].1));
                run(store.load(session_id)).expect("readable");
                let report = run(store.verify(session_id)).expect("readable");
                let wrong = |problem: &&Problem| matches!(problem, Problem::Damage(..) | Problem::Metadata);
                assert_eq!(report.problems.iter().find(wrong), None);
            }
            FolderOutcome::Exists(id) => panic!("{id} was not there"),
            _ => {}
        }
    }
    let again = run(store.import_folder(base, &mut |_| {})).expect("the same folder");
    for (one, other) in done.sessions.iter().zip(&again.sessions) {
        let imported = matches!(one.outcome, FolderOutcome::Imported { .. });
        assert_eq!(imported, matches!(other.outcome, FolderOutcome::Exists(_)), "{:?}", other.outcome);
    }
    store.close().expect("nothing waits");
    for (path, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        assert_eq!(std::fs::read(path).expect("the source"), *bytes, "the source is only read");
    }
}

/// Checks that every entry of a file is in a log, in order and byte for byte. Returns how many there are.
fn holds(home: &Home, id: &SessionId, log: LogName, file: &[u8]) -> u64 {
    let entry = |line: &[u8]| Entry::parse(Bytes::copy_from_slice(line)).ok();
    let wanted: Vec<Entry> = file.split(|byte| *byte == b'\n').filter_map(entry).collect();
    let records = read_all(&home.backend(), &LogKey::new(id.clone(), log), 1 << 20).records;
    let lines = records.into_iter().map(|(_, bytes)| Line::parse(bytes.into()).expect("a record"));
    let found: Vec<Entry> =
        lines.filter(|line| line.stamp().kind == Kind::Entry).map(|line| line.entry()).collect();
    assert!(
        wanted.iter().map(Entry::as_bytes).eq(found.iter().map(Entry::as_bytes)),
        "entries come as they were"
    );
    wanted.len() as u64
}

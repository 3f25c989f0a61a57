//! What fuzzing found, told as facts: the inputs themselves are in `fuzz/corpus`.

use std::sync::Arc;
use std::time::Duration;

use rethread_store::{Entry, Error, FileBackend, Kind, Line, Mode, Options, Session, Stamp, Store};

use crate::faulty_disk::{Fault, FaultyDisk};
use crate::kit::{Home, chain_of, conversation, entry_id, message, run, session_id};

fn appended(session: &Session, entry: Entry) -> u64 {
    run(async { session.append(entry).await.unwrap().await }).unwrap().records[0].position
}

/// A session of so many messages and four more, in two files: a sync failed in between.
fn in_two_files(home: &Home, first: usize) -> Session {
    let disk = FaultyDisk::default();
    // Every append syncs the log, so the older file keeps what was there before the failure.
    let files = FileBackend::on(Arc::new(disk.clone()), home.root()).with_journal(None, 0);
    let store = Store::new(files, Options::default());
    let session = conversation(&store, "s", first);
    disk.set(Fault::Sync(1));
    for n in first + 1..=first + 4 {
        appended(&session, message(n));
    }
    store.close().unwrap();
    assert!(home.session_folder(session.id()).join("messages.1.jsonl").try_exists().unwrap());
    run(home.open().open(session.id())).unwrap()
}

#[test]
fn an_index_that_lost_its_end_does_not_bring_an_older_entry_of_the_same_id_back() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    let again = appended(&session, message(2));
    store.close().unwrap();
    let index = home.session_folder(session.id()).join("messages.ids");
    let whole = std::fs::read(&index).unwrap();
    let mut blank = whole.clone();
    blank[8 * again as usize..].fill(0);
    for (what, bytes) in [("cut", &whole[..8 * again as usize]), ("zeroed", &blank), ("gone", &[])] {
        std::fs::write(&index, bytes).unwrap();
        let session = run(home.open().open(session.id())).unwrap();
        let chain = run(session.messages_up_to(&entry_id("u2"))).unwrap();
        assert_eq!(chain.records.last().unwrap().position, again, "{what}");
    }
}

/// A session whose last record claims a position far behind all others.
fn stray(home: &Home) -> Session {
    let store = home.open();
    let session = conversation(&store, "s", 2);
    store.close().unwrap();
    let (position, kind, id) = (1 << 38, Kind::Entry, entry_id("stray"));
    let stamp = Stamp { position, parent: Some(2), depth: 3, kind, id, left: 0, unsettled: 0 };
    let stray = Line::new(&Entry::parse(r#"{"uuid":"stray"}"#).unwrap(), stamp);
    let whole = std::fs::read(home.log(session.id())).unwrap();
    std::fs::write(home.log(session.id()), [&whole, stray.as_bytes(), b"\n"].concat()).unwrap();
    run(home.open().open(session.id())).unwrap()
}

#[test]
fn a_stray_position_makes_no_index_that_fits_into_no_memory() {
    let home = Home::new();
    let session = stray(&home);
    assert_eq!(appended(&session, message(9)), (1 << 38) + 1);
    let index = std::fs::metadata(home.session_folder(session.id()).join("messages.ids")).unwrap();
    assert!(index.len() < 1 << 20, "{} bytes", index.len());
    let found = run(session.messages_up_to(&entry_id("stray"))).unwrap();
    assert_eq!(found.records.last().unwrap().position, 1 << 38);
}

#[test]
fn a_stray_position_does_not_make_an_export_without_end() {
    let home = Home::new();
    let session = stray(&home);
    let exported = run(home.open().export(session.id(), &mut std::io::sink()));
    assert!(matches!(exported, Err(Error::Damaged { .. })), "{exported:?}");
}

#[test]
fn every_flipped_byte_of_every_file_of_a_log_is_found() {
    let home = Home::new();
    let session = in_two_files(&home, 4);
    let newest = home.session_folder(session.id()).join("messages.1.jsonl");
    std::fs::remove_file(home.session_folder(session.id()).join("metadata.json")).unwrap();
    let whole = std::fs::read(&newest).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        std::fs::write(&newest, &flipped).unwrap();
        let store = home.open();
        assert!(!run(store.verify(session.id())).unwrap().is_ok(), "byte {at}");
    }
}

#[test]
fn a_segment_without_its_header_is_a_gap_and_a_repair_brings_its_records_back() {
    // Once, it was passed by in silence: the log ended before it, and a repair removed it.
    let home = Home::new();
    let session = in_two_files(&home, 4);
    let newest = home.session_folder(session.id()).join("messages.1.jsonl");
    std::fs::remove_file(home.session_folder(session.id()).join("metadata.json")).unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&newest, &bytes).unwrap();
    let store = home.open();
    assert!(!run(session.messages()).unwrap().gaps.is_empty(), "not just a shorter history");
    let done = run(store.repair(session.id(), Mode::Apply)).unwrap();
    assert_eq!(done.after.unwrap().problems, []);
    assert_eq!(chain_of(&session), "u1 u2 u3 u4 u5 u6 u7 u8");
    let backup = done.rewrites[0].1.backup.clone().unwrap();
    assert_eq!(std::fs::read(backup.join("messages.1.jsonl")).unwrap(), bytes, "as it was");
}

#[test]
fn a_log_goes_on_behind_a_segment_that_lost_all_its_records() {
    // Once, readers and writers disagreed where such a log ends, and every append waited for ever.
    let home = Home::new();
    let session = in_two_files(&home, 60);
    let cut = |name: &str, lines: usize| {
        let path = home.session_folder(session.id()).join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let kept: String = text.lines().take(lines).map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, kept).unwrap();
    };
    std::fs::remove_file(home.session_folder(session.id()).join("metadata.json")).unwrap();
    cut("messages.jsonl", 2);
    cut("messages.1.jsonl", 1);
    let store = home.open();
    let session = run(store.open(session.id())).unwrap();
    let ticket = run(session.append(message(99))).unwrap();
    let ack = ticket.wait_for(Duration::from_secs(10)).expect("not for ever").unwrap();
    assert_eq!(chain_of(&session), "u1 u99");
    let lost = run(store.repair(session.id(), Mode::Apply)).unwrap().rewrites[0].1.lost.clone();
    assert_eq!(lost, (2..ack.records[0].position).collect::<Vec<_>>());
}

#[test]
fn what_is_added_behind_an_older_copy_of_the_log_is_not_lost() {
    // Once, only the end was looked at, and the new record got a position that was taken.
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    for n in 1..=200 {
        let text = "x".repeat(400);
        appended(
            &session,
            Entry::parse(format!(r#"{{"uuid":"u{n}","role":"user","content":"{text}"}}"#)).unwrap(),
        );
    }
    store.close().unwrap();
    let whole = std::fs::read(home.log(session.id())).unwrap();
    for older in [200, 150, 70] {
        let copy: Vec<u8> =
            whole.split_inclusive(|byte| *byte == b'\n').take(older).flatten().copied().collect();
        std::fs::write(home.log(session.id()), [&whole[..], &copy].concat()).unwrap();
        let session = run(home.open().open(session.id())).unwrap();
        assert_eq!(appended(&session, message(999)), 201, "{older} lines");
        assert!(chain_of(&session).ends_with(" u999"), "{older} lines: {}", chain_of(&session));
        run(home.open().repair(session.id(), Mode::Apply)).unwrap();
        assert!(chain_of(&session).ends_with(" u200 u999"), "{older} lines: {}", chain_of(&session));
    }
}

#[test]
fn a_bundle_of_a_fork_without_what_it_inherits_is_refused() {
    // Once, it came in, and as many entries as its first record claimed were lost: exporting it again never ended.
    let home = Home::new();
    let parent = conversation(&home.open(), "s", 2);
    let fork = run(parent.fork(Default::default())).unwrap();
    let mut bundle = Vec::new();
    run(home.open().export(fork.id(), &mut bundle)).unwrap();
    let text = String::from_utf8(bundle).unwrap();
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains("inherited")).collect();
    let content: String = kept[..kept.len() - 1].iter().map(|line| format!("{line}\n")).collect();
    let hash = rethread_store::BlobId::of(content.as_bytes());
    let records = kept.len() - 2;
    let path = home.folder.path().join("bundle");
    let sealed = format!("{content}{{\"end\":true,\"records\":{records},\"sha256\":\"{hash}\"}}\n");
    std::fs::write(&path, sealed).unwrap();
    let refused = run(home.open().import_bundle(&path, Some(session_id("copy"))));
    assert!(matches!(refused, Err(Error::BadImport { .. })), "{refused:?}");
}

//! D8 to D11: what a failing disk does to the files.

use crate::faulty_disk::{Fault, FaultyDisk};
use crate::hanging::Hanging;
use crate::kit::{Home, chain_of, conversation, message, run, tree, until};
use rethread_store::backend::{Durability, LogName};
use rethread_store::{Entry, Event, FileBackend, Flaw, Options, Problem, Start, Store};
use std::sync::Arc;
use std::time::Duration;

use super::{done, store_on, u};

#[test]
fn d8_a_failed_sync_condemns_the_file_and_the_records_go_to_the_next_segment() {
    for failures in 1..=3 {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        let store = store_on(&disk, &home);
        let session = conversation(&store, "s", 3);
        let before = std::fs::read(home.log(session.id())).unwrap();
        disk.set(Fault::Sync(failures));
        run(async { session.append(message(4)).await.unwrap().await }).unwrap();
        run(async { session.append(message(5)).await.unwrap().await }).unwrap();

        let segment =
            std::fs::read_to_string(home.session_folder(session.id()).join("messages.1.jsonl")).unwrap();
        assert!(segment.starts_with(r#"{"segment":{"after":0,"end":"#), "{segment}");
        assert!(segment.contains("u4") && segment.contains("u5"));
        assert!(std::fs::read(home.log(session.id())).unwrap().starts_with(&before), "nothing is taken out");
        assert_eq!(chain_of(&session), u(1..=5));
        let again = home.open();
        assert_eq!(chain_of(&run(again.open(session.id())).unwrap()), u(1..=5));
        assert!(run(again.verify(session.id())).unwrap().is_ok());
        // Another process finds the new segment and goes on in it, and so does this one afterwards.
        let other = run(again.open(session.id())).unwrap();
        run(async { other.append(message(6)).await.unwrap().await }).unwrap();
        run(async { session.append(message(7)).await.unwrap().await }).unwrap();
        assert_eq!(chain_of(&session), u(1..=7));
    }
}

#[test]
fn d8_a_crash_while_the_next_segment_is_made_loses_nothing_acknowledged() {
    // Once, the new segment's header cut the old file short before the records were in.
    for calls in 0..12 {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        let store = store_on(&disk, &home);
        let session = conversation(&store, "s", 10);
        disk.set(Fault::SyncThenDie(calls));
        let last = run(session.append(message(11))).unwrap();
        let acknowledged = done(&disk, &last).is_some();
        let there = chain_of(&run(home.open().open(session.id())).unwrap());
        assert!(there == u(1..=11) || (there == u(1..=10) && !acknowledged), "{calls}: {there}");
    }
}

#[test]
fn d8_a_group_that_reaches_into_the_condemned_block_goes_to_the_next_segment_whole() {
    // Once, the last synced block began inside a group, and the half of it in the old file counted for nothing.
    for size in (0..4_200).step_by(300) {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        let store = store_on(&disk, &home);
        let session = conversation(&store, "s", 1);
        let filling = "x".repeat(size);
        let group = (2..=6).map(|n| Entry::parse(format!(r#"{{"uuid":"u{n}","x":"{filling}"}}"#)).unwrap());
        run(async { session.append_all(group.collect()).await.unwrap().await }).unwrap();
        disk.set(Fault::Sync(1));
        run(async { session.append(message(7)).await.unwrap().await }).unwrap();
        for opened in [&store, &home.open()] {
            assert_eq!(chain_of(&run(opened.open(session.id())).unwrap()), u(1..=7), "{size}");
        }
        assert!(run(home.open().verify(session.id())).unwrap().is_ok(), "{size}");
    }
}

#[test]
fn d8_what_a_dead_writer_had_not_synced_is_written_again_before_it_is_trusted() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let session = conversation(&store_on(&disk, &home), "s", 2);
    // It dies after its write and before its sync: the mark in the lock file stays.
    let options = Options { durability: Durability::Written, ..Options::default() };
    let dying = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), options);
    let handle = run(dying.open(session.id())).unwrap();
    run(async { handle.append(message(3)).await.unwrap().await }).unwrap();
    disk.set(Fault::DieBefore(0));

    let lock = || std::fs::read_to_string(home.session_folder(session.id()).join("lock")).unwrap();
    assert!(lock()[256..320].trim().starts_with("0 "), "marked: {}", &lock()[256..320]);
    let (disk, store) = (FaultyDisk::default(), home.open());
    let next = store_on(&disk, &home);
    let session = run(next.open(session.id())).unwrap();
    run(async { session.append(message(4)).await.unwrap().await }).unwrap();
    assert_eq!(disk.appends_and_syncs(), (1, 2), "one sync for what was found, one for what was added");
    next.close().unwrap();
    assert_eq!(lock()[256..320].trim(), "");
    assert_eq!(chain_of(&run(store.open(session.id())).unwrap()), u(1..=4));
}

#[test]
fn d9_a_full_disk_leaves_whole_records_and_writing_resumes_by_itself_in_order() {
    for room in [0, 1, 50, 200, 333, 700] {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        let store = store_on(&disk, &home);
        let session = conversation(&store, "s", 2);
        disk.set(Fault::Full(room));
        let tickets: Vec<_> = (3..=20).map(|n| run(session.append(message(n))).unwrap()).collect();
        until("the trouble is seen", || !store.health().is_ok());
        let text = std::fs::read_to_string(home.log(session.id())).unwrap();
        assert!(text.ends_with("\"}\n"), "room {room}: cut back to a whole record");
        assert!(run(home.open().verify(session.id())).unwrap().is_ok());
        disk.set(Fault::None);
        tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
        assert_eq!(chain_of(&session), u(1..=20), "room {room}");
    }
}

#[test]
fn d9_a_group_that_does_not_fit_leaves_nothing_of_itself() {
    for room in [60, 100, 150, 250] {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        let store = store_on(&disk, &home);
        let session = conversation(&store, "s", 1);
        let before = std::fs::read(home.log(session.id())).unwrap();
        disk.set(Fault::Full(room));
        let ticket = run(session.append_all((2..=5).map(message).collect())).unwrap();
        until("the trouble is seen", || !store.health().is_ok());
        assert_eq!(std::fs::read(home.log(session.id())).unwrap(), before, "room {room}");
        disk.set(Fault::None);
        ticket.wait().unwrap();
        assert_eq!(chain_of(&session), u(1..=5), "room {room}");
    }
}

#[test]
fn d9_a_short_write_keeps_its_whole_records_and_a_follower_sees_each_once() {
    // Once, the whole batch was cut back, and who had followed it saw records that were then given other places.
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let backend = Hanging::new(FileBackend::on(Arc::new(disk.clone()), home.root()));
    let store = Store::new(backend.clone(), Options::default());
    let session = conversation(&store, "s", 1);
    let follow =
        run(async { home.open().open(session.id()).await.unwrap().follow(Start::Beginning).await }).unwrap();
    backend.hang();
    let mut tickets = vec![run(session.append(message(2))).unwrap()];
    std::thread::sleep(Duration::from_millis(50));
    tickets.extend((3..=12).map(|n| run(session.append(message(n))).unwrap()));
    disk.set(Fault::Full(600));
    backend.go_on();
    until("the trouble is seen", || !store.health().is_ok());
    let there = run(run(home.open().open(session.id())).unwrap().messages()).unwrap().records.len();
    assert!((4..12).contains(&there), "{there} records: what fitted is in");
    disk.set(Fault::None);
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    let followed: Vec<_> = (1..=12).map(|_| follow.next_blocking().unwrap().unwrap().entry).collect();
    assert_eq!(followed, (1..=12).map(message).collect::<Vec<_>>());
    assert_eq!(chain_of(&session), u(1..=12));
}

#[test]
fn d10_every_flipped_missing_doubled_glued_or_foreign_line_is_found() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 5);
    store.close().unwrap();
    let path = home.log(session.id());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let flipped = lines[3].replace("message 3", "massage 3");
    let glued = format!("{}{}", &lines[2][..40], lines[3]);
    let cases: [(&str, Vec<&str>, Flaw, &str); 5] = [
        (
            "flipped",
            vec![lines[0], lines[1], lines[2], &flipped, lines[4], lines[5]],
            Flaw::Checksum,
            "u1 u2 u4 u5",
        ),
        ("missing", vec![lines[0], lines[1], lines[2], lines[4], lines[5]], Flaw::Missing, "u1 u2 u4 u5"),
        (
            "doubled",
            vec![lines[0], lines[1], lines[2], lines[2], lines[3], lines[4], lines[5]],
            Flaw::Misplaced,
            "u1 u2 u3 u4 u5",
        ),
        ("glued", vec![lines[0], lines[1], &glued, lines[4], lines[5]], Flaw::Checksum, "u1 u4 u5"),
        (
            "foreign",
            vec![lines[0], lines[1], r#"{"not":"ours"}"#, lines[2], lines[3], lines[4], lines[5]],
            Flaw::Unstamped,
            "u1 u2 u3 u4 u5",
        ),
    ];
    for (name, damaged, flaw, readable) in cases {
        std::fs::write(&path, join(&damaged)).unwrap();
        let store = home.open();
        let report = run(store.verify(session.id())).unwrap();
        let found = report.problems.iter().find_map(|problem| match problem {
            Problem::Damage(LogName::Messages, damage) => Some(damage.flaw),
            _ => None,
        });
        assert_eq!(found, Some(flaw), "{name}: {:?}", report.problems);
        assert_eq!(
            chain_of(&run(store.open(session.id())).unwrap()),
            readable,
            "{name}: both sides stay readable"
        );
    }
}

#[test]
fn d11_a_torn_tail_is_quarantined_reported_and_closed_off_but_never_cut() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    store.close().unwrap();
    let path = home.log(session.id());
    let whole = std::fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for bad in [&whole[last..whole.len() - 7], b"\0\0\0\0\0\0\0\0", b"{\"garbage\":", b"\xff\xfe\n", b"x"] {
        let torn = [&whole[..last], bad].concat();
        std::fs::write(&path, &torn).unwrap();
        let store = home.open();
        let events = store.events();
        let session = run(store.open(session.id())).unwrap();
        assert_eq!(chain_of(&session), "u1 u2");
        run(async { session.append(message(9)).await.unwrap().await }).unwrap();
        assert_eq!(chain_of(&session), "u1 u2 u9", "{bad:?}");
        assert!(std::fs::read(&path).unwrap().starts_with(&torn), "never truncated: readers hold no lock");
        assert!(
            matches!(events.try_recv(), Ok(Event::SetAside(_, damage)) if damage.length == bad.len() as u64)
        );
        let kept = tree(&home.root().join("quarantine"));
        assert!(kept.iter().any(|(_, content)| content == bad), "a copy is kept");
        assert!(!run(store.verify(session.id())).unwrap().is_ok(), "and verify still tells of it");
    }
}

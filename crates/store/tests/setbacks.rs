//! Things that went wrong once, each with its story.

use std::sync::Arc;
use std::time::Duration;

use rethread_store::backend::Durability;
use rethread_store::{Claim, Entry, Error, FileBackend, Limits, MemoryBackend, Mode, Options, Store};

use crate::faulty_disk::{Fault, FaultyDisk};
use crate::hanging::Hanging;
use crate::kit::{Home, chain_of, conversation, message, run, until};

fn store_on(disk: &FaultyDisk, home: &Home, options: Options) -> Store {
    Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), options)
}

#[test]
fn a_batch_that_was_written_and_not_synced_is_not_written_twice() {
    // A batch whose sync failed was composed anew when its second try failed too, although its lines were in.
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let store = store_on(&disk, &home, Options::default());
    let session = conversation(&store, "s", 3);
    disk.set(Fault::SyncThenReadOnly);
    let tickets: Vec<_> = (4..=9).map(|n| run(session.append(message(n))).unwrap()).collect();
    until("trouble", || !store.health().is_ok());
    std::thread::sleep(Duration::from_millis(100));
    disk.set(Fault::None);
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    for opened in [&store, &home.open()] {
        assert_eq!(chain_of(&run(opened.open(session.id())).unwrap()), "u1 u2 u3 u4 u5 u6 u7 u8 u9");
    }
    assert!(run(home.open().verify(session.id())).unwrap().is_ok());
}

#[test]
fn a_repair_takes_neither_foreign_lines_nor_halves_of_groups() {
    // It let the last line with a position win, and took members of groups that were never finished.
    let home = Home::new();
    let store = home.open();
    let other = conversation(&store, "other", 0);
    (100..104).for_each(|n| drop(run(async { other.append(message(n)).await.unwrap().await }).unwrap()));
    let session = conversation(&store, "s", 3);
    let before = std::fs::read_to_string(home.log(session.id())).unwrap();
    run(async { session.append_all((10..14).map(message).collect()).await.unwrap().await }).unwrap();
    store.close().unwrap();
    let foreign = std::fs::read_to_string(home.log(other.id())).unwrap();
    let foreign = foreign.lines().nth(2).unwrap();
    let group = std::fs::read_to_string(home.log(session.id())).unwrap()[before.len()..].to_owned();
    let half: Vec<&str> = group.lines().take(2).collect();
    std::fs::write(home.log(session.id()), format!("{before}{foreign}\n{}\n{}\n", half[0], half[1])).unwrap();
    std::fs::remove_file(home.session_folder(session.id()).join("metadata.json")).unwrap();
    let store = home.open();
    let done = run(store.repair(session.id(), Mode::Apply)).unwrap();
    assert!(done.after.unwrap().is_ok());
    assert_eq!(chain_of(&run(store.open(session.id())).unwrap()), "u1 u2 u3");
}

#[test]
fn an_old_line_doubled_at_the_end_does_not_turn_positions_back() {
    // The last line was believed without a look at its neighbour, and the next record was never seen.
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    for n in 1..=6 {
        let text = format!(r#"{{"uuid":"u{n}","x":"{}"}}"#, "x".repeat(50_000));
        run(async { session.append(Entry::parse(text).unwrap()).await.unwrap().await }).unwrap();
    }
    store.close().unwrap();
    let text = std::fs::read_to_string(home.log(session.id())).unwrap();
    let old = text.lines().nth(3).unwrap();
    std::fs::write(home.log(session.id()), format!("{text}{old}\n")).unwrap();
    let session = run(home.open().open(session.id())).unwrap();
    let ack = run(async { session.append(message(7)).await.unwrap().await }).unwrap();
    assert_eq!(ack.records[0].position, 7);
    assert_eq!(chain_of(&session), "u1 u2 u3 u4 u5 u6 u7");
}

#[test]
fn a_lease_that_could_not_be_fenced_holds_nobody_up() {
    // Its document stayed behind, and everybody had to wait for it to lapse.
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let store = store_on(&disk, &home, Options::default());
    let session = conversation(&store, "s", 1);
    disk.set(Fault::Full(0));
    let minute = Duration::from_secs(60);
    assert!(matches!(run(session.lease("agent", minute, Claim::IfFree)), Err(Error::NoSpace { .. })));
    disk.set(Fault::None);
    assert_eq!(run(session.driver()).unwrap(), None);
    run(session.lease("agent", minute, Claim::IfFree)).unwrap();
}

#[test]
fn who_waits_for_room_is_told_when_the_store_closes() {
    // Nobody woke them, and they waited for ever.
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let limits = Limits { operations: 1, ..Limits::default() };
    let options = Options { limits, close_within: Duration::from_millis(200), ..Options::default() };
    let store = store_on(&disk, &home, options);
    let session = conversation(&store, "s", 1);
    until("an empty queue", || store.health().queued == 0);
    disk.set(Fault::Full(0));
    let stuck = run(session.append(message(2))).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(session.append(message(3))).map(drop));
        std::thread::sleep(Duration::from_millis(50));
        assert!(store.close().is_err());
        until("an answer", || waiting.is_finished());
        assert!(matches!(waiting.join().unwrap(), Err(Error::Closed)));
    });
    assert!(stuck.wait().is_err());
}

#[test]
fn a_reader_does_not_hang_because_a_writer_does() {
    let backend = Hanging::new(MemoryBackend::default());
    let store = Store::new(backend.clone(), Options::default());
    let session = conversation(&store, "s", 2);
    backend.hang();
    let ticket = run(session.append(message(3))).unwrap();
    assert_eq!(chain_of(&session), "u1 u2");
    backend.go_on();
    ticket.wait().unwrap();
}

#[test]
fn what_was_only_written_is_synced_when_the_store_is_dropped() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let options = Options { durability: Durability::Written, ..Options::default() };
    let store = store_on(&disk, &home, options);
    drop(conversation(&store, "s", 2));
    drop(store);
    until("a sync", || disk.appends_and_syncs().1 > 0);
}

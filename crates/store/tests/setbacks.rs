//! Things that went wrong once, each with its story.

use std::sync::Arc;
use std::time::Duration;

use rethread_sqlite::SqliteBackend;
use rethread_store::backend::{Backend, Durability};
use rethread_store::{
    Claim, Entry, Error, FileBackend, Limits, MemoryBackend, Mode, NewSession, Options, Page, Session, Store,
};

use crate::faulty_disk::{Fault, FaultyDisk};
use crate::hanging::Hanging;
use crate::kit::{Home, chain_of, conversation, entry_id, message, run, session_id, until};

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
fn a_change_that_others_took_back_is_made_again() {
    // Whoever remembered that a session was archived already said so without a look.
    let home = Home::new();
    let ours = conversation(&home.open(), "s", 1);
    let theirs = run(home.open().open(ours.id())).unwrap();
    let archive = |session: &Session, archived| {
        run(session.update(move |metadata| metadata.archived = archived)).unwrap();
        run(run(home.open().open(session.id())).unwrap().metadata()).unwrap().archived
    };
    assert!(archive(&ours, true));
    assert!(!archive(&theirs, false));
    assert!(archive(&ours, true));
    assert!(archive(&theirs, true));
}

/// Pairs of stores on one place each.
fn pairs(home: &Home) -> [(&'static str, Store, Store); 3] {
    fn pair<B: Backend + 'static>(name: &'static str, open: impl Fn() -> B) -> (&'static str, Store, Store) {
        let store = || Store::new(open(), Options::default());
        (name, store(), store())
    }
    let memory = Arc::new(MemoryBackend::default());
    [
        pair("files", || FileBackend::new(home.root())),
        pair("SQLite", || SqliteBackend::new(home.folder.path().join("sessions.db"))),
        pair("memory", || memory.clone()),
    ]
}

#[test]
fn a_session_in_anothers_place_gets_nothing_that_was_meant_for_the_other() {
    // One that was purged and begun again, and is as long, got what a writer had for the one before: outside of files always.
    for count in [0, 3_usize] {
        for (place, ours, theirs) in pairs(&Home::new()) {
            let session = conversation(&ours, "s", count);
            run(theirs.purge(session.id())).unwrap();
            conversation(&theirs, "s", count);
            let append = || run(async { session.append(message(9)).await?.await });
            assert!(matches!(append(), Err(Error::Gone(_))), "{place} {count}");
            assert!(matches!(append(), Err(Error::Gone(_))), "{place} {count}");
            assert_eq!(
                run(run(theirs.open(session.id())).unwrap().metadata()).unwrap().entry_count,
                count as u64,
                "{place}"
            );
        }
    }
}

#[test]
fn what_was_in_a_session_before_is_not_said_to_be_in_the_one_in_its_place() {
    // An entry that the purged session had was left out, what came with it was added to the one that is as long, and all of
    // it was said to be there.
    for (place, ours, theirs) in pairs(&Home::new()) {
        let session = conversation(&ours, "s", 0);
        let add = |session: &Session, ids: [usize; 2]| {
            run(async { session.append_new(ids.map(message).to_vec()).await?.await })
        };
        add(&session, [1, 2]).unwrap();
        run(theirs.purge(session.id())).unwrap();
        add(&conversation(&theirs, "s", 0), [11, 12]).unwrap();
        assert!(matches!(add(&session, [2, 3]), Err(Error::Gone(_))), "{place}");
        let again = run(ours.open(session.id())).unwrap();
        assert_eq!(chain_of(&again), "u11 u12", "{place}");
        assert_eq!(add(&again, [2, 3]).unwrap().records.len(), 2, "{place}");
        assert_eq!(chain_of(&run(theirs.open(session.id())).unwrap()), "u11 u12 u2 u3", "{place}");
    }
}

#[test]
fn a_session_that_others_have_purged_can_be_begun_again_by_whoever_found_it_gone() {
    // What was remembered of the one that is gone stood in the way of the one to come, until the process ended.
    for begun_by_others in [false, true] {
        let home = Home::new();
        let (ours, theirs) = (home.open(), home.open());
        let gone = conversation(&ours, "s", 3);
        run(theirs.purge(gone.id())).unwrap();
        assert!(matches!(run(async { gone.append(message(9)).await?.await }), Err(Error::Gone(_))));
        if begun_by_others {
            conversation(&theirs, "s", 1);
        }
        let again = match run(ours.create(NewSession::default().id(gone.id().clone()))) {
            Err(Error::SessionExists(_)) if begun_by_others => run(ours.open(gone.id())).unwrap(),
            begun => begun.unwrap(),
        };
        again.append_and_wait(message(2)).unwrap();
        let expected = if begun_by_others { "u1 u2" } else { "u2" };
        assert_eq!(chain_of(&run(theirs.open(gone.id())).unwrap()), expected);
    }
}

#[test]
fn a_session_that_others_have_begun_again_is_gone_on_with_once_it_is_opened() {
    let home = Home::new();
    let (ours, theirs) = (home.open(), home.open());
    let gone = conversation(&ours, "s", 3);
    run(theirs.purge(gone.id())).unwrap();
    assert!(matches!(run(async { gone.append(message(9)).await?.await }), Err(Error::Gone(_))));
    conversation(&theirs, "s", 1);
    assert!(matches!(run(async { gone.append(message(9)).await?.await }), Err(Error::Gone(_))));
    let again = run(ours.open(gone.id())).unwrap();
    again.append_and_wait(message(2)).unwrap();
    assert_eq!(chain_of(&again), "u1 u2");
}

#[test]
fn a_place_in_a_session_that_is_gone_is_none_in_the_one_that_was_begun_since() {
    // Once somebody had opened the new one, what came from such a handle went in, under a parent of the old one.
    for used in [false, true] {
        let home = Home::new();
        let (ours, theirs) = (home.open(), home.open());
        let session = conversation(&ours, "s", 3);
        let at = run(session.at(&entry_id("u3"))).unwrap();
        if used {
            at.append_and_wait(message(4)).unwrap();
        }
        run(theirs.purge(session.id())).unwrap();
        conversation(&theirs, "s", if used { 9 } else { 1 });
        let append = || run(async { at.append(message(10)).await?.await });
        assert!(matches!(append(), Err(Error::Gone(_))), "{used}");
        let again = run(ours.open(session.id())).unwrap();
        assert!(matches!(append(), Err(Error::Gone(_))), "{used}");
        again.append_and_wait(message(20)).unwrap();
        assert!(matches!(append(), Err(Error::Gone(_))), "{used}");
        assert!(run(ours.verify(session.id())).unwrap().is_ok());
        assert!(chain_of(&again).ends_with(" u20") && !chain_of(&again).contains("u10"));
    }
}

#[test]
fn a_place_that_another_process_has_just_made_is_one() {
    let home = Home::new();
    let (ours, theirs) = (home.open(), home.open());
    let session = conversation(&ours, "s", 3);
    let other = run(theirs.open(session.id())).unwrap();
    for number in 10..40 {
        // What our writer remembers of the log ends before it.
        other.append_and_wait(message(number)).unwrap();
        let at = run(session.at(&entry_id(&format!("u{number}")))).unwrap();
        at.append_and_wait(message(100 + number)).unwrap();
    }
    assert!(run(ours.verify(session.id())).unwrap().is_ok());
}

#[test]
fn a_lock_file_that_was_deleted_costs_no_append() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    std::fs::remove_file(home.session_folder(session.id()).join("lock")).unwrap();
    session.append_and_wait(message(2)).unwrap();
    assert_eq!(chain_of(&session), "u1 u2");
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

// Whoever asked for the newest entries found the last record anew, and so read back all that was written with it: up to a
// mebibyte more, as it happened.
#[test]
fn the_newest_entries_are_read_without_the_rest_of_the_write_that_brought_them() {
    let read = |size: usize| {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        let store = home.open();
        let session = conversation(&store, "s", 3);
        // Those of one call are written at once.
        let entries = (0..size / 1_000)
            .map(|n| Entry::parse(format!(r#"{{"uuid":"b{n}","content":"{}"}}"#, "x".repeat(900))).unwrap());
        run(session.append_all(entries.collect::<Vec<_>>())).unwrap().wait().unwrap();
        store.close().unwrap();
        let store = store_on(&disk, &home, Options::default());
        let page = run(run(store.open(session.id())).unwrap().page(Page::Last(20))).unwrap();
        assert_eq!(page.records.len(), 20);
        disk.bytes_read()
    };
    let (short, long) = (read(60_000), read(2_000_000));
    assert!(long < short + 200_000, "{long} bytes instead of {short}");
}

// Each has looked and found nothing, and only one can be right about that by the time it writes.
#[test]
fn of_many_who_create_a_session_at_once_one_does_and_the_others_are_told() {
    let home = Home::new();
    for round in 0..40 {
        let (id, begin) = (session_id(&format!("s{round}")), std::sync::Barrier::new(6));
        let made: Vec<_> = std::thread::scope(|scope| {
            let create = || {
                let store = home.open();
                begin.wait();
                run(store.create(NewSession::default().id(id.clone()))).map(drop)
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "{made:?}");
        let told = |made: &&Result<(), Error>| matches!(made, Err(Error::SessionExists(_)));
        assert_eq!(made.iter().filter(told).count(), 5, "{made:?}");
    }
}

#[test]
fn a_session_whose_folder_goes_before_it_has_a_record_is_begun_all_the_same_and_not_said_to_be_purged() {
    // A clean-up with a clock that is ahead takes such a folder for one that was left.
    let home = Home::new();
    let (store, is_over) = (home.open(), std::sync::atomic::AtomicBool::new(false));
    let (taken, gone) = std::thread::scope(|scope| {
        let cleaning = scope.spawn(|| {
            let mut taken = 0_usize;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let folders = std::fs::read_dir(home.root().join("sessions")).into_iter().flatten().flatten();
                taken += folders.filter(|folder| std::fs::remove_dir(folder.path()).is_ok()).count();
            }
            taken
        });
        let create = |n: usize| run(store.create(NewSession::default().id(session_id(&format!("s{n}")))));
        let gone = (0..200).map(create).filter(|made| matches!(made, Err(Error::Gone(_)))).count();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        (cleaning.join().unwrap(), gone)
    });
    assert_eq!(gone, 0, "{taken} folders were taken away");
}

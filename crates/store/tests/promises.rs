//! What the store promises, D1 to D17: a test of each.

mod failing_disk;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rethread_store::backend::{Backend, Durability, Expect, From, Key, LogKey, LogName};
use rethread_store::{
    Entry, Error, Event, FileBackend, Filter, Fork, Limits, MemoryBackend, NewSession, Options, Problem,
    SessionId, Start, Store,
};

use crate::faulty_disk::{Fault, FaultyDisk};
use crate::hanging::Hanging;
use crate::kit::{Home, chain_of, conversation, entry_id, ids, message, run, session_id, tree, until};

fn store_on(disk: &FaultyDisk, home: &Home) -> Store {
    let options = Options { close_within: Duration::from_millis(500), ..Options::default() };
    Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), options)
}

fn u(range: std::ops::RangeInclusive<usize>) -> String {
    range.map(|n| format!("u{n}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn d1_an_append_returns_a_ticket_at_once_in_order_of_acceptance() {
    let backend = Hanging::new(MemoryBackend::default());
    let store = Store::new(backend.clone(), Options::default());
    let session = conversation(&store, "s", 0);
    backend.hang();
    let begun = Instant::now();
    let tickets: Vec<_> = (1..=100).map(|n| run(session.append(message(n))).unwrap()).collect();
    assert!(begun.elapsed() < Duration::from_secs(1), "accepting does not wait for the backend");
    assert!(tickets[0].wait_for(Duration::from_millis(20)).is_none(), "accepted is not yet written");
    backend.go_on();
    let positions: Vec<_> =
        tickets.into_iter().map(|ticket| ticket.wait().unwrap().records[0].position).collect();
    assert_eq!(positions, (1..=100).collect::<Vec<_>>());
}

#[test]
fn d2_a_synced_ticket_completes_only_after_a_sync_of_file_and_folders() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let store = store_on(&disk, &home);
    run(async {
        let session = store.create(NewSession::default()).await.unwrap();
        for n in 1..=3 {
            let (_, before) = disk.appends_and_syncs();
            let ack = session.append(message(n)).await.unwrap().await.unwrap();
            let (_, after) = disk.appends_and_syncs();
            assert_eq!((ack.durability, after), (Durability::Synced, before + 1));
        }
        // Once for the folder's own name, and once more for the file's in it.
        let folders = [home.root().join("sessions"), home.session_folder(session.id())];
        let syncs = |folder| disk.synced_folders().iter().filter(|synced| *synced == folder).count();
        assert_eq!(folders.each_ref().map(syncs), [2, 1]);
    });
}

#[test]
fn d3_after_a_crash_each_writer_has_a_prefix_with_all_its_durable_records() {
    // Die before and after every changing call of a run, reopen, and look.
    let total = {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        script(&disk, &home);
        disk.calls()
    };
    assert!(total > 40, "the script makes {total} calls");
    for fault in (0..total).flat_map(|call| [Fault::DieBefore(call), Fault::DieAfter(call)]) {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        disk.set(fault);
        let acknowledged = script(&disk, &home);
        // What a store does in the background differs by a call or two from run to run, so the last of
        // them may never come to pass; then the run was whole.
        assert!(disk.is_dead() || (acknowledged.len() == 9 && disk.calls() > 40), "{fault:?}");
        check_prefix(&home, &acknowledged, &format!("{fault:?}"));
    }
}

/// Creates, appends one after the other, changes metadata with one; returns what was acknowledged before death.
fn script(disk: &FaultyDisk, home: &Home) -> Vec<String> {
    let store = store_on(disk, home);
    let mut acknowledged = Vec::new();
    run(async {
        let Ok(session) = store.create(NewSession::default().id(session_id("s"))).await else { return };
        for n in [1, 2, 3, 4, 100, 5, 6, 7, 8] {
            let ticket = match n {
                100 => session.append_and_save(message(100), |metadata| metadata.turn_count = 4).await,
                _ => session.append(message(n)).await,
            };
            match ticket.ok().and_then(|ticket| done(disk, &ticket)) {
                Some(()) => acknowledged.push(format!("u{n}")),
                None => return,
            }
        }
    });
    acknowledged
}

/// Waits for an acknowledgement until the disk is dead, and a little longer.
fn done(disk: &FaultyDisk, ticket: &rethread_store::Ticket) -> Option<()> {
    loop {
        let dead = disk.is_dead();
        match ticket.wait_for(Duration::from_millis(20)) {
            Some(result) => return result.ok().map(drop),
            None if dead => return None,
            None => {}
        }
    }
}

fn check_prefix(home: &Home, acknowledged: &[String], story: &str) {
    let store = home.open();
    let Some(session) = run(store.load(&session_id("s"))).unwrap_or_else(|error| panic!("{story}: {error}"))
    else {
        assert!(acknowledged.is_empty(), "{story}: lost {acknowledged:?}");
        return;
    };
    let there = chain_of(&session);
    let all = "u1 u2 u3 u4 u100 u5 u6 u7 u8";
    assert!(all.starts_with(&there), "{story}: {there} is no prefix");
    assert!(
        there.starts_with(&acknowledged.join(" ")),
        "{story}: acknowledged {acknowledged:?}, found {there}"
    );
    if there.contains("u100") {
        assert_eq!(run(session.metadata()).unwrap().turn_count, 4, "{story}: half of an atomic step");
    }
    run(async { session.append(message(200)).await.unwrap().await }).unwrap();
    assert_eq!(chain_of(&session), format!("{there} u200").trim(), "{story}: it goes on");
    store.close().unwrap();
}

#[test]
fn d4_flush_is_a_barrier_and_close_is_bounded_and_idempotent() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let store = store_on(&disk, &home);
    let session = conversation(&store, "s", 1);
    drop(run(session.append(message(2))).unwrap());
    run(store.flush()).unwrap();
    assert_eq!(chain_of(&run(home.open().open(session.id())).unwrap()), "u1 u2");

    disk.set(Fault::Full(0));
    let ticket = run(session.append(message(3))).unwrap();
    assert!(matches!(run(store.flush()), Err(Error::NoSpace { .. })), "never claimed");
    let begun = Instant::now();
    let closed = store.close();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(matches!(closed, Err(Error::NoSpace { .. })), "{closed:?}");
    assert!(ticket.wait().is_err());
    assert_eq!(
        store.close().unwrap_err().to_string(),
        closed.unwrap_err().to_string(),
        "the same answer again"
    );
    assert!(matches!(run(session.append(message(4))), Err(Error::Closed)));
}

#[test]
fn d4_close_is_bounded_even_when_the_backend_hangs() {
    let backend = Hanging::new(MemoryBackend::default());
    let options = Options { close_within: Duration::from_millis(300), ..Options::default() };
    let store = Store::new(backend.clone(), options);
    let session = conversation(&store, "s", 1);
    backend.hang();
    let ticket = run(session.append(message(2))).unwrap();
    let begun = Instant::now();
    assert!(matches!(store.close(), Err(Error::Abandoned { records: 1, .. })));
    assert!(begun.elapsed() < Duration::from_secs(5));
    backend.go_on();
    ticket.wait().unwrap();
}

#[test]
fn d4_a_close_right_after_an_acknowledgement_abandons_nothing() {
    // Once, tickets were answered before the books were kept, and a close in between saw records that were done.
    for _ in 0..200 {
        let store = Store::new(MemoryBackend::default(), Options::default());
        let session = conversation(&store, "s", 3);
        store.close().unwrap();
        drop(session);
    }
}

#[test]
fn d4_the_threads_of_a_store_end_with_it() {
    let backend = Arc::new(MemoryBackend::default());
    let store = Store::on(backend.clone(), Options::default());
    drop(conversation(&store, "s", 3));
    drop(store);
    let begun = Instant::now();
    while Arc::strong_count(&backend) > 1 {
        assert!(begun.elapsed() < Duration::from_secs(10), "somebody still holds the backend");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn d5_queues_are_bounded_and_one_stuck_log_never_stalls_another() {
    let backend = Hanging::new(MemoryBackend::default());
    let limits = Limits { operations: 8, ..Limits::default() };
    let store = Store::new(backend.clone(), Options { limits, ..Options::default() });
    let stuck = conversation(&store, "stuck", 0);
    let free = conversation(&store, "free", 0);
    until("the queue is empty", || store.health().queued == 0);
    backend.hang_on("stuck");
    let tickets: Vec<_> = (1..=8).map(|n| stuck.try_append(message(n)).unwrap()).collect();
    assert!(matches!(stuck.try_append(message(9)), Err(Error::Full(_))));
    run(async { free.append(message(1)).await.unwrap().await }).unwrap();

    // The waiting call waits for room and goes through as soon as there is some.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(async { stuck.append(message(9)).await.unwrap().await }));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        backend.go_on();
        waiting.join().unwrap().unwrap();
    });
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    assert_eq!(chain_of(&stuck), u(1..=9));
}

#[test]
fn d6_what_waits_for_one_log_is_one_write_and_one_sync() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let backend = Hanging::new(FileBackend::on(Arc::new(disk.clone()), home.root()));
    let store = Store::new(backend.clone(), Options::default());
    let session = conversation(&store, "s", 0);
    backend.hang();
    let mut tickets = vec![run(session.append(message(1))).unwrap()];
    std::thread::sleep(Duration::from_millis(50));
    tickets.extend((2..=100).map(|n| run(session.append(message(n))).unwrap()));
    let before = disk.appends_and_syncs();
    backend.go_on();
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    let after = disk.appends_and_syncs();
    // The first was on its way alone, unless the machine was slow; the other 99 went together.
    let (writes, syncs) = (after.0 - before.0, after.1 - before.1);
    assert!((1..=2).contains(&writes) && writes == syncs, "{writes} writes, {syncs} syncs");
}

#[test]
fn d7_errors_are_typed_visible_until_recovered_and_announced() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let store = store_on(&disk, &home);
    let events = store.events();
    let session = conversation(&store, "s", 1);
    assert!(store.health().is_ok());

    disk.set(Fault::ReadOnly);
    let ticket = run(session.append(message(2))).unwrap();
    let Ok(Event::Failing(trouble)) = events.recv_blocking() else { panic!("no event") };
    assert!(matches!(trouble.error, Error::ReadOnly { .. }), "{}", trouble.error);
    let health = store.health();
    assert_eq!((health.failing.len(), health.queued), (1, 1));
    assert!(health.failing[0].since <= jiff::Timestamp::now());

    disk.set(Fault::None);
    ticket.wait().unwrap();
    assert!(matches!(events.recv_blocking(), Ok(Event::Recovered(_))));
    assert!(store.health().is_ok());
    assert_eq!(chain_of(&session), "u1 u2");
}

#[test]
fn d7_a_failure_whose_ticket_was_dropped_shows_in_health_and_in_the_next_flush() {
    let home = Home::new();
    let (store, other) = (home.open(), home.open());
    let session = conversation(&store, "s", 1);
    run(other.purge(session.id())).unwrap();
    drop(run(session.append(message(2))).unwrap());
    until("the queue is empty", || store.health().queued == 0);
    let begun = Instant::now();
    while store.health().lost.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::yield_now();
    }
    assert!(matches!(run(store.flush()), Err(Error::Gone(_))));
    assert!(store.health().is_ok(), "said once, it is not said again");
    store.close().unwrap();
}

#[test]
fn d2_what_a_reopened_log_had_not_synced_is_synced_before_it_is_claimed() {
    // Once, a log whose folder was closed for want of handles forgot that it was not synced.
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let options = Options { durability: Durability::Written, ..Options::default() };
    let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), options);
    let sessions = 120;
    for n in 0..sessions {
        conversation(&store, &format!("s{n}"), 1);
    }
    run(store.flush()).unwrap();
    assert!(disk.appends_and_syncs().1 >= sessions, "{} syncs", disk.appends_and_syncs().1);
}

#[test]
fn d12_a_reader_sees_whole_records_once_and_in_order_while_others_write() {
    let home = Home::new();
    let writing = home.open();
    let session = conversation(&writing, "s", 0);
    let reading = home.open();
    let follow =
        run(async { reading.open(session.id()).await.unwrap().follow(Start::Beginning).await }).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=500 {
                drop(run(session.append(message(n))).unwrap());
            }
            run(writing.flush()).unwrap();
        });
        for n in 1..=500 {
            let record = follow.next_blocking().unwrap().unwrap();
            assert_eq!(record.entry, message(n));
            // Every record acknowledged before a reader starts is seen by it.
        }
    });
    let acknowledged = run(async { session.append(message(501)).await.unwrap().await }).unwrap();
    assert_eq!(acknowledged.durability, Durability::Synced);
    assert_eq!(run(run(home.open().open(session.id())).unwrap().messages()).unwrap().records.len(), 501);
}

#[test]
fn d13_a_stopped_lock_holder_parks_only_its_own_log_and_is_named() {
    let home = Home::new();
    let store = home.open();
    let held = conversation(&store, "held", 1);
    let free = conversation(&store, "free", 1);
    let lock = std::fs::File::open(home.session_folder(held.id()).join("lock")).unwrap();
    lock.lock().unwrap();
    let ticket = run(held.append(message(2))).unwrap();
    run(async { free.append(message(2)).await.unwrap().await }).unwrap();
    let begun = Instant::now();
    while store.health().is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waiting for a lock is bounded");
        std::thread::sleep(Duration::from_millis(10));
    }
    let trouble = store.health().failing.remove(0);
    assert_eq!(trouble.log.session, *held.id());
    assert!(
        trouble.error.to_string().contains(&format!("process {}", std::process::id())),
        "{}",
        trouble.error
    );
    lock.unlock().unwrap();
    ticket.wait().unwrap();
    assert_eq!(chain_of(&held), "u1 u2");
}

#[test]
fn d13_the_lock_file_is_never_deleted_or_replaced() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    let inode = || {
        let lock = home.session_folder(session.id()).join("lock");
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(lock).expect("the lock file is there"))
    };
    let first = inode();
    for n in 2..=5 {
        let store = home.open();
        let session = run(store.open(session.id())).unwrap();
        run(async { session.append(message(n)).await.unwrap().await }).unwrap();
        run(store.delete(session.id())).unwrap();
        run(store.restore(session.id())).unwrap();
        store.close().unwrap();
        assert_eq!(inode(), first);
    }
}

#[test]
fn d13_a_lock_file_that_was_replaced_does_not_make_two_holders() {
    let home = Home::new();
    let (one, other) = (home.open(), home.open());
    let session = conversation(&one, "s", 1);
    let lock = home.session_folder(session.id()).join("lock");
    for n in 0..20 {
        std::fs::remove_file(&lock).unwrap();
        let again = run(other.open(session.id())).unwrap();
        // Equal lines at one position would be taken for each other where one of them had to be tried again.
        let both = [(&session, 10 + n), (&again, 50 + n)];
        let tickets = both.map(|(session, n)| run(session.append(message(n))).unwrap());
        tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    }
    assert_eq!(run(session.messages()).unwrap().records.len(), 41);
    let report = run(home.open().verify(session.id())).unwrap();
    assert!(
        !report.problems.iter().any(|problem| matches!(problem, Problem::Damage(..))),
        "{:?}",
        report.problems
    );
}

#[test]
fn d14_documents_are_replaced_whole_and_metadata_is_rebuilt_from_the_log() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    run(session.update(|metadata| {
        metadata.name = Some("kept".into());
        metadata.tags = vec!["a".into(), "b".into()];
        metadata.extra.insert("ours".into(), serde_json::json!({"x": 1}));
    }))
    .unwrap();
    let expected = run(session.metadata()).unwrap();
    store.close().unwrap();
    let path = home.session_folder(session.id()).join("metadata.json");
    for damage in [
        None,
        Some(&b""[..]),
        Some(b"{\"session_id\":"),
        Some(b"\0\0\0\0"),
        Some(b"{\"session_id\":\"other\"}"),
    ] {
        match damage {
            None => std::fs::remove_file(&path).unwrap(),
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
        }
        let store = home.open();
        assert_eq!(run(store.metadata(session.id())).unwrap(), expected, "{damage:?}");
        assert_eq!(run(store.list(&Filter::default())).unwrap().sessions, std::slice::from_ref(&expected));
    }

    // A document that cannot be written stays as it was.
    let disk = FaultyDisk::default();
    let backend = FileBackend::on(Arc::new(disk.clone()), home.root());
    let key = Key::store("thing").unwrap();
    run(backend.put(&key, b"old", Expect::Any)).unwrap();
    for call in 0..6 {
        let disk = FaultyDisk::default();
        disk.set(Fault::DieBefore(call));
        let dying = FileBackend::on(Arc::new(disk), home.root());
        let _ = run(dying.put(&key, b"new", Expect::Any));
        let there = run(backend.get(&key)).unwrap().unwrap().bytes;
        assert!(there == "old" || there == "new", "{there:?}");
    }
}

#[test]
fn d14_cached_metadata_of_another_log_is_not_believed() {
    let (home, other) = (Home::new(), Home::new());
    let session = conversation(&home.open(), "s", 2);
    let longer = other.open();
    conversation(&longer, "s", 7);
    // Whoever closes a store leaves its sessions' metadata cached.
    longer.close().unwrap();
    assert!(other.session_folder(session.id()).join("metadata.json").is_file());
    std::fs::copy(home.log(session.id()), other.log(session.id())).unwrap();
    let metadata = run(run(other.open().open(session.id())).unwrap().metadata()).unwrap();
    assert_eq!(metadata.message_count, 2);
}

#[test]
fn d15_create_fork_delete_and_purge_are_all_or_nothing() {
    type Step = fn(&Store) -> Result<(), Error>;
    let steps: [(&str, Step); 4] = [
        ("create", |store| run(store.create(NewSession::default().id(session_id("new")))).map(drop)),
        ("fork", |store| {
            let parent = run(store.open(&session_id("parent")))?;
            run(parent.fork(Fork::default().at(entry_id("u2")).id(session_id("new")))).map(drop)
        }),
        ("delete", |store| run(store.delete(&session_id("parent"))).map(drop)),
        ("purge", |store| run(store.purge(&session_id("parent"))).map(drop)),
    ];
    for (name, step) in steps {
        for call in 0..60 {
            let (home, disk) = (Home::new(), FaultyDisk::default());
            let first = home.open();
            let parent = conversation(&first, "parent", 3);
            run(parent.fork(Fork::default().id(session_id("fork")))).unwrap();
            first.close().unwrap();
            let dying = store_on(&disk, &home);
            disk.set(Fault::DieBefore(call));
            // A store that is dead never answers; the step is given some time.
            let (done, waited) = std::sync::mpsc::channel();
            let stepping = dying.clone();
            std::thread::spawn(move || done.send(step(&stepping).is_ok()));
            let succeeded = loop {
                // A slow machine is not a dead disk.
                match waited.recv_timeout(Duration::from_millis(150)) {
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) if !disk.is_dead() => {}
                    answer => break answer.unwrap_or(false),
                }
            };
            let story = format!("{name}, dead before call {call}, {succeeded}");
            check_all_or_nothing(&home, name, succeeded, &story);
            if !disk.is_dead() {
                assert!(succeeded, "{story}");
                break;
            }
        }
    }
}

fn check_all_or_nothing(home: &Home, name: &str, succeeded: bool, story: &str) {
    let store = home.open();
    run(store.gc(&Default::default())).unwrap_or_else(|error| panic!("{story}: gc: {error}"));
    let chain = |id: &str| -> Option<String> {
        let session: Option<rethread_store::Session> = run(store.load(&session_id(id))).ok().flatten();
        session.map(|session| chain_of(&session))
    };
    assert_eq!(chain("fork").as_deref(), Some("u1 u2 u3"), "{story}: a fork never loses its history");
    let (new, parent) = (chain("new"), chain("parent"));
    match name {
        "create" => assert!(new.as_deref().map_or(!succeeded, |new| new.is_empty()), "{story}: {new:?}"),
        "fork" => assert!(new.as_deref().map_or(!succeeded, |new| new == "u1 u2"), "{story}: {new:?}"),
        _ => assert!(
            parent.as_deref().is_none_or(|parent| parent == "u1 u2 u3" && !succeeded),
            "{story}: {parent:?}"
        ),
    }
    for id in run(store.ids()).unwrap() {
        let report = match run(store.verify(&id)) {
            Err(Error::SessionNotFound(_)) => continue, // a folder that never got its first record
            report => report.unwrap_or_else(|error| panic!("{story}: {error}")),
        };
        assert!(report.is_ok(), "{story}: {:?}", report.problems);
    }
}

#[test]
fn d16_a_crash_during_recovery_keeps_the_prefix_too() {
    // A first crash in the middle of a record, then a second one at every call of what comes next.
    for call in 0..40 {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        disk.set(Fault::DieAfter(30));
        let mut acknowledged = script(&disk, &home);
        let disk = FaultyDisk::default();
        disk.set(Fault::DieAfter(call));
        let store = store_on(&disk, &home);
        if let Ok(Some(session)) = run(store.load(&session_id("s"))) {
            let next = chain_of(&session).split_whitespace().count() + 1;
            // The script's own order: u100 comes fifth.
            let n = [1, 2, 3, 4, 100, 5, 6, 7, 8][next - 1];
            if n != 100
                && let Ok(ticket) = run(session.append(message(n)))
                && done(&disk, &ticket).is_some()
            {
                acknowledged = chain_of(&session).split_whitespace().map(str::to_owned).collect();
            }
        }
        check_prefix(&home, &acknowledged, &format!("recovery dead after call {call}"));
    }
}

#[test]
fn d17_no_text_of_a_caller_becomes_a_path_and_modes_are_private_whatever_the_umask() {
    for hostile in ["..", "../../etc/passwd", "/a/b", "", ".x", "a\0"] {
        assert!(hostile.parse::<SessionId>().is_err(), "{hostile:?}");
        assert!(
            Key::store(hostile).is_err() && Key::session(session_id("s"), hostile).is_err(),
            "{hostile:?}"
        );
    }
    let home = Home::new();
    let former = rustix::process::umask(rustix::fs::Mode::empty());
    let store = home.open();
    let session = conversation(&store, "s", 2);
    store.close().unwrap();
    rustix::process::umask(former);
    let mut paths = vec![home.root(), home.root().join("sessions"), home.session_folder(session.id())];
    paths.extend(tree(&home.root()).into_iter().map(|(path, _)| path));
    for path in paths {
        let metadata = std::fs::metadata(&path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o7777, expected, "{}", path.display());
    }
}

#[test]
fn written_mode_is_synced_within_a_second_and_by_flush() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let options = Options { durability: Durability::Written, ..Options::default() };
    let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), options);
    let session = conversation(&store, "s", 1);
    run(store.flush()).unwrap();
    let flushed = disk.appends_and_syncs().1;
    assert!(flushed >= 1);
    let ack = run(async { session.append(message(2)).await.unwrap().await }).unwrap();
    assert_eq!(ack.durability, Durability::Written);
    let begun = Instant::now();
    while disk.appends_and_syncs().1 <= flushed {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_entry_that_is_too_large_is_refused_and_the_rest_goes_on() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    let huge = Entry::parse(format!(r#"{{"x":"{}"}}"#, "x".repeat(64 << 20))).unwrap();
    assert!(matches!(run(session.append(huge)), Err(Error::TooLarge { .. })));
    run(async { session.append(message(2)).await.unwrap().await }).unwrap();
    assert_eq!(chain_of(&session), "u1 u2");
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    assert_eq!(run(session.store().backend().read(&log, From::Last, 1)).unwrap().next, 3);
    assert_eq!(ids(&run(session.messages_up_to(&entry_id("u1"))).unwrap()), "u1");
}

//! The room that a log takes ahead of its end.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rethread_store::backend::Durability;
use rethread_store::{Disk, Entry, FileBackend, Open, Options, RealDisk, Session, Store};

use crate::kit::{Home, chain_of, conversation, message, run};

fn large(id: &str) -> Entry {
    Entry::parse(format!(r#"{{"uuid":"{id}","content":"{}"}}"#, "x".repeat(1 << 20))).unwrap()
}

/// Returns a session whose log has just been given room: so much was written to it that is not synced.
fn busy(home: &Home, id: &str) -> (Store, Session) {
    let options = Options { durability: Durability::Written, ..Options::default() };
    let store = Store::new(FileBackend::new(home.root()), options);
    let session = conversation(&store, id, 0);
    for entry in [large("a"), large("b"), message(1)] {
        run(async { session.append(entry).await.unwrap().await }).unwrap();
    }
    (store, session)
}

/// Returns how much more room a file takes than its bytes do.
fn spare(path: &Path) -> u64 {
    let metadata = path.metadata().unwrap();
    (metadata.blocks() * 512).saturating_sub(metadata.len())
}

#[test]
fn room_that_a_log_took_ahead_of_its_end_is_given_back_with_the_next_sync() {
    let home = Home::new();
    // On a machine that stood still it was synced already.
    let taken = (0..9).find_map(|n| {
        let (store, session) = busy(&home, &format!("s{n}"));
        (spare(&home.log(session.id())) > 512 << 10).then_some((store, session))
    });
    let (store, session) = taken.expect("one of them has room");
    let before = std::fs::read(home.log(session.id())).unwrap();
    run(store.flush()).unwrap();
    assert!(spare(&home.log(session.id())) < 64 << 10);
    assert_eq!(std::fs::read(home.log(session.id())).unwrap(), before);
    assert_eq!(chain_of(&run(home.open().open(session.id())).unwrap()), "a b u1");
}

#[test]
fn what_others_append_where_a_log_has_room_stays_when_that_is_given_back() {
    let home = Home::new();
    let (store, session) = busy(&home, "s");
    let others = run(home.open().open(session.id())).unwrap();
    for n in 2..6 {
        run(async { others.append(message(n)).await.unwrap().await }).unwrap();
    }
    run(store.flush()).unwrap();
    drop((store, others));
    assert_eq!(chain_of(&run(home.open().open(session.id())).unwrap()), "a b u1 u2 u3 u4 u5");
    assert!(run(home.open().verify(session.id())).unwrap().is_ok());
}

/// A store keeps some sessions open, and closes them all when there are more: then nobody knew of the room any more.
#[test]
fn a_log_that_is_closed_before_it_is_synced_gives_its_room_back() {
    let home = Home::new();
    let (store, session) = busy(&home, "s");
    (0..100).for_each(|n| drop(conversation(&store, &format!("other-{n}"), 1)));
    run(store.flush()).unwrap();
    assert!(spare(&home.log(session.id())) < 64 << 10);
}

/// Whoever opened it knew of no room but what it took itself: that of a process that died was lost until a repair.
#[test]
fn room_that_a_process_that_died_had_taken_is_given_back_by_whoever_appends_next() {
    let home = Home::new();
    // On a machine that stood still it was synced already, and nothing says that somebody died.
    let spares = (0..9).map(|n| {
        let (store, session) = busy(&home, &format!("s{n}"));
        let left = Home::new();
        let folder = left.session_folder(session.id());
        std::fs::create_dir_all(&folder).unwrap();
        for file in std::fs::read_dir(home.session_folder(session.id())).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
        drop(store);
        let log = left.log(session.id());
        let length = log.metadata().unwrap().len();
        RealDisk.open(&log, Open::Append).unwrap().reserve(length, 8 << 20).unwrap();
        assert!(spare(&log) > 4 << 20);
        run(left.open().open(session.id())).unwrap().append_and_wait(message(2)).unwrap();
        spare(&log)
    });
    assert!(spares.into_iter().any(|spare| spare < 64 << 10));
}

#[test]
fn no_room_is_taken_that_others_might_miss() {
    let home = Home::new();
    let file = RealDisk.open(&home.folder.path().join("log"), Open::Append).unwrap();
    let error = file.reserve(0, 1 << 57).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(spare(&home.folder.path().join("log")), 0);
}

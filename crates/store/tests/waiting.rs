//! Callers that wait for each entry on their own thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rethread_store::backend::Durability;
use rethread_store::{FileBackend, Options, Store};

use crate::faulty_disk::{Fault, FaultyDisk};
use crate::kit::{Home, chain_of, conversation, message, run};

#[test]
fn an_entry_that_was_waited_for_is_synced_and_in_its_place() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 1);

    let ack = session.append_and_wait(message(2)).unwrap();

    assert_eq!((ack.durability, ack.records[0].position), (Durability::Synced, 2));
    assert_eq!(chain_of(&run(home.open().open(session.id())).unwrap()), "u1 u2");
}

#[test]
fn callers_that_wait_and_callers_with_tickets_all_get_in_each_in_its_own_order() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    let waiting = |first: usize| {
        let session = session.clone();
        move || (first..first + 40).for_each(|n| drop(session.append_and_wait(message(n)).unwrap()))
    };
    let awaiting = || {
        (1..=40).for_each(|n| drop(run(async { session.append(message(n)).await.unwrap().await }).unwrap()))
    };

    std::thread::scope(|scope| {
        scope.spawn(waiting(1001));
        scope.spawn(waiting(2001));
        awaiting();
    });

    let chain = chain_of(&session);
    let of = |first: usize| {
        let ids = chain.split(' ').filter_map(|id| id[1..].parse().ok());
        ids.filter(|n: &usize| (first..first + 40).contains(n)).collect::<Vec<_>>()
    };
    for first in [1, 1001, 2001] {
        assert_eq!(of(first), (first..first + 40).collect::<Vec<_>>());
    }
    assert!(run(store.verify(session.id())).unwrap().is_ok());
}

#[test]
fn what_was_only_written_by_a_waiting_caller_is_synced_soon_by_the_store() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let options = Options { durability: Durability::Written, ..Options::default() };
    let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), options);
    let session = conversation(&store, "s", 1);
    let (_, before) = disk.appends_and_syncs();

    session.append_and_wait(message(2)).unwrap();

    let begun = Instant::now();
    while disk.appends_and_syncs().1 == before {
        assert!(begun.elapsed() < Duration::from_secs(30), "nobody minds the clock");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_caller_that_waits_on_a_full_disk_gets_its_answer_when_there_is_room() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), Options::default());
    let session = conversation(&store, "s", 1);
    disk.set(Fault::Full(10));

    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| session.append_and_wait(message(2)));
        while store.health().failing.is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        disk.set(Fault::None);
        assert_eq!(waiting.join().unwrap().unwrap().records[0].position, 2);
    });
    assert_eq!(chain_of(&session), "u1 u2");
}

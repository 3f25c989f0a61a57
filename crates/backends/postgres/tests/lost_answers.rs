//! Answers that never come, and requests that come too late.

use std::time::Duration;

use pollster::block_on;
use rethread_postgres::{PostgresBackend, Settings};
use rethread_store::Error;
use rethread_store::backend::{Append, Backend as _, Durability, Expect, From, Key, LogKey, LogName, Put};

use crate::kit::{entry, ids, line, messages, on, server, store_on};
use crate::proxy::Proxy;

#[test]
fn an_append_whose_answer_is_lost_is_found_again_and_not_doubled() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let backend = on(&proxy.url(&database));
    let log = messages("s");
    let append =
        |at, id: &str| block_on(backend.append(&log, at, &[line(at, id)], Durability::Synced)).unwrap();
    let done = Append::Done { durability: Durability::Synced, found: Vec::new() };
    // The statement is known to the connection by then, so that the next answer is that of an append.
    assert_eq!([append(0, "a"), append(1, "b")], [done.clone(), done.clone()]);
    for at in 2..12 {
        proxy.lose_after(0);
        assert_eq!(append(at, &format!("c{at}")), done);
        assert!(proxy.lose_nothing());
        assert_eq!(append(at, &format!("d{at}")), Append::Moved { next: at + 1 }, "another's is not ours");
    }
    let chunk = block_on(on(&server.url(&database)).read(&log, From::Position(0), 1 << 20)).unwrap();
    let found: Vec<_> = chunk.lines.iter().map(|line| line.stamp().id.to_string()).collect();
    let expected = (2..12).map(|at| format!("c{at}"));
    assert_eq!(found, ["a".to_owned(), "b".to_owned()].into_iter().chain(expected).collect::<Vec<_>>());
}

#[test]
fn an_append_that_looks_like_anothers_is_not_taken_for_done_when_its_answer_is_lost() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let (backend, other) = (on(&proxy.url(&database)), on(&server.url(&database)));
    let log = messages("s");
    let append = |backend: &PostgresBackend, at, id: &str| {
        block_on(backend.append(&log, at, &[line(at, id)], Durability::Synced)).unwrap()
    };
    let done = Append::Done { durability: Durability::Synced, found: Vec::new() };
    // The statement is known to the connection by then, so that the next answer is that of an append.
    assert_eq!([append(&backend, 0, "a"), append(&backend, 1, "b")], [done.clone(), done.clone()]);
    for at in 2..6 {
        assert_eq!(append(&other, at, "same"), done);
        proxy.lose_after(0);
        assert_eq!(append(&backend, at, "same"), Append::Moved { next: at + 1 });
        assert!(proxy.lose_nothing());
    }
}

#[test]
fn an_append_is_known_again_however_often_it_was_tried_and_whoever_has_looked_since() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let (one, other) = (on(&proxy.url(&database)), on(&server.url(&database)));
    // Of this one no hints are sent, whose answers could be lost in place of ours.
    let log = LogKey::new("s".parse().unwrap(), LogName::Transcript);
    let append = |backend: &PostgresBackend, at, id: &str| {
        block_on(backend.append(&log, at, &[line(at, id)], Durability::Synced))
    };
    let done = Append::Done { durability: Durability::Synced, found: Vec::new() };
    assert_eq!([append(&one, 0, "a").unwrap(), append(&one, 1, "b").unwrap()], [done.clone(), done.clone()]);
    // The first answer is lost, and nobody can ask again: not at once, nor later.
    proxy.lose_after(0);
    proxy.leave_waiting();
    let giving_up = || {
        while proxy.waiting() == 0 {
            std::thread::sleep(Duration::from_millis(5))
        }
    };
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let ours = scope.spawn(|| append(&one, 2, "same"));
            giving_up();
            // At once: whoever came in between would get through.
            proxy.leave_waiting();
            let told = ours.join().unwrap();
            assert!(told.as_ref().is_err_and(Error::is_passing), "{told:?}");
        });
    }
    assert_eq!(append(&other, 2, "same").unwrap(), Append::Moved { next: 3 });
    assert_eq!(append(&other, 3, "same").unwrap(), done);
    proxy.turn_away();
    assert_eq!(block_on(one.read(&log, From::Last, 1)).unwrap().next, 4);
    assert_eq!(append(&one, 2, "same").unwrap(), done, "ours, beneath another's");
    assert_eq!(
        append(&one, 2, "same").unwrap(),
        Append::Moved { next: 4 },
        "it was answered: this is another"
    );
    assert_eq!(
        append(&one, 3, "same").unwrap(),
        Append::Moved { next: 4 },
        "the same as another's is not ours"
    );
}

#[test]
fn a_document_whose_answer_is_lost_is_ours_and_not_in_conflict_with_us() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let backend = on(&proxy.url(&database));
    let key = Key::session("s".parse().unwrap(), "lease").unwrap();
    let put = |expect, bytes: &[u8]| match block_on(backend.put(&key, bytes, expect)).unwrap() {
        Put::Done(version) => Expect::Version(version),
        conflict => panic!("{conflict:?}"),
    };
    let first = put(Expect::Absent, b"0");
    let mut version = put(first, b"1");
    for round in 2..6_u8 {
        proxy.lose_after(0);
        version = put(version, &[round]);
        assert!(proxy.lose_nothing());
        assert_eq!(block_on(backend.get(&key)).unwrap().unwrap().bytes[..], [round]);
    }
}

#[test]
fn a_request_that_comes_after_its_sender_gave_up_is_not_carried_out() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let mut settings = Settings::parse(&proxy.url(&database)).unwrap();
    settings.patience = Duration::from_millis(700);
    let backend = PostgresBackend::new(settings).unwrap();
    let log = messages("s");
    let append = |at, id: &str| block_on(backend.append(&log, at, &[line(at, id)], Durability::Synced));
    // The statement is known to the connection by then, so that what is kept back is an append.
    append(0, "a").and_then(|_| append(1, "b")).unwrap();
    proxy.keep_back();
    let late = append(2, "late");
    assert!(late.is_err_and(|error| error.is_passing()));
    // Whoever looks now is told the truth for good: it is not there, and will not come.
    assert_eq!(block_on(backend.read(&log, From::Last, 1)).unwrap().next, 2);
    proxy.let_through();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(block_on(backend.read(&log, From::Last, 1)).unwrap().next, 2);
}

#[test]
fn wherever_answers_are_lost_every_entry_is_there_once_and_in_order() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let (store, session) = store_on(&proxy.url(&database));
    let mut expected = Vec::new();
    for round in 0..24 {
        // Within an append, within a connection that is made anew, within what makes sure.
        proxy.lose_after(round % 12);
        let ids: Vec<_> = (0..4).map(|number| format!("r{round}.{number}")).collect();
        let tickets: Vec<_> = ids.iter().map(|id| block_on(session.append(entry(id))).unwrap()).collect();
        for ticket in tickets {
            ticket.wait().unwrap();
        }
        expected.extend(ids);
    }
    proxy.lose_nothing();
    assert_eq!(ids(&session), expected);
    store.close().unwrap();
}

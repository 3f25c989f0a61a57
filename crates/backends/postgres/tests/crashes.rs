//! A server that is killed while it works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pollster::block_on;
use rethread_store::backend::{Backend as _, From};
use rethread_store::{Options, Session, Store};
use rethread_testkit::Postgres;

use crate::kit::{entry, ids, installed, messages, on, store_on};
use crate::proxy::Proxy;

const APPENDERS: usize = 4;
const KILLS: usize = 4;

#[test]
fn a_server_that_is_killed_loses_nothing_it_acknowledged_and_doubles_nothing() {
    let Some(server) = installed(Postgres::start(&[], &[])) else { return };
    let url = server.fresh();
    let (store, session) = store_on(&url);
    let over = AtomicBool::new(false);
    let appended: Vec<Vec<String>> = thread::scope(|scope| {
        let appenders: Vec<_> = (0..APPENDERS)
            .map(|appender| {
                let (session, over) = (&session, &over);
                scope.spawn(move || {
                    let mut appended = Vec::new();
                    while !over.load(Ordering::SeqCst) {
                        let id = format!("{appender}.{}", appended.len());
                        // It is tried again and again while the server is down.
                        block_on(session.append(entry(&id))).unwrap().wait().unwrap();
                        appended.push(id);
                    }
                    appended
                })
            })
            .collect();
        for kill in 0..KILLS {
            thread::sleep(Duration::from_millis(300 + 37 * kill as u64));
            server.kill();
            server.restart();
        }
        thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::SeqCst);
        appenders.into_iter().map(|appender| appender.join().unwrap()).collect()
    });
    store.close().unwrap();
    let store = Store::new(on(&url), Options::default());
    let session = block_on(store.open(&"s".parse().unwrap())).unwrap();
    let there = ids(&session);
    for (appender, expected) in appended.iter().enumerate() {
        let own = there.iter().filter(|id| id.starts_with(&format!("{appender}."))).cloned();
        assert_eq!(own.collect::<Vec<_>>(), *expected, "all of its own, once, in order");
    }
    assert_eq!(there.len(), appended.iter().map(Vec::len).sum::<usize>());
    assert!(block_on(store.verify(session.id())).unwrap().is_ok());
}

#[test]
fn equal_lines_of_two_writers_are_both_there_once_whoever_loses_an_answer_with_the_server() {
    let Some(server) = installed(Postgres::start(&[], &[])) else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let (one, ours) = store_on(&proxy.url(&database));
    let other = Store::new(on(&server.url(&database)), Options::default());
    let say = |session: &Session, id: &str| block_on(session.append(entry(id))).unwrap().wait().unwrap();
    let mut expected = Vec::new();
    for is_written in [false, true] {
        say(&ours, "a");
        say(&ours, "b");
        // Whoever opens it now goes on where we would: what both say next is the same to the byte.
        let theirs = block_on(other.open(ours.id())).unwrap();
        // The hints of what was said are on their way before the next answer is that of an append.
        thread::sleep(Duration::from_millis(200));
        proxy.leave_waiting();
        if is_written {
            proxy.lose_after(0);
        } else {
            proxy.keep_back();
        }
        let ticket = block_on(ours.append(entry("same"))).unwrap();
        if is_written {
            let written = "SELECT count(*) FROM rethread.lines WHERE position = 7";
            wait_for(&server, &database, written);
        }
        server.kill();
        server.restart();
        say(&theirs, "same");
        proxy.lose_nothing();
        proxy.let_through();
        proxy.turn_away();
        ticket.wait().unwrap();
        expected.extend(["a", "b", "same", "same"]);
        let lines = block_on(on(&server.url(&database)).read(&messages("s"), From::Position(1), 1 << 20))
            .unwrap()
            .lines;
        let there: Vec<_> = lines.iter().map(|line| line.stamp().id.to_string()).collect();
        assert_eq!(there, expected, "written: {is_written}");
    }
    one.close().unwrap();
}

/// Holds the place that the next record of a log will take, without ever filling it: whoever adds one waits there, in the
/// middle of a transaction that has written something.
const HOLD: &str = "BEGIN;
    INSERT INTO rethread.lines (log, position, ends, bytes)
        SELECT id, next, 0, '' FROM rethread.logs WHERE session = 's' AND name = 'messages';
    SELECT pg_sleep(600);
    ROLLBACK";
/// Those who wait for another's transaction, with one of their own that has changed something.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND backend_xid IS NOT NULL";

#[test]
fn a_server_that_is_killed_within_a_transaction_that_has_written_leaves_nothing_of_it_and_it_is_made_again() {
    let Some(server) = installed(Postgres::start(&[], &[])) else { return };
    let database = server.database();
    let (store, session) = store_on(&server.url(&database));
    let mut expected = Vec::new();
    for round in 0..3 {
        let id = format!("u{round}");
        thread::scope(|scope| {
            let holding = scope.spawn(|| server.try_sql(&database, HOLD));
            let held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
            wait_for(&server, &database, held);
            let appending = scope.spawn(|| block_on(session.append(entry(&id))).unwrap().wait().unwrap());
            wait_for(&server, &database, WAITING);
            server.kill();
            holding.join().unwrap().expect_err("the server was killed under it");
            server.restart();
            appending.join().unwrap();
        });
        expected.push(id);
        let again = Store::new(on(&server.url(&database)), Options::default());
        assert_eq!(ids(&block_on(again.open(session.id())).unwrap()), expected);
        assert!(block_on(again.verify(session.id())).unwrap().is_ok());
    }
    store.close().unwrap();
}

/// Waits until a count is one.
fn wait_for(server: &Postgres, database: &str, count: &str) {
    let begun = Instant::now();
    while server.sql(database, count) != "1" {
        assert!(begun.elapsed() < Duration::from_secs(60), "still not: {count}");
        thread::sleep(Duration::from_millis(20));
    }
}

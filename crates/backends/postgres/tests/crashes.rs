//! A server that is killed while it works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pollster::block_on;
use rethread_store::{Options, Store};
use rethread_testkit::Postgres;

use crate::kit::{entry, ids, installed, on, store_on};

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

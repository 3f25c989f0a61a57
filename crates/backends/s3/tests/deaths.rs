//! Processes that die in the middle of what they do to a session.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use pollster::block_on;
use rethread_store::{Fork, NewSession, Session, Store};
use rethread_testkit::{Mishap, S3};

use crate::kit::{Place, entry, ids};

/// What is done to the session, by a process that dies meanwhile; what is its due after that, by another.
type Work = fn(&Store, &Session) -> bool;

/// How many requests are let through before a process dies: more than anything here takes.
const MOST: usize = 12;

/// Returns a session with entries, some of them in a part, and a fork that inherits them.
fn begin(place: &Place) -> Vec<String> {
    let (store, session) = place.session();
    for number in 0..40 {
        let text = "x".repeat(9_000);
        let entry = format!(r#"{{"uuid":"u{number}","text":"{text}"}}"#);
        session.append_and_wait(rethread_store::Entry::parse(entry).unwrap()).unwrap();
    }
    block_on(session.fork(Fork::default().id("f".parse().unwrap()))).unwrap();
    store.close().unwrap();
    assert!(!place.names("parts/").is_empty());
    ids(&session)
}

/// Has a process begin some work, which hears of nothing any more after so many changes. Returns whether it was done.
fn die_after(place: &mut Place, changes: usize, mishap: Mishap, work: Work) -> bool {
    let way = S3::shared().unwrap().way();
    place.patience = Duration::from_millis(300);
    let store = Store::new(place.backend_by(&way), rethread_store::Options::default());
    place.patience = Duration::from_secs(30);
    // So impatient, it may be too early for a server that others keep busy. The place is known to be one before it counts.
    let open = |_| block_on(store.open(&"s".parse().unwrap())).ok();
    let session = (0..50).find_map(open).unwrap();
    let list = |_| block_on(store.list(&rethread_store::Filter::default())).ok();
    (0..50).find_map(list).unwrap();
    way.meet(
        (0..changes).map(|_| None).chain([Some(mishap)]).chain(vec![Some(Mishap::LoseRequest); 100_000]),
    );
    let (tell, told) = channel();
    // It goes on trying for as long as this process lives, and gets nowhere.
    thread::spawn(move || {
        // Nobody may be listening any more.
        let _ = tell.send(work(&store, &session));
    });
    let done = told.recv_timeout(Duration::from_secs(1)).unwrap_or(false);
    std::mem::forget(way);
    done
}

#[test]
fn a_purge_that_dies_at_any_request_is_finished_by_the_next_one() {
    for mishap in [Mishap::LoseRequest, Mishap::LoseAnswer] {
        for changes in 0..MOST {
            let Some(mut place) = Place::new() else { return };
            let said = begin(&place);
            let done = die_after(&mut place, changes, mishap, |store, session| {
                block_on(store.purge(session.id())).is_ok_and(|purged| purged)
            });
            let next = place.store();
            let what = format!("{changes} {mishap:?} {done}");
            // Nothing of it, or all of it: what is going to be removed is not shown as if it were whole.
            if let Ok(session) = block_on(next.open(&"s".parse().unwrap())) {
                assert!(!done, "{what}");
                assert_eq!(ids(&session), said, "{what}");
            }
            block_on(next.purge(&"s".parse().unwrap())).unwrap();
            assert_eq!(ids(&block_on(next.open(&"f".parse().unwrap())).unwrap()), said, "{what}");
            block_on(next.backend().sweep()).unwrap();
            let left = [place.names("sessions/"), place.names("parts/")].concat();
            assert!(left.iter().all(|name| !name.contains("/s!")), "{what}: {left:?}");
            let again = block_on(next.create(NewSession::default().id("s".parse().unwrap()))).unwrap();
            again.append_and_wait(entry("new")).unwrap();
            assert_eq!(ids(&again), ["new"], "{what}");
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_fork_that_dies_at_any_request_is_there_wholly_or_not_at_all() {
    for mishap in [Mishap::LoseRequest, Mishap::LoseAnswer] {
        for changes in 0..MOST {
            let Some(mut place) = Place::new() else { return };
            let said = begin(&place);
            let done = die_after(&mut place, changes, mishap, |_, session| {
                let fork = Fork::default().id("g".parse().unwrap());
                block_on(session.fork(fork)).is_ok()
            });
            let next = place.store();
            match block_on(next.open(&"g".parse().unwrap())) {
                Ok(fork) => assert_eq!(ids(&fork), said, "{changes} {mishap:?}"),
                Err(_) => {
                    assert!(!done, "{changes} {mishap:?}");
                    let session = block_on(next.open(&"s".parse().unwrap())).unwrap();
                    let fork = Fork::default().id("g".parse().unwrap());
                    assert_eq!(ids(&block_on(session.fork(fork)).unwrap()), said, "{changes} {mishap:?}");
                }
            }
            if done {
                break;
            }
        }
    }
}

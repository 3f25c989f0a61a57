//! Who drives a session, seen from two sides that share nothing but the database.

use std::thread;
use std::time::Duration;

use pollster::block_on;
use rethread_store::{Claim, Error, Options, Store};

use crate::kit::{entry, ids, on, server, store_on};

const LONG: Duration = Duration::from_secs(600);

#[test]
fn one_drives_and_a_former_driver_is_fenced_off() {
    let Some(server) = server() else { return };
    let url = server.fresh();
    let (_one, session) = store_on(&url);
    let other = Store::new(on(&url), Options::default());
    let theirs = block_on(other.open(session.id())).unwrap();
    let lease = block_on(session.lease("test", LONG, Claim::IfFree)).unwrap();
    lease.session().append_and_wait(entry("first")).unwrap();
    let held = block_on(theirs.lease("test", LONG, Claim::IfFree));
    assert!(matches!(held, Err(Error::Held { .. })), "{held:?}");

    let taken = block_on(theirs.lease("test", LONG, Claim::TakeOver)).unwrap();
    let late = lease.session().append_and_wait(entry("late"));
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    assert!(matches!(block_on(lease.renew()), Err(Error::Fenced { .. })));
    taken.session().append_and_wait(entry("second")).unwrap();
    assert_eq!(ids(&theirs), ["first", "second"]);
}

#[test]
fn of_many_who_want_to_drive_one_does() {
    let Some(server) = server() else { return };
    let url = server.fresh();
    let (_store, session) = store_on(&url);
    let claim = || {
        let store = Store::new(on(&url), Options::default());
        let session = block_on(store.open(session.id())).unwrap();
        block_on(session.lease("test", LONG, Claim::IfFree)).is_ok()
    };
    let won = thread::scope(|scope| {
        let claims: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
        claims.into_iter().map(|claim| claim.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(won, 1);
}

#[test]
fn a_driver_that_falls_silent_is_followed_by_another() {
    let Some(server) = server() else { return };
    let url = server.fresh();
    let (_one, session) = store_on(&url);
    let other = Store::new(on(&url), Options::default());
    let theirs = block_on(other.open(session.id())).unwrap();
    let lease = block_on(session.lease("test", Duration::from_millis(300), Claim::IfFree)).unwrap();
    // Only what it sees itself counts: no clock of another machine.
    assert!(block_on(theirs.driver()).unwrap().is_some());
    thread::sleep(Duration::from_millis(400));
    let next = block_on(theirs.lease("test", LONG, Claim::IfFree)).unwrap();
    next.session().append_and_wait(entry("next")).unwrap();
    let late = lease.session().append_and_wait(entry("late"));
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
}

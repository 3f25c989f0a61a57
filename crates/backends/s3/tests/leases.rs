//! Who drives a session, seen from two sides that share nothing but the bucket.

use std::thread;
use std::time::Duration;

use pollster::block_on;
use rethread_store::{Claim, Error};
use rethread_testkit::Mishap;

use crate::kit::{Place, entry, ids};

const LONG: Duration = Duration::from_secs(600);

#[test]
fn one_drives_and_a_former_driver_is_fenced_off() {
    let Some(place) = Place::new() else { return };
    let (_one, session) = place.session();
    let theirs = block_on(place.store().open(session.id())).unwrap();
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
fn of_many_who_want_to_drive_one_does_even_if_answers_are_lost() {
    let Some(place) = Place::new() else { return };
    let (_store, session) = place.session();
    place.way.meet([Mishap::LoseAnswer, Mishap::Twice, Mishap::Echo, Mishap::Fail].map(Some).repeat(4));
    let claim = || {
        let session = block_on(place.store().open(session.id())).unwrap();
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
    let Some(place) = Place::new() else { return };
    let (_one, session) = place.session();
    let theirs = block_on(place.store().open(session.id())).unwrap();
    let lease = block_on(session.lease("test", Duration::from_millis(300), Claim::IfFree)).unwrap();
    // Only what it sees itself counts: no clock of another machine.
    assert!(block_on(theirs.driver()).unwrap().is_some());
    thread::sleep(Duration::from_millis(400));
    let next = block_on(theirs.lease("test", LONG, Claim::IfFree)).unwrap();
    next.session().append_and_wait(entry("next")).unwrap();
    let late = lease.session().append_and_wait(entry("late"));
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
}

//! Who drives a session, seen from two sides that share nothing but the bucket.

use std::thread;
use std::time::Duration;

use pollster::block_on;
use rethread_store::Claim;
use rethread_testkit::Mishap;

use crate::kit::Place;

const LONG: Duration = Duration::from_secs(600);

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

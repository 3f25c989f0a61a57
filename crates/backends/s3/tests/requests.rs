//! What things cost, counted where they pass.

use std::time::Duration;

use pollster::block_on;
use rethread_store::backend::{Backend as _, Space};
use rethread_store::{Claim, Entry, Error, Filter, NewSession};

use crate::kit::{Place, append, entry, ids, messages, sized, whole};

/// Returns entries as they are in use: a few hundred bytes each.
fn batch(number: usize) -> Vec<Entry> {
    let entry = |index: usize| {
        let text = "something that was said ".repeat(10 + index % 30);
        Entry::parse(format!(r#"{{"uuid":"u{number}.{index}","text":"{text}"}}"#)).unwrap()
    };
    (0..100).map(entry).collect()
}

#[test]
fn ten_thousand_entries_in_a_hundred_batches_take_a_hundred_and_ten_requests_all_told_and_three_to_open() {
    let Some(place) = Place::new() else { return };
    let (store, session) = place.session();
    let begun = place.way.requests();
    assert!(begun.len() <= 6, "to begin where nothing is: {begun:#?}");
    for number in 0..100 {
        block_on(session.append_all(batch(number))).unwrap().wait().unwrap();
    }
    let appended = place.way.requests();
    store.close().unwrap();
    let closed = place.way.requests();
    assert!(closed.len() <= 1, "to remember what the session is, for whoever opens it: {closed:#?}");
    let all = begun.len() + appended.len() + closed.len();
    assert!(all <= 110, "{all}: {begun:#?} {} {closed:#?}", appended.len());

    let store = place.store();
    let session = block_on(store.open(&"s".parse().unwrap())).unwrap();
    let asked = place.way.requests();
    assert!(asked.len() <= 3, "{asked:#?}");
    assert_eq!(ids(&session).len(), 10_000);
    let asked = place.way.requests();
    assert!(asked.len() <= 8, "to read all of it: {asked:#?}");
    let read = whole(&place.backend(), &messages("s"));
    let asked = place.way.requests();
    assert_eq!(read.lines.len(), 10_001);
    assert!(asked.len() <= 5, "to read the log from its first byte to its last: {asked:#?}");
}

#[test]
fn what_is_remembered_when_a_store_is_closed_is_what_a_listing_believes() {
    // The tests' server leaves tags out of its listings; of long names its proxy tells them, as others do of all.
    for (name, is_listed_with_its_tag) in [("s".repeat(120), true), ("s".to_owned(), false)] {
        let Some(place) = Place::new() else { return };
        let store = place.store();
        let session = block_on(store.create(NewSession::default().id(name.parse().unwrap()))).unwrap();
        (0..3).for_each(|number| drop(session.append_and_wait(entry(&format!("u{number}"))).unwrap()));
        place.way.requests();
        store.close().unwrap();
        assert_eq!(place.way.requests().len(), 1);
        let expected = block_on(place.store().metadata(session.id())).unwrap();
        place.way.requests();
        let list = || {
            let listed = block_on(place.store().list(&Filter::default())).unwrap();
            let sessions: Vec<_> =
                listed.sessions.iter().map(|it| (it.message_count, it.created_at)).collect();
            assert_eq!(sessions, [(3, expected.created_at)]);
            place.way.requests().iter().any(|asked| asked.contains("messages.log"))
        };
        // Where there is no tag the log is looked at; where there are many such logs, once, for they go to a catalog.
        assert_eq!([list(), list()], [!is_listed_with_its_tag; 2], "{name}");
    }
}

#[test]
fn what_others_have_added_is_in_what_is_remembered_when_a_store_is_closed() {
    let Some(place) = Place::new() else { return };
    let (store, session) = place.session();
    session.append_and_wait(entry("a")).unwrap();
    let other = block_on(place.store().open(session.id())).unwrap();
    other.append_and_wait(entry("b")).unwrap();
    store.close().unwrap();
    let count = || block_on(place.store().metadata(session.id())).unwrap().message_count;
    assert_eq!(count(), 2);
    let (store, session) = (place.store(), session.id());
    block_on(store.open(session)).unwrap().append_and_wait(entry("c")).unwrap();
    store.close().unwrap();
    assert_eq!(count(), 3);
}

#[test]
fn a_session_that_others_have_purged_does_not_come_back_when_a_store_is_closed() {
    // Its metadata did, from memory: it was listed as damaged, and nobody could begin it again.
    let Some(place) = Place::new() else { return };
    let (store, session) = place.session();
    session.append_and_wait(entry("a")).unwrap();
    assert!(block_on(place.store().purge(session.id())).unwrap());
    std::thread::sleep(Duration::from_millis(1100));
    store.close().unwrap();
    assert_eq!(place.names("sessions/"), [""; 0]);
    block_on(place.store().create(NewSession::default().id(session.id().clone()))).unwrap();
}

#[test]
fn what_is_remembered_of_a_session_is_not_taken_for_another_that_was_begun_in_its_place() {
    let Some(place) = Place::new() else { return };
    let named = |name: &str| NewSession::default().id("s".parse().unwrap()).name(name);
    let (store, others) = (place.store(), place.store());
    let session = block_on(store.create(named("ours"))).unwrap();
    assert!(block_on(others.purge(session.id())).unwrap());
    block_on(others.create(named("theirs"))).unwrap();
    // Both logs end at the same place.
    let late = session.append_and_wait(entry("a"));
    assert!(matches!(late, Err(Error::Gone(_))), "{late:?}");
    store.close().unwrap();
    let metadata = block_on(place.store().metadata(session.id())).unwrap();
    assert_eq!(metadata.name.as_deref(), Some("theirs"));
    let listed = block_on(place.store().list(&Filter::default())).unwrap();
    assert_eq!(listed.sessions[0].name.as_deref(), Some("theirs"));
}

/// The calls are those of `has_died` in the keeper, which does that every three seconds for each session that another drives:
/// docs/scaling.md says what it costs.
#[test]
fn to_see_whether_another_keeper_still_drives_a_session_takes_four_requests() {
    let Some(place) = Place::new() else { return };
    let (store, session) = place.session();
    let timed = Entry::parse(r#"{"uuid":"a","timestamp":"2026-02-09T10:00:00Z"}"#).unwrap();
    block_on(session.append(timed)).unwrap().wait().unwrap();
    let _lease = block_on(session.lease("test", Duration::from_secs(60), Claim::IfFree)).unwrap();
    let (other, id) = (place.store(), session.id());
    let look = || {
        place.way.requests();
        assert!(block_on(block_on(other.open(id)).unwrap().driver()).unwrap().is_some());
        place.way.requests().len()
    };
    look();
    assert_eq!(look(), 4);
    store.close().unwrap();
    assert!(look() <= 4, "no more if what it is was cached");
}

#[test]
fn a_backend_alone_asks_no_more_than_eleven_times_for_ten_appends_whatever_their_size() {
    for (length, lines) in [(40, 1), (700, 1), (200, 100), (1_800, 100)] {
        let Some(place) = Place::new() else { return };
        let (backend, log) = (place.backend(), messages("s"));
        for number in 0..100_u64 {
            let at = number * lines;
            let batch: Vec<_> = (at..at + lines).map(|at| sized(at, &format!("u{at}"), length)).collect();
            append(&backend, &log, &batch);
        }
        let asked = place.way.requests().len();
        assert!(asked <= 110, "{asked} requests for 100 appends of {lines} lines of {length}");
        assert_eq!(whole(&place.backend(), &log).lines.len() as u64, 100 * lines);
        let asked = place.way.requests();
        // What says that the place is ours, the end of the log, its parts, and a look whether there is more.
        assert!(asked.len() <= 6, "{length}: {asked:#?}");
    }
}

#[test]
fn reading_on_and_looking_for_news_asks_once() {
    let Some(place) = Place::new() else { return };
    let (_store, session) = place.session();
    (0..30).for_each(|number| drop(session.append_and_wait(entry(&format!("u{number}"))).unwrap()));
    let (backend, log) = (place.backend(), messages("s"));
    assert!(block_on(backend.changed(&log, 0)).unwrap());
    place.way.requests();
    assert!(!block_on(backend.changed(&log, 31)).unwrap());
    assert_eq!(place.way.requests().len(), 1);
    // The first time the server is asked for two things that it must not do.
    for asked in [3, 1] {
        assert_eq!(block_on(backend.list(Space::Sessions, None, 100)).unwrap().len(), 1);
        assert_eq!(place.way.requests().len(), asked);
    }
}

//! What things cost, counted where they pass.

use std::time::Duration;

use pollster::block_on;
use rethread_store::backend::{Backend as _, Space};
use rethread_store::{Claim, Entry};

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
fn ten_thousand_entries_in_a_hundred_batches_take_a_hundred_and_ten_requests_nine_to_begin_and_four_to_open()
{
    let Some(place) = Place::new() else { return };
    let (store, session) = place.session();
    let begun = place.way.requests();
    assert!(begun.len() <= 9, "to begin where nothing is: {begun:#?}");
    for number in 0..100 {
        let tickets: Vec<_> =
            batch(number).into_iter().map(|entry| block_on(session.append(entry)).unwrap()).collect();
        tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    }
    let asked = place.way.requests();
    // Entries that are handed over one by one may go in two batches; the figure is for those that were made.
    let batches =
        asked.iter().filter(|asked| asked.starts_with("PUT") && asked.contains("messages.log")).count();
    assert!(batches >= 100 && asked.len() * 10 <= batches * 11, "{} requests for {batches}", asked.len());
    store.close().unwrap();
    let asked = place.way.requests();
    assert!(asked.len() <= 5, "to remember what the session is, for whoever opens it: {asked:#?}");

    let store = place.store();
    let session = block_on(store.open(&"s".parse().unwrap())).unwrap();
    let asked = place.way.requests();
    assert!(asked.len() <= 4, "{asked:#?}");
    assert_eq!(ids(&session).len(), 10_000);
    let asked = place.way.requests();
    assert!(asked.len() <= 8, "to read all of it: {asked:#?}");
    let read = whole(&place.backend(), &messages("s"));
    let asked = place.way.requests();
    assert_eq!(read.lines.len(), 10_001);
    assert!(asked.len() <= 5, "to read the log from its first byte to its last: {asked:#?}");
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

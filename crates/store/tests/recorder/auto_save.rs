//! Saving whole conversations, at quiet moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rethread_store::backend::LogName;
use rethread_store::{Entry, Error, Finish, NewSession, Recording, Resume};

use super::moody::{Mood, no_space};
use super::{begin, eventually, moody_store};
use crate::kit::{chain_of, conversation, ids, message, run, session_id};

const NEVER: Duration = Duration::from_secs(3600);

fn messages(count: usize) -> Vec<Entry> {
    (1..=count).map(message).collect()
}

fn quiet(millis: u64) -> Recording {
    Recording { quiet: Duration::from_millis(millis), ..Recording::default() }
}

#[test]
fn a_hundred_quick_saves_become_one_and_the_last_list_wins() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, quiet(200));
    let before = backend.appends();

    (1..=100).for_each(|count| recorder.auto_save(messages(count), |_| {}));
    eventually("it is saved", || recorder.waiting() == 0);

    assert_eq!(run(recorder.session().messages()).unwrap().records.len(), 100);
    assert_eq!(backend.appends() - before, 1);
}

#[test]
fn of_saves_that_were_replaced_every_change_of_metadata_is_made() {
    let (_, store) = moody_store();
    let recorder = begin(&store, quiet(1));
    recorder.auto_save(messages(1), |metadata| metadata.name = Some("first".into()));
    recorder.auto_save(messages(2), |metadata| metadata.tags.push("second".into()));
    recorder.auto_save(messages(3), |metadata| metadata.turn_count = 3);
    run(recorder.flush()).unwrap();

    let metadata = run(recorder.session().metadata()).unwrap();
    assert_eq!((metadata.name.as_deref(), metadata.turn_count), (Some("first"), 3));
    assert_eq!((metadata.tags, metadata.message_count), (vec!["second".to_owned()], 3));
}

#[test]
fn flush_and_finalize_run_a_pending_save_at_once() {
    let (_, store) = moody_store();
    let recorder = begin(&store, Recording { quiet: NEVER, ..Recording::default() });

    recorder.auto_save(messages(2), |_| {});
    run(recorder.flush()).unwrap();
    assert_eq!(chain_of(recorder.session()), "u1 u2");

    recorder.auto_save(messages(3), |_| {});
    run(recorder.finalize(Finish::because("end_turn").turns(2))).unwrap();
    let restored = run(recorder.restore()).unwrap();
    assert_eq!((ids(&restored.messages).as_str(), restored.turn_count), ("u1 u2 u3", 2));
}

#[test]
fn dropping_a_recorder_saves_what_was_pending() {
    let (_, store) = moody_store();
    let new = NewSession::default().id(session_id("one"));
    let recorder = begin(&store, Recording { quiet: NEVER, ..Recording::new(new) });
    recorder.auto_save(messages(3), |_| {});
    drop(recorder);
    assert_eq!(chain_of(&run(store.open(&session_id("one"))).unwrap()), "u1 u2 u3");
}

#[test]
fn a_save_is_not_put_off_for_ever_by_newer_ones() {
    let (_, store) = moody_store();
    let recorder = begin(&store, quiet(150));
    let started = Instant::now();
    let saved = || run(recorder.session().messages()).unwrap().records.len();
    for count in 1.. {
        recorder.auto_save(messages(count), |_| {});
        if saved() > 0 {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "never quiet, never saved");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn only_one_save_runs_at_a_time_and_nothing_is_doubled_by_a_full_disk() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, quiet(1));
    backend.set(Mood::Fails(LogName::Messages, no_space()));
    for count in 1..=40 {
        recorder.auto_save(messages(count), |_| {});
        std::thread::sleep(Duration::from_millis(3));
    }
    eventually("the problem shows", || matches!(recorder.problem(), Some(Error::NoSpace { .. })));
    assert!(recorder.waiting() <= 2, "{}", recorder.waiting());

    backend.set(Mood::Good);
    run(recorder.flush()).unwrap();
    assert_eq!(run(recorder.session().messages()).unwrap().records.len(), 40);
    assert_eq!(run(recorder.session().metadata()).unwrap().entry_count, 40);
    assert_eq!((recorder.lost(), recorder.problem().is_none()), (0, true));
}

// A save that looks while entries are stuck in the store's queue does not see them, and adds them once more.
#[test]
fn a_save_waits_for_entries_that_are_stuck() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, quiet(1));
    backend.set(Mood::Fails(LogName::Messages, no_space()));
    (1..=3).for_each(|n| drop(recorder.persist(message(n))));
    eventually("the problem shows", || recorder.problem().is_some());
    recorder.auto_save(messages(4), |_| {});
    std::thread::sleep(Duration::from_millis(100));
    recorder.persist(message(5));

    backend.set(Mood::Good);
    run(recorder.flush()).unwrap();
    assert_eq!(chain_of(recorder.session()), "u1 u2 u3 u4 u5");
}

#[test]
fn entries_persisted_before_and_after_a_save_stay_in_order() {
    let (_, store) = moody_store();
    let recorder = begin(&store, quiet(20));
    recorder.persist(message(1));
    recorder.auto_save(messages(2), |_| {});
    run(recorder.flush()).unwrap();
    recorder.persist(message(3));
    run(recorder.flush()).unwrap();
    assert_eq!(chain_of(recorder.session()), "u1 u2 u3");
    assert_eq!(run(recorder.session().metadata()).unwrap().entry_count, 3);
}

#[test]
fn a_list_that_diverges_becomes_a_branch() {
    let (_, store) = moody_store();
    let recorder = begin(&store, quiet(1));
    recorder.auto_save(messages(4), |_| {});
    run(recorder.flush()).unwrap();
    let other = vec![message(1), message(7), message(8)];
    recorder.auto_save(other, |_| {});
    run(recorder.flush()).unwrap();
    assert_eq!(chain_of(recorder.session()), "u1 u7 u8");
    assert_eq!(run(recorder.session().metadata()).unwrap().entry_count, 6);
}

#[test]
fn a_session_resumed_at_a_message_is_saved_from_there() {
    let (_, store) = moody_store();
    let session = conversation(&store, "one", 4);
    let resume = Resume::session(session_id("one")).at(message(2).id().clone());
    let recorder = begin(&store, Recording { quiet: NEVER, ..Recording::resume(resume) });
    for list in
        [vec![message(1), message(2), message(7)], vec![message(1), message(2), message(7), message(8)]]
    {
        recorder.auto_save(list, |_| {});
        run(recorder.flush()).unwrap();
    }
    assert_eq!(chain_of(&session), "u1 u2 u7 u8");
    assert_eq!(run(session.metadata()).unwrap().entry_count, 6);
}

#[test]
fn a_save_that_cannot_read_the_session_is_tried_again() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, quiet(1));
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    backend.set(Mood::Blind(no_space()));
    recorder.auto_save(messages(2), move |metadata| {
        counter.fetch_add(1, Ordering::SeqCst);
        metadata.turn_count = 1;
    });
    eventually("the problem shows", || recorder.problem().is_some());

    backend.set(Mood::Good);
    run(recorder.flush()).unwrap();
    assert!(recorder.problem().is_none());
    let restored = run(recorder.restore()).unwrap();
    assert_eq!((ids(&restored.messages).as_str(), restored.turn_count), ("u1 u2", 1));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn auto_save_returns_at_once_while_the_backend_hangs() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, quiet(1));
    let list = messages(100);
    backend.set(Mood::Hangs);
    let started = Instant::now();
    (0..1000).for_each(|_| recorder.auto_save(list.clone(), |_| {}));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    backend.set(Mood::Good);
    run(recorder.flush()).unwrap();
    assert_eq!(run(recorder.session().messages()).unwrap().records.len(), 100);
}

//! The loop goes on when the store cannot, and nothing about that is hidden.

use std::time::{Duration, Instant};

use rethread_store::backend::LogName;
use rethread_store::{Entry, Error, Finish, NewSession, Recorder, Recording};

use super::moody::{Mood, no_space};
use super::{begin, eventually, impatient, moody_store, soon};
use crate::kit::{chain_of, ids, message, run, session_id};

fn numbers(range: std::ops::RangeInclusive<usize>) -> String {
    range.map(|n| format!("u{n}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn ten_thousand_entries_are_taken_while_the_backend_hangs() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, Recording::default());
    let entries: Vec<Entry> = (1..=10_000).map(message).collect();
    backend.set(Mood::Hangs);

    let (started, mut longest) = (Instant::now(), Duration::ZERO);
    for entry in entries {
        let one = Instant::now();
        assert!(recorder.persist(entry.clone()).problem.is_none());
        recorder.persist_transcript(entry);
        longest = longest.max(one.elapsed());
    }
    let all = started.elapsed();
    println!("20,000 entries in {all:?}, {:?} each, at most {longest:?} for two", all / 20_000);
    assert!(all < Duration::from_secs(5), "{all:?}");
    assert_eq!(recorder.waiting(), 20_000);

    backend.set(Mood::Good);
    run(recorder.flush()).unwrap();
    assert_eq!(chain_of(recorder.session()), numbers(1..=10_000));
    assert_eq!(run(recorder.session().transcript(0)).unwrap().0.len(), 10_000);
    assert_eq!((recorder.lost(), recorder.waiting()), (0, 0));
}

#[test]
fn a_hanging_backend_holds_finalize_no_longer_than_its_patience() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, impatient());
    backend.set(Mood::Hangs);
    (1..=1000).for_each(|n| drop(recorder.persist(message(n))));

    let started = Instant::now();
    let late = run(recorder.finalize(Finish::because("end_turn").turns(2))).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(late.to_string(), "memory cannot do everything in time");
    let why = std::error::Error::source(&late).unwrap().to_string();
    assert!(why.starts_with("1001 records of session"), "{why}");

    // Nothing was given up: when the backend comes back, so does everything.
    backend.set(Mood::Good);
    let restored = soon("the rest is written", || run(recorder.restore()));
    assert_eq!((ids(&restored.messages), restored.turn_count), (numbers(1..=1000), 2));
    soon("the end is written", || run(recorder.finalize(Finish::because("end_turn"))));
}

#[test]
fn a_full_disk_is_a_problem_until_there_is_room_and_loses_nothing() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, impatient());
    recorder.persist(message(1));
    run(recorder.flush()).unwrap();
    backend.set(Mood::Fails(LogName::Messages, no_space()));

    (2..=2000).for_each(|n| drop(recorder.persist(message(n))));
    eventually("the problem shows", || recorder.problem().is_some());
    let last = recorder.persist(message(2001));
    assert!(last.refused.is_none() && matches!(last.problem, Some(Error::NoSpace { .. })), "{last:?}");
    assert!(matches!(run(recorder.finalize(Finish::default())), Err(Error::NoSpace { .. })));
    assert!(!store.health().is_ok());

    backend.set(Mood::Good);
    eventually("the problem is over", || recorder.problem().is_none());
    soon("the end is written", || run(recorder.finalize(Finish::because("end_turn"))));
    assert_eq!(chain_of(recorder.session()), numbers(1..=2001));
    assert_eq!(recorder.lost(), 0);
    assert!(store.health().is_ok());
}

#[test]
fn a_finalize_that_meets_a_full_disk_waits_for_room() {
    // With few entries the flush itself is refused by the store for now; with many it waits behind them.
    for count in [3, 600] {
        let (backend, store) = moody_store();
        let recorder = begin(&store, Recording::default());
        backend.set(Mood::Fails(LogName::Messages, no_space()));
        (1..=count).for_each(|n| drop(recorder.persist(message(n))));
        eventually("the problem shows", || recorder.problem().is_some());

        let done = while_running(
            || run(recorder.finalize(Finish::because("end_turn").turns(3))),
            || backend.set(Mood::Good),
        );

        done.unwrap();
        let restored = run(recorder.restore()).unwrap();
        assert_eq!((ids(&restored.messages), restored.turn_count), (numbers(1..=count), 3));
    }
}

#[test]
fn a_child_is_spawned_at_the_last_entry_even_when_that_had_to_wait() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, Recording::default());
    backend.set(Mood::Hangs);
    (1..=1000).for_each(|n| drop(recorder.persist(message(n))));

    let child = while_running(|| run(recorder.spawn_child("explorer")), || backend.set(Mood::Good)).unwrap();

    let metadata = run(child.session().metadata()).unwrap();
    assert_eq!(metadata.fork_message_id, Some(message(1000).id().clone()));
}

/// Does something, and something else when that has been under way for a while.
fn while_running<T: Send>(this: impl FnOnce() -> T + Send, that: impl FnOnce()) -> T {
    std::thread::scope(|scope| {
        let this = scope.spawn(this);
        std::thread::sleep(Duration::from_millis(250));
        that();
        this.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn what_the_store_gives_up_stays_a_problem_and_the_loop_goes_on() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, Recording::default());
    let damaged = Error::Damaged { what: "the log".into(), reason: "somebody sat on it".into() };
    recorder.persist(message(1));
    run(recorder.flush()).unwrap();
    backend.set(Mood::Fails(LogName::Messages, damaged));
    recorder.persist(message(2));
    eventually("the loss shows", || recorder.problem().is_some());
    backend.set(Mood::Good);

    let third = recorder.persist(message(3));

    let text = "the log is damaged: somebody sat on it";
    assert_eq!((third.refused.is_none(), third.problem.unwrap().to_string()), (true, text.into()));
    assert_eq!(run(recorder.flush()).unwrap_err().to_string(), text);
    assert_eq!(run(recorder.finalize(Finish::because("end_turn"))).unwrap_err().to_string(), text);
    let restored = run(recorder.restore()).unwrap();
    assert_eq!((ids(&restored.messages), restored.exit_reason), ("u1 u3".into(), Some("end_turn".into())));
    assert_eq!((recorder.lost(), recorder.problem().unwrap().to_string()), (1, text.into()));
}

#[test]
fn a_full_overflow_refuses_with_an_error_that_stays() {
    let (backend, store) = moody_store();
    let recording = Recording { overflow_entries: 100, ..Recording::default() };
    let recorder = begin(&store, recording);
    backend.set(Mood::Hangs);

    let (taken, refused): (Vec<usize>, Vec<usize>) =
        (1..=2000).partition(|n| recorder.persist(message(*n)).refused.is_none());
    assert!(taken.len() > 100 && !refused.is_empty(), "{}", taken.len());
    assert_eq!(recorder.lost() as usize, refused.len());
    assert!(matches!(recorder.problem(), Some(Error::Full(_))));

    backend.set(Mood::Good);
    assert!(matches!(run(recorder.finalize(Finish::default())), Err(Error::Full(_))));
    let taken: Vec<String> = taken.iter().map(|n| format!("u{n}")).collect();
    assert_eq!(chain_of(recorder.session()), taken.join(" "));
}

#[test]
fn an_overflow_is_bounded_by_bytes_too() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, Recording { overflow_bytes: 100_000, ..Recording::default() });
    backend.set(Mood::Hangs);
    let large = Entry::parse(format!(r#"{{"content":"{}"}}"#, "x".repeat(30_000))).unwrap();

    (1..=1000).for_each(|n| drop(recorder.persist(message(n))));
    let taken = (0..10).filter(|_| recorder.persist(large.clone()).refused.is_none()).count();

    assert!(taken < 3, "{taken}");
    backend.set(Mood::Good);
}

#[test]
fn an_entry_that_is_too_large_is_refused_at_once_and_nothing_else_is() {
    let (_, store) = moody_store();
    let recorder = begin(&store, Recording::default());
    let large = Entry::parse(format!(r#"{{"content":"{}"}}"#, "x".repeat(2 << 20))).unwrap();

    assert!(matches!(recorder.persist(large).refused, Some(Error::TooLarge { .. })));
    recorder.persist(message(1));
    assert!(matches!(run(recorder.flush()), Err(Error::TooLarge { .. })));
    assert_eq!(chain_of(recorder.session()), "u1");
}

#[test]
fn a_stuck_transcript_does_not_hold_the_conversation() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, impatient());
    backend.set(Mood::Fails(LogName::Transcript, no_space()));
    (1..=1000).for_each(|n| {
        recorder.persist_transcript(message(n));
        recorder.persist(message(n));
    });

    eventually("the conversation is in", || chain_of(recorder.session()) == numbers(1..=1000));
    assert!(matches!(run(recorder.flush()), Err(Error::NoSpace { .. })));
    backend.set(Mood::Good);
    soon("the transcript follows", || run(recorder.flush()));
    assert_eq!(run(recorder.session().transcript(0)).unwrap().0.len(), 1000);
}

#[test]
fn after_the_store_was_closed_persisting_is_an_error_and_not_a_panic() {
    let (_, store) = moody_store();
    let recorder = begin(&store, Recording::default());
    store.close().unwrap();

    assert!(matches!(recorder.persist(message(1)).refused, Some(Error::Closed)));
    assert!(matches!(run(recorder.finalize(Finish::default())), Err(Error::Closed)));
}

#[test]
fn a_session_that_cannot_begin_is_an_error_in_time() {
    for mood in [Mood::Hangs, Mood::Fails(LogName::Messages, no_space())] {
        let (backend, store) = moody_store();
        drop(begin(&store, Recording::default()));
        backend.set(mood.clone());

        let started = Instant::now();
        let begin =
            Recording { patience: Duration::from_millis(100), ..Recording::new(NewSession::default()) };
        let refused = run(Recorder::initialize(Some(store.clone()), begin)).unwrap_err();

        assert!(started.elapsed() < Duration::from_secs(5), "{mood:?} {:?}", started.elapsed());
        let text = match mood {
            Mood::Hangs => "memory cannot do everything in time",
            _ => "no space left to append to messages.jsonl",
        };
        assert_eq!(refused.to_string(), text);
        backend.set(Mood::Good);
    }
}

#[test]
fn dropping_a_recorder_hands_its_overflow_to_the_store() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, Recording::new(NewSession::default().id(session_id("one"))));
    backend.set(Mood::Hangs);
    (1..=3000).for_each(|n| drop(recorder.persist(message(n))));

    while_running(move || drop(recorder), || backend.set(Mood::Good));
    run(store.flush()).unwrap();

    let session = run(store.open(&session_id("one"))).unwrap();
    assert_eq!(chain_of(&session), numbers(1..=3000));
}

#[test]
fn dropping_a_recorder_waits_no_longer_than_its_patience() {
    let (backend, store) = moody_store();
    let recorder = begin(&store, impatient());
    backend.set(Mood::Hangs);
    (1..=3000).for_each(|n| drop(recorder.persist(message(n))));

    let started = Instant::now();
    drop(recorder);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    backend.set(Mood::Good);
}

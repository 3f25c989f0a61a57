//! Persist, restore, finalize, when nothing goes wrong.

use std::sync::Arc;

use rethread_store::{
    Begin, Entry, Finish, MemoryBackend, NewSession, OffBackend, Options, Recorder, Recording, Resume, Store,
    Which,
};

use super::begin;
use crate::kit::{Home, chain_of, entry_id, ids, message, run, session_id, tree};

#[test]
fn what_a_loop_persists_is_in_the_log_in_order_when_finalize_returns() {
    let home = Home::new();
    let store = home.open();
    let recorder = begin(&store, Recording::default());
    let expected: Vec<String> = (1..=1000).map(|n| format!("u{n}")).collect();

    (1..=1000).for_each(|n| assert!(recorder.persist(message(n)).problem.is_none()));
    run(recorder.finalize(Finish::because("end_turn"))).unwrap();

    let other = run(home.open().open(recorder.id())).unwrap();
    assert_eq!(chain_of(&other), expected.join(" "));
}

#[test]
fn threads_that_share_a_recorder_keep_their_own_order() {
    let store = Store::new(MemoryBackend::default(), Options::default());
    let recorder = Arc::new(begin(&store, Recording::default()));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let recorder = recorder.clone();
            scope.spawn(move || {
                for n in 0..500 {
                    let entry = Entry::parse(format!(r#"{{"uuid":"{thread}-{n:03}"}}"#)).unwrap();
                    recorder.persist(entry);
                }
            });
        }
    });
    run(recorder.flush()).unwrap();

    let history = run(recorder.session().messages()).unwrap();
    let mut all: Vec<&str> = history.entries().map(|entry| entry.id().as_str()).collect();
    // A stable sort by thread: within one, the order in the log must be the order of sending already.
    all.sort_by_key(|id| id.as_bytes()[0]);
    let expected: Vec<String> =
        (0..8).flat_map(|thread| (0..500).map(move |n| format!("{thread}-{n:03}"))).collect();
    assert_eq!(all, expected);
}

// Fault 6 of the Go store: ids were made up when persisting, so nobody could name a point to resume at.
#[test]
fn persisting_gives_the_id_by_which_the_session_is_resumed_there() {
    let store = Store::new(MemoryBackend::default(), Options::default());
    let recorder = begin(&store, Recording::default());
    let nameless = |text: &str| Entry::parse(format!(r#"{{"role":"user","content":"{text}"}}"#)).unwrap();

    let named = recorder.persist(message(1)).id;
    let point = recorder.persist(nameless("here")).id;
    recorder.persist(nameless("later"));
    run(recorder.flush()).unwrap();

    assert_eq!(named, entry_id("u1"));
    let resume = Resume::session(recorder.id().clone()).at(point.clone());
    let restored = run(begin(&store, Recording::resume(resume)).restore()).unwrap();
    assert_eq!(ids(&restored.messages), format!("u1 {point}"));
}

// Fault 1 of the Go store: transcript.jsonl was never written.
#[test]
fn the_transcript_is_written_beside_the_conversation() {
    let home = Home::new();
    let store = home.open();
    let recorder = begin(&store, Recording::default());

    recorder.persist(message(1));
    let stream: Vec<Entry> =
        (0..3).map(|n| Entry::parse(format!(r#"{{"type":"stream","n":{n}}}"#)).unwrap()).collect();
    stream.iter().for_each(|entry| assert!(recorder.persist_transcript(entry.clone()).problem.is_none()));
    run(recorder.finalize(Finish::default())).unwrap();

    let (entries, _) = run(recorder.session().transcript(0)).unwrap();
    assert_eq!(entries, stream);
    let path = recorder.session().transcript_path().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 3);
    assert_eq!(chain_of(recorder.session()), "u1");
}

#[test]
fn what_finalize_writes_restore_gives_back() {
    let home = Home::new();
    let store = home.open();
    let recorder = begin(&store, Recording::new(NewSession::at("/tmp").name("kept")));
    recorder.persist(message(1));
    let finish = Finish::because("end_turn").turns(5).tokens(1234).cost_usd(0.0234);
    run(recorder.finalize(finish)).unwrap();
    drop(recorder);
    store.close().unwrap();

    let store = home.open();
    let recorder = begin(&store, Recording::resume(Resume::latest("/tmp")));
    let restored = run(recorder.restore()).unwrap();
    let numbers = (restored.turn_count, restored.total_tokens, restored.total_cost_usd);
    assert_eq!(numbers, (5, 1234, 0.0234));
    assert_eq!(restored.exit_reason.as_deref(), Some("end_turn"));
    assert_eq!((ids(&restored.messages).as_str(), restored.session_id), ("u1", recorder.id().clone()));
    assert_eq!(run(recorder.session().metadata()).unwrap().name.as_deref(), Some("kept"));
}

#[test]
fn finalizing_again_changes_what_it_says_and_nothing_else() {
    let store = Store::new(MemoryBackend::default(), Options::default());
    let recorder = begin(&store, Recording::new(NewSession::at("/tmp").name("n")));
    recorder.persist(message(1));
    let first = Finish::because("max_turns").turns(3).tokens(100).cost_usd(0.5);
    run(recorder.finalize(first.clone())).unwrap();
    let before = run(recorder.session().metadata()).unwrap();

    run(recorder.finalize(first)).unwrap();
    assert_eq!(run(recorder.session().metadata()).unwrap(), before);

    recorder.persist(message(2));
    run(recorder.finalize(Finish::because("end_turn").turns(4))).unwrap();
    let after = run(recorder.session().metadata()).unwrap();
    let mut expected = before;
    (expected.turn_count, expected.exit_reason) = (4, Some("end_turn".into()));
    (expected.message_count, expected.entry_count, expected.updated_at) = (2, 2, after.updated_at);
    assert_eq!(after, expected);
}

#[test]
fn a_cost_that_is_no_number_is_refused_and_the_rest_is_written() {
    let store = Store::new(MemoryBackend::default(), Options::default());
    let recorder = begin(&store, Recording::default());
    run(recorder.finalize(Finish::default().cost_usd(0.5))).unwrap();

    let refused = run(recorder.finalize(Finish::because("end_turn").cost_usd(f64::NAN))).unwrap_err();

    assert_eq!(refused.to_string(), r#""NaN" is no cost: a finite number"#);
    let restored = run(recorder.restore()).unwrap();
    assert_eq!((restored.total_cost_usd, restored.exit_reason.as_deref()), (0.5, Some("end_turn")));
}

#[test]
fn dropping_a_recorder_lets_the_store_flush_at_close() {
    let home = Home::new();
    let store = home.open();
    let recorder = begin(&store, Recording::default());
    let id = recorder.id().clone();
    (1..=2000).for_each(|n| drop(recorder.persist(message(n))));
    drop(recorder);
    store.close().unwrap();

    assert_eq!(run(home.open().metadata(&id)).unwrap().message_count, 2000);
}

#[test]
fn without_persistence_a_loop_runs_in_the_same_way() {
    let off = Store::new(OffBackend, Options::default());
    let kept = Store::new(MemoryBackend::default(), Options::default());
    let turn = |store: Option<Store>| {
        let recorder = run(Recorder::initialize(store, Recording::default())).unwrap();
        let persisted: Vec<_> = (1..=1000).map(|n| recorder.persist(message(n))).collect();
        recorder.persist_transcript(message(1));
        recorder.auto_save(vec![message(1)], |_| {});
        let child = run(recorder.spawn_child("explorer")).unwrap();
        drop(recorder);
        let asked = child.persist(message(1));
        run(child.finalize(Finish::because("end_turn").turns(1))).unwrap();
        assert_eq!((child.lost(), child.waiting()), (0, 0));
        persisted.into_iter().chain([asked]).map(|it| (it.id, it.problem.is_none())).collect::<Vec<_>>()
    };

    let with_persistence = turn(Some(kept));
    assert_eq!(turn(None), with_persistence);
    assert_eq!(turn(Some(off)), with_persistence);
}

#[test]
fn without_persistence_there_is_nothing_to_pick_up_and_a_session_begins() {
    let named = Resume::session(session_id("mine"));
    let latest = Resume::latest("/tmp");
    for resume in [named.clone(), named.clone().at(entry_id("u9")), latest] {
        let recorder = run(Recorder::initialize(None, Recording::resume(resume.clone()))).unwrap();
        let restored = run(recorder.restore()).unwrap();
        assert_eq!(
            (restored.messages.records.len(), restored.turn_count, restored.exit_reason),
            (0, 0, None)
        );
        let keeps_its_name = matches!(resume.which, Which::Id(_));
        assert_eq!(recorder.id().as_str() == "mine", keeps_its_name);
    }
}

#[test]
fn a_subagent_is_recorded_as_a_child_that_latest_never_picks() {
    let home = Home::new();
    let store = home.open();
    let parent = begin(&store, Recording::new(NewSession::at("/tmp").id(session_id("parent"))));
    parent.persist(message(1));
    let child = run(parent.spawn_child("explorer")).unwrap();
    child.persist(message(2));
    run(child.finalize(Finish::because("end_turn").turns(1))).unwrap();
    run(parent.finalize(Finish::because("end_turn"))).unwrap();

    let metadata = run(child.session().metadata()).unwrap();
    assert_eq!((metadata.child, metadata.detached, metadata.turn_count), (true, true, 1));
    assert_eq!(metadata.parent_id, Some(session_id("parent")));
    assert_eq!(metadata.fork_message_id, Some(entry_id("u1")));
    assert_eq!(metadata.agent_name.as_deref(), Some("explorer"));
    assert_eq!(chain_of(child.session()), "u2");
    assert_eq!(begin(&store, Recording::resume(Resume::latest("/tmp"))).id(), parent.id());
}

#[test]
fn beginning_with_an_id_that_is_taken_is_an_error_and_touches_nothing() {
    let home = Home::new();
    let store = home.open();
    let taken = Begin::New(NewSession::default().id(session_id("one")));
    let recording = Recording { begin: taken, ..Recording::default() };
    drop(begin(&store, recording.clone()));
    let before = tree(&home.root());

    let refused = run(Recorder::initialize(Some(store.clone()), recording)).unwrap_err();

    assert_eq!(refused.to_string(), "session one exists already");
    assert_eq!(tree(&home.root()), before);
}

#[test]
fn a_recorder_can_be_shared_between_threads_and_its_futures_moved_to_them() {
    fn can<T: Send + Sync>(it: T) -> T {
        it
    }
    fn moves<T: Send>(it: T) -> T {
        it
    }
    let recorder = can(run(moves(Recorder::initialize(None, Recording::default()))).unwrap());
    run(moves(recorder.restore())).unwrap();
    run(moves(recorder.flush())).unwrap();
    run(moves(recorder.spawn_child("x"))).unwrap();
    run(moves(recorder.finalize(Finish::default()))).unwrap();
}

//! Every way to pick a session up again.

use rethread_store::{EntryId, Error, Finish, Fork, NewSession, Recorder, Recording, Resume, Session, Store};

use super::begin;
use crate::kit::{Home, chain_of, conversation, entry_id, ids, message, run, session_id, tree};

fn at(n: usize) -> EntryId {
    entry_id(&format!("u{n}"))
}

#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
fn resume_and_add(store: &Store, resume: Resume, n: usize) -> (String, Session) {
    let recorder = begin(store, Recording::resume(resume));
    let restored = ids(&run(recorder.restore()).unwrap().messages);
    recorder.persist(message(n));
    run(recorder.flush()).unwrap();
    (restored, recorder.session().clone())
}

// Fault 4 of the Go store: a resumed session was created again, which reset its metadata.
#[test]
fn picking_a_session_up_writes_nothing_and_resets_nothing() {
    let home = Home::new();
    let store = home.open();
    let parent = conversation(&store, "parent", 3);
    let fork = run(parent.fork(Fork::default().at(at(2)).id(session_id("one")).name("mine"))).unwrap();
    run(fork.append(message(3))).unwrap().wait().unwrap();
    let first = begin(&store, Recording::resume(Resume::session(session_id("one"))));
    run(first.finalize(Finish::because("max_turns").turns(7).tokens(70).cost_usd(0.7))).unwrap();
    drop(first);
    store.close().unwrap();
    let store = home.open();
    let before = run(store.metadata(&session_id("one"))).unwrap();
    let files = tree(&home.root());

    let recorder = begin(&store, Recording::resume(Resume::session(session_id("one"))));
    run(recorder.restore()).unwrap();

    assert_eq!(tree(&home.root()), files);
    recorder.persist(message(4));
    run(recorder.finalize(Finish::because("end_turn"))).unwrap();
    let after = run(store.metadata(&session_id("one"))).unwrap();
    let mut expected = before;
    (expected.message_count, expected.entry_count) = (4, 2);
    (expected.exit_reason, expected.updated_at) = (Some("end_turn".into()), after.updated_at);
    assert_eq!(after, expected);
}

#[test]
fn continue_goes_on_with_the_latest_session_in_place_or_in_a_fork() {
    let home = Home::new();
    let store = home.open();
    conversation(&store, "older", 1);
    let latest = conversation(&store, "latest", 2);

    let (restored, forked) = resume_and_add(&store, Resume::latest("/tmp").forked(Fork::default()), 9);
    assert_eq!((restored.as_str(), chain_of(&forked).as_str()), ("u1 u2", "u1 u2 u9"));
    assert_eq!(run(forked.metadata()).unwrap().parent_id, Some(session_id("latest")));
    run(store.delete(forked.id())).unwrap();

    let (restored, session) = resume_and_add(&store, Resume::latest("/tmp"), 3);
    assert_eq!((restored.as_str(), session.id()), ("u1 u2", latest.id()));
    assert_eq!(chain_of(&latest), "u1 u2 u3");
}

#[test]
fn an_id_is_resumed_in_place_or_in_a_fork() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "one", 3);

    let (restored, _) = resume_and_add(&store, Resume::session(session_id("one")), 4);
    assert_eq!((restored.as_str(), chain_of(&session).as_str()), ("u1 u2 u3", "u1 u2 u3 u4"));

    let forked = Resume::session(session_id("one")).forked(Fork::default().id(session_id("two")));
    let (restored, fork) = resume_and_add(&store, forked, 5);
    assert_eq!((restored.as_str(), fork.id().as_str()), ("u1 u2 u3 u4", "two"));
    assert_eq!((chain_of(&fork).as_str(), chain_of(&session).as_str()), ("u1 u2 u3 u4 u5", "u1 u2 u3 u4"));
}

// Fault 5 of the Go store: resume-at went on under a new id that remembered no parent.
#[test]
fn a_message_is_resumed_at_in_place_or_in_a_fork() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "one", 5);
    let resume = Resume::session(session_id("one")).at(at(2));

    let (restored, fork) = resume_and_add(&store, resume.clone().forked(Fork::default()), 9);
    assert_eq!((restored.as_str(), chain_of(&fork).as_str()), ("u1 u2", "u1 u2 u9"));
    let metadata = run(fork.metadata()).unwrap();
    assert_eq!((metadata.parent_id, metadata.fork_message_id), (Some(session_id("one")), Some(at(2))));
    assert_eq!(chain_of(&session), "u1 u2 u3 u4 u5");

    let (restored, _) = resume_and_add(&store, resume, 8);
    assert_eq!((restored.as_str(), chain_of(&session).as_str()), ("u1 u2", "u1 u2 u8"));
}

// The transcript's positions are not the conversation's: mixing them up made a branch in the wrong place.
#[test]
fn the_transcript_does_not_move_the_place_that_was_resumed_at() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "one", 5);
    let recorder = begin(&store, Recording::resume(Resume::session(session_id("one")).at(at(2))));

    for n in 10..13 {
        recorder.persist_transcript(message(n));
        recorder.persist_transcript(message(n));
        recorder.persist(message(n));
        run(recorder.flush()).unwrap();
    }

    assert_eq!(chain_of(&session), "u1 u2 u10 u11 u12");
    assert_eq!(run(recorder.session().transcript(0)).unwrap().0.len(), 6);
}

#[test]
fn a_session_or_message_that_is_not_there_cannot_be_resumed() {
    let home = Home::new();
    let store = home.open();
    conversation(&store, "one", 2);
    let refused =
        |resume| run(Recorder::initialize(Some(store.clone()), Recording::resume(resume))).unwrap_err();

    assert!(matches!(refused(Resume::session(session_id("two"))), Error::SessionNotFound(_)));
    assert!(matches!(refused(Resume::latest("/nowhere")), Error::NothingToContinue(_)));
    let unknown = Resume::session(session_id("one")).at(at(7));
    assert!(matches!(refused(unknown), Error::EntryNotFound { .. }));
}

#[test]
fn a_session_that_is_open_already_can_be_recorded_into() {
    let home = Home::new();
    let store = home.open();
    let session = run(store.create(NewSession::default())).unwrap();
    let recorder = Recorder::on(session.clone(), Recording::default()).unwrap();
    recorder.persist(message(1));
    run(recorder.flush()).unwrap();
    assert_eq!(chain_of(&session), "u1");
}

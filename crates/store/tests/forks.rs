//! Forks, forks of forks, children, and what becomes of them when their parents go.

use std::time::Duration;

use rethread_store::{
    Claim, Error, Filter, Fork, ForkKind, NewSession, Problem, Resume, Scope, Session, Why,
};

use crate::kit::{Home, chain_of, conversation, entry_id, message, run, session_id};

fn add(session: &Session, n: usize) {
    run(async { session.append(message(n)).await.unwrap().await }).unwrap();
}

#[test]
fn a_chain_of_forks_reads_through_to_the_root() {
    let home = Home::new();
    let store = home.open();
    let mut session = conversation(&store, "s0", 2);
    let mut expected = "u1 u2".to_owned();
    for n in 1..=20 {
        session = run(session.fork(Fork::default().id(session_id(&format!("s{n}"))))).unwrap();
        add(&session, 100 + n);
        expected = format!("{expected} u{}", 100 + n);
    }
    assert_eq!(chain_of(&run(home.open().open(&session_id("s20"))).unwrap()), expected);
    // Forked at an entry that it inherits itself, it hangs on to the session that really holds it.
    let early = run(session.fork(Fork::default().at(entry_id("u2")))).unwrap();
    assert_eq!(chain_of(&early), "u1 u2");
    assert_eq!(run(early.metadata()).unwrap().parent_id, Some(session_id("s20")));
    run(store.purge(&session_id("s20"))).unwrap();
    assert_eq!(chain_of(&early), "u1 u2");
}

#[test]
fn a_branch_from_an_inherited_entry_leaves_out_what_came_after_it() {
    let home = Home::new();
    let parent = conversation(&home.open(), "parent", 4);
    let fork = run(parent.fork(Fork::default())).unwrap();
    add(&fork, 10);
    let back = run(fork.at(&entry_id("u2"))).unwrap();
    add(&back, 20);
    add(&back, 21);
    assert_eq!(chain_of(&fork), "u1 u2 u20 u21");
    assert_eq!(run(fork.metadata()).unwrap().message_count, 4);
    assert_eq!(chain_of(&parent), "u1 u2 u3 u4");
}

/// Once, a purge failed if somebody happened to write one of its forks for longer than a writer waits.
#[test]
fn a_purge_waits_for_whoever_writes_a_fork_that_has_its_copies() {
    let home = Home::new();
    let store = home.open();
    let parent = conversation(&store, "parent", 3);
    let fork = run(parent.fork(Fork::default())).unwrap();
    run(fork.materialize()).unwrap();
    let lock = std::fs::File::open(home.session_folder(fork.id()).join("lock")).unwrap();
    lock.lock().unwrap();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        lock.unlock().unwrap();
    });
    assert!(run(home.open().purge(parent.id())).unwrap());
    writer.join().unwrap();
    assert_eq!(chain_of(&run(home.open().open(fork.id())).unwrap()), "u1 u2 u3");
}

#[test]
fn deleting_a_parent_never_shortens_its_forks() {
    let home = Home::new();
    let store = home.open();
    let parent = conversation(&store, "parent", 3);
    let fork = run(parent.fork(Fork::default().at(entry_id("u2")))).unwrap();
    add(&fork, 10);
    run(store.delete(parent.id())).unwrap();
    assert_eq!(chain_of(&fork), "u1 u2 u10", "through the trash");
    let held = parent.clone();
    assert!(matches!(run(async { held.append(message(4)).await?.await }), Err(Error::Trashed(_))));
    assert!(run(store.purge(parent.id())).unwrap());
    assert_eq!(chain_of(&fork), "u1 u2 u10", "copied before the purge");
    assert!(run(home.open().verify(fork.id())).unwrap().is_ok());
    assert!(matches!(run(async { held.append(message(4)).await?.await }), Err(Error::Gone(_))));
    assert!(!home.session_folder(parent.id()).try_exists().unwrap());
}

#[test]
fn a_session_that_was_purged_and_begun_again_takes_nothing_from_old_handles() {
    let home = Home::new();
    let old = conversation(&home.open(), "s", 4);
    let other = home.open();
    run(other.purge(old.id())).unwrap();
    let new = conversation(&other, "s", 1);
    let late = run(async { old.append(message(77)).await?.await });
    assert!(matches!(late, Err(Error::Gone(_))), "{late:?}");
    assert_eq!(chain_of(&new), "u1");
}

#[test]
fn a_restored_session_is_as_it_was() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    let before = run(session.metadata()).unwrap();
    run(store.delete(session.id())).unwrap();
    assert!(run(store.latest(&Scope::Directory("/tmp".into()))).unwrap().is_none());
    assert_eq!(run(store.list(&Filter::trash())).unwrap().sessions.len(), 1);
    let restored = run(store.restore(session.id())).unwrap();
    assert_eq!(run(restored.metadata()).unwrap(), before);
    add(&restored, 4);
    assert_eq!(chain_of(&restored), "u1 u2 u3 u4");
}

#[test]
fn a_missing_parent_is_a_gap_and_never_a_shorter_history() {
    let home = Home::new();
    let parent = conversation(&home.open(), "parent", 3);
    let fork = run(parent.fork(Fork::default())).unwrap();
    add(&fork, 10);
    std::fs::remove_dir_all(home.session_folder(parent.id())).unwrap();
    let store = home.open();
    let fork = run(store.open(fork.id())).unwrap();
    let history = run(fork.messages()).unwrap();
    assert_eq!(history.gaps.len(), 1);
    assert_eq!((history.gaps[0].depths.clone(), history.gaps[0].reason), (1..=3, Why::SessionMissing));
    assert_eq!((history.records.len(), history.records[0].depth), (1, 4));
    assert!(matches!(run(fork.materialize()), Err(Error::Damaged { .. })), "a copy would hide the gap");
    assert!(matches!(run(store.verify(fork.id())).unwrap().problems[0], Problem::Inherited(_)));
}

#[test]
fn another_entry_at_the_fork_point_is_a_gap_and_never_a_longer_history() {
    let home = Home::new();
    let store = home.open();
    let parent = conversation(&store, "parent", 3);
    let fork = run(parent.fork(Fork::default().at(entry_id("u2")))).unwrap();
    run(store.backend().remove(&rethread_store::backend::Target::Session(parent.id().clone()))).unwrap();
    let other = home.open();
    let usurper = run(other.create(NewSession::at("/tmp").id(parent.id().clone()))).unwrap();
    (50..56).for_each(|n| add(&usurper, n));
    let history = run(run(home.open().open(fork.id())).unwrap().messages()).unwrap();
    assert_eq!(history.records.len(), 0);
    assert_eq!(history.gaps[0].reason, Why::Replaced);
}

#[test]
fn a_circle_of_forks_is_reported_and_ends() {
    let home = Home::new();
    let one = conversation(&home.open(), "one", 2);
    let two = run(one.fork(Fork::default().id(session_id("two")))).unwrap();
    add(&two, 10);
    let back = run(two.fork(Fork::default().id(session_id("back")))).unwrap();
    // What no program of ours writes: `one` replaced by a fork of `two`.
    std::fs::remove_dir_all(home.session_folder(one.id())).unwrap();
    std::fs::rename(home.session_folder(back.id()), home.session_folder(one.id())).unwrap();
    let history = run(run(home.open().open(one.id())).unwrap().messages()).unwrap();
    assert_eq!(history.gaps.last().map(|gap| gap.reason), Some(Why::Cycle));
}

#[test]
fn a_detached_fork_remembers_its_parent_and_begins_empty() {
    let home = Home::new();
    let parent = conversation(&home.open(), "parent", 3);
    run(parent.update(|metadata| drop(metadata.extra.insert("checkpoint_state".into(), 7.into())))).unwrap();
    let fork = run(parent.fork(Fork::of_kind(ForkKind::Detached))).unwrap();
    let metadata = run(fork.metadata()).unwrap();
    assert_eq!((metadata.message_count, metadata.detached), (0, true));
    assert_eq!(
        (metadata.parent_id, metadata.fork_message_id),
        (Some(session_id("parent")), Some(entry_id("u3")))
    );
    assert!(metadata.extra.is_empty(), "the parent's own state is not copied");
    assert_eq!(chain_of(&fork), "");
}

#[test]
fn children_and_digests_are_never_the_latest() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 1);
    let child = run(session.spawn_child("researcher")).unwrap();
    let digest = run(session.fork(Fork::of_kind(ForkKind::Digest))).unwrap();
    let archived = conversation(&store, "archived", 0);
    for (n, newer) in [&child, &digest, &archived].into_iter().enumerate() {
        std::thread::sleep(Duration::from_millis(5));
        add(newer, 50 + n);
    }
    run(archived.archive(rethread_store::Archive::Away)).unwrap();
    let latest = run(store.resume(Resume::latest("/tmp"))).unwrap();
    assert_eq!(latest.id(), session.id());
    let listed = run(store.list(&Filter::default())).unwrap().sessions;
    assert_eq!(listed.iter().map(|metadata| metadata.session_id.as_str()).collect::<Vec<_>>(), ["s"]);
    let all = Filter::everything();
    assert_eq!(run(store.list(&all)).unwrap().sessions.len(), 4);
    assert_eq!(run(child.metadata()).unwrap().agent_name.as_deref(), Some("researcher"));
}

#[test]
fn resume_modes_fork_only_when_asked() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    let again = run(store.resume(Resume::latest("/tmp"))).unwrap();
    assert_eq!(again.id(), session.id(), "continue goes on in place");
    let forked = run(store.resume(Resume::latest("/tmp").forked(Fork::default()))).unwrap();
    assert_ne!(forked.id(), session.id());
    assert_eq!(chain_of(&forked), "u1 u2 u3");
    let resume = Resume::session(session.id().clone()).at(entry_id("u1")).forked(Fork::default());
    let at = run(store.resume(resume)).unwrap();
    add(&at, 10);
    assert_eq!(chain_of(&at), "u1 u10");
    assert_eq!(chain_of(&session), "u1 u2 u3");
}

#[test]
fn two_resumed_handles_keep_to_their_own_branches() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 3);
    let (one, other) = (run(session.at(&entry_id("u1"))).unwrap(), run(session.at(&entry_id("u2"))).unwrap());
    for n in 0..3 {
        add(&one, 10 + n);
        add(&other, 20 + n);
    }
    assert_eq!(chain_of(&one), "u1 u10 u11 u12");
    assert_eq!(chain_of(&other), "u1 u2 u20 u21 u22");
    assert_eq!(chain_of(&session), chain_of(&other), "the last entry in log order is the active leaf");
    run(session.select(&entry_id("u11"))).unwrap();
    assert_eq!(chain_of(&session), "u1 u10 u11");
    add(&session, 30);
    assert_eq!(chain_of(&session), "u1 u10 u11 u30");
    let branches = run(session.all_branches()).unwrap();
    assert_eq!(branches.len(), 10);
    let parent_of =
        |id: &str| branches.iter().find(|b| b.record.entry.id().as_str() == id).unwrap().parent.clone();
    assert_eq!(parent_of("u30"), Some(entry_id("u11")));
}

#[test]
fn the_transcript_has_no_part_in_a_handles_place() {
    // Once, a transcript entry moved the handle to its own position, and the next message hung in the air.
    let home = Home::new();
    let session = conversation(&home.open(), "s", 4);
    let handle = run(session.at(&entry_id("u2"))).unwrap();
    run(async { handle.append_transcript(message(50)).await.unwrap().await }).unwrap();
    add(&handle, 9);
    assert_eq!(chain_of(&handle), "u1 u2 u9");
}

#[test]
fn only_one_drives_and_whoever_was_replaced_cannot_write() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    let minute = Duration::from_secs(60);
    let lease = run(session.lease("agent", minute, Claim::IfFree)).unwrap();
    let other = run(home.open().open(session.id())).unwrap();
    let Err(Error::Held { holder, .. }) = run(other.lease("me too", minute, Claim::IfFree)) else {
        panic!("two drivers")
    };
    assert_eq!((holder.pid, holder.what.as_str()), (std::process::id(), "agent"));
    add(lease.session(), 2);
    add(&other, 3);
    run(lease.renew()).unwrap();

    let taken = run(other.lease("takes over", minute, Claim::TakeOver)).unwrap();
    let late = run(async { lease.session().append(message(9)).await?.await });
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    assert!(matches!(run(lease.renew()), Err(Error::Fenced { .. })));
    add(taken.session(), 4);
    assert_eq!(chain_of(&session), "u1 u2 u3 u4");
    run(taken.release()).unwrap();
    assert_eq!(run(session.driver()).unwrap(), None);
    run(session.lease("again", minute, Claim::IfFree)).unwrap();
}

#[test]
fn a_lease_that_was_given_back_is_not_taken_again_by_a_renewal_on_its_way() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    let lease = run(session.lease("agent", Duration::from_secs(60), Claim::IfFree)).unwrap();
    run(lease.release()).unwrap();
    run(lease.renew()).unwrap();
    assert_eq!(run(session.driver()).unwrap(), None);
}

#[test]
fn a_fork_that_was_materialized_still_shows_all_its_branches_and_counts_once() {
    let home = Home::new();
    let store = home.open();
    let parent = conversation(&store, "parent", 3);
    let fork = run(parent.fork(Fork::default())).unwrap();
    add(&fork, 10);
    let before = run(fork.all_branches()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                run(async { home.open().open(fork.id()).await.unwrap().materialize().await }).unwrap()
            });
        }
    });
    let after = run(fork.all_branches()).unwrap();
    let names = |all: &[rethread_store::Branched]| {
        all.iter().map(|b| (b.record.entry.id().clone(), b.parent.clone())).collect::<Vec<_>>()
    };
    assert_eq!(names(&after), names(&before));
    assert_eq!(run(fork.metadata()).unwrap().entry_count, 4);
    assert!(run(store.verify(fork.id())).unwrap().is_ok());
}

#[test]
fn a_lease_that_is_not_renewed_lapses_by_the_observers_own_clock() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    let short = Duration::from_millis(80);
    let lease = run(session.lease("agent", short, Claim::IfFree)).unwrap();
    let other = run(home.open().open(session.id())).unwrap();
    assert!(run(other.driver()).unwrap().is_some());
    std::thread::sleep(short / 2);
    run(lease.renew()).unwrap();
    assert!(run(other.driver()).unwrap().is_some(), "seen anew, it has its whole time again");
    std::thread::sleep(short * 2);
    assert!(run(other.driver()).unwrap().is_none());
    run(other.lease("next", short, Claim::IfFree)).unwrap();
}

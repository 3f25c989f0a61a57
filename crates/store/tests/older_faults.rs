//! Faults of the systems that this store replaces, the ones about checkpoints aside: each is a test of ours.
//!
//! `go` numbers the faults of the Go store, `simulacra` those of its session package. What another test shows already
//! is named there: the transcript is written (`checklist::transcript_storage`), a parent's deletion, circles and
//! entries that are not found (`forks`), the latest session (`forks::children_and_digests_are_never_the_latest`).

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rethread_store::{
    Entry, Error, Filter, Fork, ForkKind, NewSession, Options, Resume, Scope, SessionId, Store,
};

use crate::hanging::Hanging;
use crate::kit::{Home, chain_of, conversation, entry_id, message, run, session_id, tree};

#[test]
fn go_4_picking_a_session_up_again_resets_nothing() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 2);
    run(session.update(|metadata| {
        (metadata.turn_count, metadata.total_cost_usd) = (7, 1.25);
        metadata.exit_reason = Some("end_turn".into());
    }))
    .unwrap();
    let before = run(session.metadata()).unwrap();
    store.close().unwrap();

    let store = home.open();
    let resumed = run(store.resume(Resume::session(session_id("s")))).unwrap();
    assert_eq!(run(resumed.metadata()).unwrap(), before);
    let taken = run(store.create(NewSession::default().id(session_id("s"))));
    assert!(matches!(taken, Err(Error::SessionExists(_))), "creating it again is an error, not a reset");
    assert_eq!(run(resumed.metadata()).unwrap(), before);
}

#[test]
fn go_5_resume_at_records_where_it_came_from() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 3);
    let store = home.open();
    let resume = Resume::session(session_id("s")).at(entry_id("u2")).forked(Fork::default());
    let metadata = run(run(store.resume(resume)).unwrap().metadata()).unwrap();
    assert_eq!((metadata.parent_id, metadata.fork_message_id), (Some(session_id("s")), Some(entry_id("u2"))));
    let unknown = run(store.resume(Resume::session(session_id("s")).at(entry_id("u77"))));
    assert!(matches!(unknown, Err(Error::EntryNotFound { .. })), "never everything instead");
    drop(session);
}

#[test]
fn go_6_an_entry_goes_by_the_name_its_caller_gave_it() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 0);
    let uuid = "b3b0a8a6-2f0b-4f0e-9a53-0f6f0d3c1b11";
    let ack = run(async {
        let entry = Entry::parse(format!(r#"{{"type":"user","uuid":"{uuid}"}}"#)).unwrap();
        session.append(entry).await.unwrap().await.unwrap()
    });
    assert_eq!(ack.records[0].id, entry_id(uuid));
    assert_eq!(chain_of(&run(session.at(&entry_id(uuid))).unwrap()), uuid);
}

#[test]
fn go_7_appending_does_not_wait_for_the_disk_and_metadata_goes_through_the_same_queue() {
    let home = Home::new();
    let backend = Hanging::new(rethread_store::FileBackend::new(home.root()));
    let store = Store::new(backend.clone(), Options::default());
    let session = conversation(&store, "s", 0);
    backend.hang();
    let begun = Instant::now();
    let tickets = run(async {
        let first = session.append(message(1)).await.unwrap();
        let second = session.append_and_save(message(2), |metadata| metadata.turn_count = 1).await.unwrap();
        [first, second, session.append(message(3)).await.unwrap()]
    });
    assert!(begun.elapsed() < Duration::from_secs(1));
    backend.go_on();
    let positions: Vec<_> = tickets.into_iter().flat_map(|ticket| ticket.wait().unwrap().records).collect();
    assert_eq!(positions.iter().map(|placed| placed.position).collect::<Vec<_>>(), [1, 2, 3, 4], "in order");
}

#[test]
fn go_9_a_session_id_can_not_name_another_folder() {
    let home = Home::new();
    let victim = home.folder.path().join("victim");
    std::fs::create_dir_all(&victim).unwrap();
    conversation(&home.open(), "s", 1);
    for hostile in ["../../victim", "..", ".", "s/../../../victim", "/etc"] {
        assert!(hostile.parse::<SessionId>().is_err(), "{hostile}");
    }
    assert!(victim.try_exists().unwrap());
}

#[test]
fn go_11_files_are_not_kept_open_for_ever_and_latest_reads_no_conversation() {
    let home = Home::new();
    let store = home.open();
    run(async {
        for n in 0..150 {
            let session =
                store.create(NewSession::at("/tmp").id(session_id(&format!("s{n}")))).await.unwrap();
            session.append(message(1)).await.unwrap().await.unwrap();
        }
    });
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open < 900, "{open} files open for 150 sessions");
    store.close().unwrap();

    // With its cached metadata in place, a listing does not even open the log.
    let log = home.log(&session_id("s7"));
    let atime = || std::fs::metadata(&log).map(|metadata| (metadata.atime(), metadata.atime_nsec())).unwrap();
    let before = atime();
    let listed = run(home.open().list(&Filter::default())).unwrap().sessions.len();
    assert_eq!((listed, atime()), (150, before));
}

#[test]
fn go_12_a_directory_matches_itself_whatever_its_name() {
    let home = Home::new();
    let store = home.open();
    for name in ["-dash", "with space", "dots.and_under", "ünï"] {
        let cwd = home.folder.path().join(name);
        std::fs::create_dir_all(&cwd).unwrap();
        let session = run(store.create(NewSession::at(&cwd))).unwrap();
        let latest = run(store.latest(&Scope::Directory(cwd))).unwrap().unwrap();
        assert_eq!(latest.id(), session.id(), "{name}");
    }
}

#[test]
fn simulacra_1_a_fork_goes_where_it_is_told_and_a_detached_one_says_where_it_was_made() {
    let home = Home::new();
    let parent = conversation(&home.open(), "s", 4);
    let fork = run(parent.fork(Fork::default().at(entry_id("u2")))).unwrap();
    assert_eq!(chain_of(&fork), "u1 u2");
    let detached = run(parent.fork(Fork::of_kind(ForkKind::Detached).at(entry_id("u3")))).unwrap();
    assert_eq!(run(detached.metadata()).unwrap().fork_message_id, Some(entry_id("u3")));
    let unknown = run(parent.fork(Fork::default().at(entry_id("u9"))));
    assert!(
        matches!(unknown, Err(Error::EntryNotFound { .. })),
        "simulacra 2: never the whole parent instead"
    );
}

#[test]
fn simulacra_4_saving_rewrites_nothing_and_nobody_overwrites_anybody() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    let list: Vec<Entry> = (1..=50).map(message).collect();
    run(async { session.save(&list, |_| {}).await.unwrap().await }).unwrap();
    let before = std::fs::read(home.log(session.id())).unwrap();
    let more: Vec<Entry> = (1..=51).map(message).collect();
    run(async { session.save(&more, |_| {}).await.unwrap().await }).unwrap();
    let after = std::fs::read(home.log(session.id())).unwrap();
    assert!(
        after.starts_with(&before) && after.len() - before.len() < 400,
        "{} bytes",
        after.len() - before.len()
    );

    // Two that saved from the same state: the later one branches, the earlier one's entries stay.
    let (one, other) =
        (run(home.open().open(session.id())).unwrap(), run(home.open().open(session.id())).unwrap());
    for (handle, n) in [(&one, 100), (&other, 200)] {
        let list: Vec<Entry> = (1..=51).map(message).chain([message(n)]).collect();
        run(async { handle.save(&list, |_| {}).await.unwrap().await }).unwrap();
    }
    assert!(run(session.messages_up_to(&entry_id("u100"))).is_ok());
    assert!(chain_of(&session).ends_with("u51 u200"));
}

#[test]
fn simulacra_4_what_cannot_be_read_is_reported_and_never_left_out() {
    let home = Home::new();
    conversation(&home.open(), "good", 1);
    let bad = conversation(&home.open(), "bad", 1);
    // A folder where the log should be: no read of it can succeed.
    std::fs::remove_file(home.log(bad.id())).unwrap();
    std::fs::create_dir(home.log(bad.id())).unwrap();
    let listing = run(home.open().list(&Filter::default())).unwrap();
    assert_eq!(listing.sessions.len(), 1);
    assert_eq!(listing.unreadable.len(), 1, "{listing:?}");
    assert_eq!(listing.unreadable[0].0, session_id("bad"));
}

#[test]
fn simulacra_5_a_child_neither_copies_its_parents_state_nor_its_history() {
    let home = Home::new();
    let parent = conversation(&home.open(), "s", 20);
    run(parent.update(|metadata| drop(metadata.extra.insert("checkpoint_state".into(), "mine".into()))))
        .unwrap();
    let child = run(parent.spawn_child("helper")).unwrap();
    let metadata = run(child.metadata()).unwrap();
    assert!(metadata.extra.is_empty() && metadata.child && metadata.detached);
    let heir = run(parent.fork(Fork::default())).unwrap();
    assert_eq!(chain_of(&heir), chain_of(&parent));
    for session in [&child, &heir] {
        let size: usize = tree(&home.session_folder(session.id()))
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "jsonl"))
            .map(|(_, content)| content.len())
            .sum();
        assert!(size < 1000, "{size} bytes");
    }
}

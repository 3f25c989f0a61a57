//! The checklist of the design that this store grew out of, as far as it concerns the store: a test of each name.

use std::sync::Arc;

use rethread_store::backend::{LogKey, LogName};
use rethread_store::{
    Entry, Error, FileBackend, Filter, Fork, NewSession, OffBackend, Options, Page, Resume, Scope, Store,
};

use crate::kit::{Home, chain_of, conversation, entry_id, ids, message, run, session_id};

#[test]
fn session_crud() {
    let home = Home::new();
    let store = home.open();
    run(async {
        let session = store.create(NewSession::at("/tmp").name("first").model("m-1")).await.unwrap();
        let id = session.id().clone();
        session.append(message(1)).await.unwrap().await.unwrap();
        store.close().unwrap();

        let store = home.open();
        let metadata = store.open(&id).await.unwrap().metadata().await.unwrap();
        assert_eq!((metadata.name.as_deref(), metadata.model.as_deref()), (Some("first"), Some("m-1")));
        assert_eq!((metadata.message_count, metadata.entry_count), (1, 1));
        assert_eq!(store.list(&Filter::default()).await.unwrap().sessions, [metadata]);

        assert!(store.delete(&id).await.unwrap());
        assert!(matches!(store.load(&id).await, Err(Error::Trashed(_))));
        assert!(store.list(&Filter::default()).await.unwrap().sessions.is_empty());
        assert!(!store.delete(&session_id("never-was")).await.unwrap());
        assert!(store.load(&session_id("never-was")).await.unwrap().is_none());
    });
}

#[test]
fn continue_mode() {
    let home = Home::new();
    let here = home.folder.path().join("here");
    let there = home.folder.path().join("there");
    std::fs::create_dir_all(&here).unwrap();
    std::fs::create_dir_all(&there).unwrap();
    let store = home.open();
    run(async {
        let old = store.create(NewSession::at(&here)).await.unwrap();
        let new = store.create(NewSession::at(&here)).await.unwrap();
        let elsewhere = store.create(NewSession::at(&there)).await.unwrap();
        for session in [&new, &elsewhere, &old] {
            session.append(message(1)).await.unwrap().await.unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        // The one with the newest entry, not the one that was created last; and through a path with dots.
        let dotted = there.join("../here/.");
        let picked = store.resume(Resume::latest(&dotted)).await.unwrap();
        assert_eq!(picked.id(), old.id());
        assert_eq!(chain_of(&picked), "u1");
        let empty = home.folder.path().join("empty");
        assert!(matches!(store.resume(Resume::latest(&empty)).await, Err(Error::NothingToContinue(_))));
    });
}

#[test]
fn resume_mode() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 3);
    let store = home.open();
    run(async {
        let resumed = store.resume(Resume::session(session.id().clone())).await.unwrap();
        resumed.append(message(4)).await.unwrap().await.unwrap();
        assert_eq!(chain_of(&resumed), "u1 u2 u3 u4");
        let missing = store.resume(Resume::session(session_id("nope"))).await;
        assert!(matches!(missing, Err(Error::SessionNotFound(id)) if id == session_id("nope")));
    });
}

#[test]
fn resume_at() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 4);
    run(async {
        let before = std::fs::read(home.log(session.id())).unwrap();
        let at = store.resume(Resume::session(session.id().clone()).at(entry_id("u2"))).await.unwrap();
        assert_eq!(chain_of(&at), "u1 u2");
        assert_eq!(std::fs::read(home.log(session.id())).unwrap(), before, "resume-at alone writes nothing");

        at.append(message(10)).await.unwrap().await.unwrap();
        at.append(message(11)).await.unwrap().await.unwrap();
        assert_eq!(chain_of(&at), "u1 u2 u10 u11");
        assert_eq!(chain_of(&session), "u1 u2 u10 u11", "the branch that was written last is the active one");
        assert_eq!(ids(&session.messages_up_to(&entry_id("u4")).await.unwrap()), "u1 u2 u3 u4");
        let unknown = session.messages_up_to(&entry_id("u99")).await;
        assert!(matches!(unknown, Err(Error::EntryNotFound { .. })), "never everything instead");
    });
}

#[test]
fn fork() {
    let home = Home::new();
    let store = home.open();
    let parent = conversation(&store, "parent", 5);
    run(async {
        let fork = parent.fork(Fork::default().at(entry_id("u3")).id(session_id("child"))).await.unwrap();
        let metadata = fork.metadata().await.unwrap();
        assert_eq!(metadata.parent_id, Some(session_id("parent")));
        assert_eq!(metadata.fork_message_id, Some(entry_id("u3")));
        assert_eq!((metadata.message_count, metadata.entry_count), (3, 0));

        fork.append(message(20)).await.unwrap().await.unwrap();
        parent.append(message(6)).await.unwrap().await.unwrap();
        assert_eq!(chain_of(&fork), "u1 u2 u3 u20");
        assert_eq!(chain_of(&parent), "u1 u2 u3 u4 u5 u6");
        let forked = std::fs::metadata(home.log(fork.id())).unwrap().len();
        assert!(forked < 1024, "a fork refers to its parent, it does not copy: {forked} bytes");
    });
}

#[test]
fn jsonl_format() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    store.close().unwrap();
    let path = home.log(session.id());
    let text = std::fs::read_to_string(&path).unwrap();
    for line in text.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).unwrap().is_object(), "{line}");
    }
    assert!(text.ends_with('\n'));

    // A partial write: the last line is cut, the rest is whole, and the next append does not extend it.
    std::fs::write(&path, &text.as_bytes()[..text.len() - 20]).unwrap();
    let session = run(home.open().open(session.id())).unwrap();
    assert_eq!(chain_of(&session), "u1 u2");
    run(async { session.append(message(9)).await.unwrap().await.unwrap() });
    assert_eq!(chain_of(&session), "u1 u2 u9");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&text[..text.len() - 20]), "append-only");
}

#[test]
fn concurrent_safety() {
    let home = Home::new();
    let id = conversation(&home.open(), "s", 0).id().clone();
    // Four stores, as four processes would have them, with four writers each.
    std::thread::scope(|scope| {
        for store in 0..4 {
            let (home, id) = (&home, &id);
            scope.spawn(move || {
                let opened = home.open();
                std::thread::scope(|scope| {
                    for writer in 0..4 {
                        let session = run(opened.open(id)).unwrap();
                        scope.spawn(move || {
                            for n in 0..50 {
                                let text = format!(r#"{{"uuid":"w{store}.{writer}.{n}"}}"#);
                                run(async {
                                    session.append(Entry::parse(text).unwrap()).await.unwrap().await.unwrap()
                                });
                            }
                        });
                    }
                });
                opened.close().unwrap();
            });
        }
    });
    let history = run(run(home.open().open(&id)).unwrap().messages()).unwrap();
    assert_eq!(history.records.len(), 4 * 4 * 50, "one line, nothing lost");
    for store in 0..4 {
        for writer in 0..4 {
            let prefix = format!("w{store}.{writer}.");
            let order: Vec<usize> = history
                .entries()
                .filter_map(|entry| entry.id().as_str().strip_prefix(&prefix)?.parse().ok())
                .collect();
            assert_eq!(order, (0..50).collect::<Vec<_>>(), "each writer's own order");
        }
    }
    assert!(run(home.open().verify(&id)).unwrap().is_ok());
}

#[test]
fn persist_flag() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(OffBackend, Options::default());
    run(async {
        let session = store.create(NewSession::at(folder.path())).await.unwrap();
        session.append(message(1)).await.unwrap().await.unwrap();
        session.append_transcript(message(2)).await.unwrap().await.unwrap();
        session.update(|metadata| metadata.turn_count = 3).await.unwrap();
        assert!(session.messages().await.unwrap().records.is_empty());
        assert!(store.list(&Filter::default()).await.unwrap().sessions.is_empty());
        assert!(store.latest(&Scope::Directory(folder.path().into())).await.unwrap().is_none());
        store.flush().await.unwrap();
        store.close().unwrap();
    });
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn transcript_storage() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    let frames = [r#"{"type":"system","subtype":"init"}"#, r#"{"type":"result","total_cost_usd":0.5}"#];
    run(async {
        for frame in frames {
            session.append_transcript(Entry::parse(frame).unwrap()).await.unwrap().await.unwrap();
        }
        let (entries, next) = run(home.open().open(session.id())).unwrap().transcript(0).await.unwrap();
        assert_eq!(entries.iter().map(|entry| entry.as_str()).collect::<Vec<_>>(), frames);
        assert_eq!(session.transcript(next).await.unwrap().0, []);
        assert_eq!(chain_of(&session), "u1", "it is apart from the conversation");
        let path = session.transcript_path().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 2);
    });
}

#[test]
fn large_sessions() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    run(async {
        let mut tickets = Vec::new();
        for n in 1..=5_000 {
            tickets.push(session.append(message(n)).await.unwrap());
        }
        for ticket in tickets {
            ticket.await.unwrap();
        }
        assert_eq!(session.messages().await.unwrap().records.len(), 5_000);
        assert_eq!(ids(&session.page(Page::Last(2)).await.unwrap()), "u4999 u5000");
        assert_eq!(ids(&session.page(Page::Before(entry_id("u4999"), 2)).await.unwrap()), "u4997 u4998");
        assert_eq!(ids(&session.page(Page::First(2)).await.unwrap()), "u1 u2");
        assert_eq!(ids(&session.page(Page::After(entry_id("u2"), 2)).await.unwrap()), "u3 u4");
        assert_eq!(ids(&session.page(Page::After(entry_id("u5000"), 2)).await.unwrap()), "");
    });
    // One entry over the old limit of 10 MB neither fails nor hides the rest.
    let big = format!(r#"{{"uuid":"big","content":"{}"}}"#, "x".repeat(11 << 20));
    run(async {
        session.append(Entry::parse(big.clone()).unwrap()).await.unwrap().await.unwrap();
        session.append(message(6_000)).await.unwrap().await.unwrap();
        let page = session.page(Page::Last(2)).await.unwrap();
        assert_eq!(page.records[0].entry.as_str(), big);
        assert_eq!(page.records[1].entry.id(), &entry_id("u6000"));
    });
    let backend: Arc<dyn rethread_store::backend::Backend> = Arc::new(FileBackend::new(home.root()));
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    assert_eq!(run(backend.find(&log, &entry_id("u2500"))).unwrap(), Some(2500));
}

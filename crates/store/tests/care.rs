//! Verify, repair and clean up; and metadata that many change at once.

use std::time::Duration;

use rethread_store::backend::{Expect, Space};
use rethread_store::{
    BlobId, Cleaning, Entry, Error, Filter, Mark, Metadata, Mode, NewSession, Scope, Session, Store,
};

use crate::faulty_disk::{Fault, FaultyDisk};
use crate::kit::{Home, chain_of, conversation, entry_id, ids, message, run, session_id, tree, until};

fn damaged(home: &Home, length: usize, damage: impl FnOnce(&mut Vec<String>)) -> Session {
    let store = home.open();
    let session = conversation(&store, "s", length);
    store.close().unwrap();
    let path = home.log(session.id());
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    damage(&mut lines);
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    run(home.open().open(session.id())).unwrap()
}

#[test]
fn a_repair_plans_backs_up_fixes_and_proves() {
    let home = Home::new();
    let session = damaged(&home, 6, |lines| {
        lines[3] = lines[3].replace("message 3", "messagE 3");
        // A torn record with the next one glued to it: only the torn one is lost.
        let glued = format!("{}{}", &lines[5][..30], lines[6]);
        lines.truncate(5);
        lines.push(glued);
    });
    let store = home.open();
    // The index is derived from the log; whoever looks at the log may set it right.
    let kept = || {
        let files = tree(&home.session_folder(session.id())).into_iter();
        files.filter(|(path, _)| path.extension().is_none_or(|it| it != "ids")).collect::<Vec<_>>()
    };
    let before = kept();
    let plan = run(store.repair(session.id(), Mode::Plan)).unwrap();
    assert_eq!(plan.before.problems.len(), 3, "{:?}", plan.before.problems);
    assert!(plan.after.is_none());
    assert!(kept() == before, "a plan changes nothing");

    let done = run(store.repair(session.id(), Mode::Apply)).unwrap();
    let rewrite = &done.rewrites[0].1;
    assert_eq!((rewrite.salvaged, rewrite.lost.clone()), (1, vec![3, 5]));
    let after = done.after.unwrap();
    assert_eq!((after.problems, after.lost), (vec![], 2));
    let history = run(run(home.open().open(session.id())).unwrap().messages()).unwrap();
    assert_eq!(ids(&history), "u1 u2 u4 u6");
    assert_eq!(history.gaps.len(), 2, "what is lost is still said to be lost");
    let backup = std::fs::read(rewrite.backup.as_ref().unwrap().join("messages.jsonl")).unwrap();
    assert!(before.iter().any(|(_, content)| *content == backup), "the files as they were");
    // And it goes on.
    let session = run(store.open(session.id())).unwrap();
    run(async { session.append(message(7)).await.unwrap().await }).unwrap();
    assert_eq!(chain_of(&session), "u1 u2 u4 u6 u7");
}

#[test]
fn a_repair_joins_segments_and_rebuilds_metadata() {
    let home = Home::new();
    let session = damaged(&home, 3, |lines| lines.insert(1, "junk".into()));
    std::fs::write(home.session_folder(session.id()).join("metadata.json"), "{").unwrap();
    let store = home.open();
    let done = run(store.repair(session.id(), Mode::Apply)).unwrap();
    assert!(done.after.unwrap().is_ok());
    assert_eq!(chain_of(&session), "u1 u2 u3");
    let whole = run(store.repair(session.id(), Mode::Apply)).unwrap();
    assert!(whole.rewrites.is_empty(), "nothing to do for a whole session");
}

#[test]
fn metadata_changed_by_many_at_once_loses_no_change() {
    let home = Home::new();
    let id = conversation(&home.open(), "s", 1).id().clone();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (home, id) = (&home, &id);
            scope.spawn(move || {
                let session = run(home.open().open(id)).unwrap();
                for n in 0..10 {
                    let tag = format!("{writer}.{n}");
                    run(session.update(move |metadata| {
                        metadata.turn_count += 1;
                        metadata.tags.push(tag.clone());
                    }))
                    .unwrap();
                }
            });
        }
    });
    let metadata = run(home.open().metadata(&id)).unwrap();
    assert_eq!((metadata.turn_count, metadata.tags.len()), (40, 40));
}

#[test]
fn append_and_save_is_one_step() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    run(async {
        let change = |metadata: &mut Metadata| metadata.total_cost_usd += 0.5;
        session.append_and_save(message(2), change).await.unwrap().await.unwrap();
    });
    let metadata = run(home.open().metadata(session.id())).unwrap();
    assert_eq!((metadata.message_count, metadata.total_cost_usd), (2, 0.5));
    let text = std::fs::read_to_string(home.log(session.id())).unwrap();
    assert!(text.lines().nth(2).unwrap().contains(" e u2 1 "), "a group of two: {text}");
}

#[test]
fn save_merges_appends_what_is_new_and_branches_where_it_diverges() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    let created = run(session.metadata()).unwrap().created_at;
    let save = |messages: &[Entry], name: &'static str| {
        run(async {
            let change = move |metadata: &mut Metadata| metadata.name = Some(name.into());
            session.save(messages, change).await.unwrap().await.unwrap();
        });
        (chain_of(&session), run(session.metadata()).unwrap())
    };
    let list = |numbers: &[usize]| numbers.iter().map(|n| message(*n)).collect::<Vec<_>>();
    assert_eq!(save(&list(&[1, 2]), "a").0, "u1 u2");
    assert_eq!(save(&list(&[1, 2]), "b").0, "u1 u2");
    let (chain, metadata) = save(&list(&[1, 2, 3]), "c");
    assert_eq!(chain, "u1 u2 u3");
    assert_eq!(
        (metadata.name.as_deref(), metadata.entry_count, metadata.created_at),
        (Some("c"), 3, created)
    );
    assert_eq!(save(&list(&[1, 9]), "d").0, "u1 u9", "a diverging end is a branch");
    assert_eq!(save(&list(&[1]), "e").0, "u1", "a shorter list selects");
    assert_eq!(save(&list(&[7, 8]), "f").0, "u7 u8", "another beginning is another root");
    assert_eq!(
        ids(&run(session.messages_up_to(&entry_id("u3"))).unwrap()),
        "u1 u2 u3",
        "nothing was taken out"
    );
    assert!(run(store.verify(session.id())).unwrap().is_ok());
}

#[test]
fn saving_again_and_again_doubles_nothing() {
    // Once, a handle with its own place forgot where its last save had branched off.
    let home = Home::new();
    let session = conversation(&home.open(), "s", 3);
    let handle = run(session.at(&entry_id("u2"))).unwrap();
    let list: Vec<Entry> = [1, 10, 11].map(message).to_vec();
    for _ in 0..3 {
        run(async { handle.save(&list, |_| {}).await.unwrap().await }).unwrap();
        assert_eq!(chain_of(&handle), "u1 u10 u11");
    }
    assert_eq!(run(session.metadata()).unwrap().entry_count, 5);
}

#[test]
fn a_save_while_the_disk_is_full_is_refused_and_doubles_nothing() {
    // Once, what still waited in the queue was not seen, and every save added it again.
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let backend = rethread_store::FileBackend::on(std::sync::Arc::new(disk.clone()), home.root());
    let store = Store::new(backend, rethread_store::Options::default());
    let session = conversation(&store, "s", 1);
    disk.set(Fault::Full(0));
    let list: Vec<Entry> = (1..=3).map(message).collect();
    let first = run(session.save(&list, |_| {})).unwrap();
    until("the trouble is seen", || !store.health().is_ok());
    assert!(matches!(run(session.save(&list, |_| {})), Err(Error::NoSpace { .. })));
    disk.set(Fault::None);
    first.wait().unwrap();
    run(async { session.save(&list, |_| {}).await.unwrap().await }).unwrap();
    assert_eq!(chain_of(&session), "u1 u2 u3");
}

#[test]
fn lists_are_newest_first_filtered_and_paged() {
    let home = Home::new();
    let store = home.open();
    for n in 1..=7 {
        let session = conversation(&store, &format!("s{n}"), 0);
        let text = format!(r#"{{"role":"user","content":"task {n}","timestamp":"2026-01-0{n}T00:00:00Z"}}"#);
        run(async { session.append(Entry::parse(text).unwrap()).await.unwrap().await }).unwrap();
    }
    let page = |after: Option<Mark>| {
        let mut filter = Filter::default();
        (filter.limit, filter.after) = (3, after);
        let listing = run(store.list(&filter)).unwrap();
        let names: Vec<_> = listing.sessions.iter().map(|m| m.session_id.to_string()).collect();
        (names.join(" "), listing.next)
    };
    let (first, next) = page(None);
    let (second, later) = page(next);
    let (third, end) = page(later);
    assert_eq!((first.as_str(), second.as_str(), third.as_str(), end), ("s7 s6 s5", "s4 s3 s2", "s1", None));
    let mut filter = Filter::default();
    filter.text = Some("TASK 4".into());
    assert_eq!(run(store.list(&filter)).unwrap().sessions[0].first_prompt.as_deref(), Some("task 4"));
    // A change of metadata is no entry: the order stays, and so does the latest.
    let old = run(store.open(&session_id("s1"))).unwrap();
    run(old.update(|metadata| metadata.name = Some("renamed".into()))).unwrap();
    assert_eq!(page(None).0, "s7 s6 s5");
    assert_eq!(run(store.latest(&Scope::Directory("/tmp".into()))).unwrap().unwrap().id(), &session_id("s7"));
}

#[test]
fn renaming_does_not_make_a_session_the_latest_even_without_times_in_its_entries() {
    let home = Home::new();
    let store = home.open();
    let (old, new) = (conversation(&store, "old", 1), conversation(&store, "new", 0));
    std::thread::sleep(Duration::from_millis(5));
    run(async { new.append(message(1)).await.unwrap().await }).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    run(old.update(|metadata| metadata.name = Some("renamed".into()))).unwrap();
    let latest =
        |store: &Store| run(store.latest(&Scope::Directory("/tmp".into()))).unwrap().unwrap().id().clone();
    assert_eq!(latest(&store), session_id("new"));
    store.close().unwrap();
    assert_eq!(latest(&home.open()), session_id("new"));
}

#[test]
fn a_damaged_session_is_listed_like_any_other() {
    let home = Home::new();
    let session = damaged(&home, 3, |lines| lines[1] = "garbage".into());
    std::fs::remove_file(home.session_folder(session.id()).join("metadata.json")).unwrap();
    let listing = run(home.open().list(&Filter::default())).unwrap();
    assert_eq!((listing.sessions.len(), listing.unreadable.len()), (1, 0));
}

#[test]
fn a_damaged_last_record_is_a_gap_and_not_just_a_shorter_history() {
    let home = Home::new();
    let session = damaged(&home, 3, |lines| lines[3] = lines[3].replace("message 3", "messagE 3"));
    let history = run(session.messages()).unwrap();
    assert_eq!((ids(&history).as_str(), history.gaps.len()), ("u1 u2", 1));
    assert_eq!(history.gaps[0].depths, 3..=3);
}

#[test]
fn what_another_branch_says_never_stands_in_for_a_lost_entry() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 2);
    let branch = run(session.at(&entry_id("u1"))).unwrap();
    run(async { branch.append(message(20)).await.unwrap().await }).unwrap();
    let back = run(session.at(&entry_id("u2"))).unwrap();
    for n in [3, 4] {
        run(async { back.append(message(n)).await.unwrap().await }).unwrap();
    }
    store.close().unwrap();
    let path = home.log(session.id());
    let text = std::fs::read_to_string(&path).unwrap().replace("message 3", "messagE 3");
    std::fs::write(&path, text).unwrap();
    let session = run(home.open().open(session.id())).unwrap();
    let history = run(session.messages()).unwrap();
    assert_eq!((ids(&history).as_str(), history.gaps[0].depths.clone()), ("u1 u4", 2..=3));
    let first = run(session.page(rethread_store::Page::First(9))).unwrap();
    assert_eq!((ids(&first).as_str(), first.gaps.len()), ("u1 u4", 1));
}

#[test]
fn a_session_of_which_nothing_can_be_read_is_damaged_and_not_absent() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    store.close().unwrap();
    for damage in [None, Some(""), Some("junk\njunk\n")] {
        match damage {
            None => std::fs::remove_file(home.log(session.id())).unwrap(),
            Some(text) => std::fs::write(home.log(session.id()), text).unwrap(),
        }
        let store = home.open();
        assert!(matches!(run(store.load(session.id())), Err(Error::Damaged { .. })), "{damage:?}");
        let listing = run(store.list(&Filter::default())).unwrap();
        assert_eq!((listing.sessions.len(), listing.unreadable.len()), (0, 1), "{damage:?}");
        assert!(!run(store.verify(session.id())).unwrap().is_ok(), "{damage:?}");
        let again = run(store.create(NewSession::default().id(session.id().clone())));
        assert!(matches!(again, Err(Error::SessionExists(_))), "{damage:?}");
    }
}

#[test]
fn a_log_that_was_cut_says_how_much_it_lost_also_after_a_repair() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 6);
    run(session.update(|metadata| metadata.name = Some("kept".into()))).unwrap();
    store.close().unwrap();
    let text = std::fs::read_to_string(home.log(session.id())).unwrap();
    let half: String = text.lines().skip(1).take(3).map(|line| format!("{line}\n")).collect();
    std::fs::write(home.log(session.id()), half).unwrap();
    let store = home.open();
    let report = run(store.verify(session.id())).unwrap();
    assert!(
        report.problems.iter().any(|problem| problem.to_string().contains("records 4 to 7 are lost")),
        "{report:?}"
    );
    // An append does not wipe out what is known of the loss.
    let appending = home.open();
    let handle = run(appending.open(session.id())).unwrap();
    run(async { handle.append(message(50)).await.unwrap().await }).unwrap();
    appending.close().unwrap();
    assert!(!run(store.verify(session.id())).unwrap().is_ok());
    let done = run(store.repair(session.id(), Mode::Apply)).unwrap();
    let after = done.after.unwrap();
    assert_eq!((after.problems, after.lost), (vec![], 3));
    let metadata = run(store.metadata(session.id())).unwrap();
    assert_eq!(
        (metadata.name.as_deref(), metadata.cwd.as_deref()),
        (Some("kept"), Some("/tmp")),
        "its beginning"
    );
}

#[test]
fn metadata_that_was_altered_by_hand_is_not_believed() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 3);
    store.close().unwrap();
    let path = home.session_folder(session.id()).join("metadata.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"position\"", "\"psition\"", 1)).unwrap();
    let store = home.open();
    let fork = run(async { store.open(session.id()).await.unwrap().fork(Default::default()).await }).unwrap();
    assert_eq!(chain_of(&fork), "u1 u2 u3");
}

#[test]
fn a_log_in_another_sessions_folder_is_found() {
    let home = Home::new();
    let store = home.open();
    let (one, other) = (conversation(&store, "one", 2), conversation(&store, "other", 3));
    store.close().unwrap();
    std::fs::copy(home.log(other.id()), home.log(one.id())).unwrap();
    let report = run(home.open().verify(one.id())).unwrap();
    assert!(report.problems.contains(&rethread_store::Problem::Foreign("other".into())), "{report:?}");
    assert!(run(home.open().verify(other.id())).unwrap().is_ok());
}

#[test]
fn gc_keeps_what_is_referred_to_and_finishes_what_was_interrupted() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 1);
    run(async {
        let backend = store.backend();
        for content in [&b"used"[..], b"unused"] {
            backend.put_blob(&BlobId::of(content), &mut &content[..]).await.unwrap();
        }
        let record = format!(r#"{{"before":{{"hash":"{}"}}}}"#, BlobId::of(b"used"));
        let log = rethread_store::backend::LogKey::new(
            session.id().clone(),
            rethread_store::backend::LogName::Checkpoints,
        );
        let stamp = rethread_store::Stamp {
            position: 0,
            parent: None,
            depth: 1,
            kind: rethread_store::Kind::Entry,
            id: entry_id("c1"),
            left: 0,
            unsettled: 0,
        };
        let line = rethread_store::Line::new(&Entry::parse(record).unwrap(), stamp);
        backend.append(&log, 0, &[line], rethread_store::backend::Durability::Synced).await.unwrap();
        let at_once = Cleaning { blobs_after: Duration::ZERO, grace: Duration::ZERO, ..Cleaning::default() };
        assert!(
            store.gc(&Cleaning::default()).await.unwrap().blobs.is_empty(),
            "fresh content is left alone"
        );
        let planned = Cleaning { mode: Mode::Plan, ..at_once.clone() };
        assert_eq!(store.gc(&planned).await.unwrap().blobs, [BlobId::of(b"unused")]);
        store.delete(session.id()).await.unwrap();
        assert_eq!(store.gc(&at_once).await.unwrap().blobs, [BlobId::of(b"unused")]);
        let left = backend.list(Space::Blobs, None, 9).await.unwrap();
        assert_eq!(left.len(), 1, "a session in the trash still needs its content");
        let purging = Cleaning { trash_after: Some(Duration::ZERO), ..at_once };
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(store.gc(&purging).await.unwrap().purged, [session.id().clone()]);
        assert!(backend.list(Space::Sessions, None, 9).await.unwrap().is_empty());
    });
}

#[test]
fn content_that_nothing_refers_to_waits_for_its_time_of_grace_and_stays_if_somebody_needs_it_meanwhile() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 1);
    let grace = Duration::from_secs(3);
    let cleaning = Cleaning { blobs_after: Duration::ZERO, grace, ..Cleaning::default() };
    let [unused, again, referred] = [&b"unused"[..], b"put again", b"referred to"].map(BlobId::of);
    run(async {
        let backend = store.backend();
        for content in [&b"unused"[..], b"put again", b"referred to"] {
            backend.put_blob(&BlobId::of(content), &mut &content[..]).await.unwrap();
        }
        std::thread::sleep(Duration::from_millis(30));
        let planned = store.gc(&Cleaning { mode: Mode::Plan, ..cleaning.clone() }).await.unwrap();
        assert_eq!((planned.blobs.len(), planned.waiting.len()), (0, 3));
        let first = store.gc(&cleaning).await.unwrap();
        assert_eq!((first.blobs.len(), first.waiting.len()), (0, 3));
        // While it waits everything can be read, and be needed after all.
        assert!(backend.get_blob(&unused, 0..9).await.unwrap().is_some());
        std::thread::sleep(Duration::from_millis(30));
        backend.put_blob(&again, &mut &b"put again"[..]).await.unwrap();
        let record = format!(r#"{{"before":{{"hash":"{referred}"}}}}"#);
        session.append_checkpoint(Entry::parse(record).unwrap()).await.unwrap();
        assert_eq!(store.gc(&cleaning).await.unwrap().blobs, []);
        std::thread::sleep(grace);
        let last = store.gc(&cleaning).await.unwrap();
        assert!(last.blobs.contains(&unused) && !last.blobs.contains(&referred), "{last:?}");
        assert!(backend.get_blob(&unused, 0..9).await.unwrap().is_none());
        assert!(backend.get_blob(&referred, 0..9).await.unwrap().is_some());
    });
}

#[test]
fn content_that_an_interrupted_removal_took_aside_can_be_read_and_comes_back() {
    let home = Home::new();
    let blob = BlobId::of(b"content");
    let name = blob.to_string();
    let path = home.root().join("blobs/sha256").join(&name[..2]).join(&name[2..]);
    let store = home.open();
    run(store.backend().put_blob(&blob, &mut &b"content"[..])).unwrap();
    std::fs::rename(&path, path.with_file_name(format!(".{}.going", &name[2..]))).unwrap();
    assert!(run(store.backend().get_blob(&blob, 0..9)).unwrap().is_some());
    run(store.gc(&Cleaning::default())).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"content");
}

#[test]
fn damaged_content_is_healed_by_whoever_puts_it_again() {
    let home = Home::new();
    let content = b"the right content";
    let blob = BlobId::of(content);
    let name = blob.to_string();
    let path = home.root().join("blobs/sha256").join(&name[..2]).join(&name[2..]);
    let put = || {
        let store = home.open();
        run(store.backend().put_blob(&blob, &mut &content[..])).unwrap();
        run(store.backend().put_blobs(&vec![(blob, bytes::Bytes::from_static(content)); 6])).unwrap();
    };
    put();
    for damage in [&b"the wrong content"[..], b"", b"the right", &[0; 17]] {
        std::fs::write(&path, damage).unwrap();
        let store = home.open();
        let read = run(store.backend().get_blob(&blob, 0..u64::MAX));
        assert!(matches!(read, Err(Error::Damaged { .. })), "{read:?}");
        put();
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}

#[test]
fn project_memory_is_one_text_for_all_directories_of_a_repository() {
    let home = Home::new();
    let repository = home.folder.path().join("repository");
    let inner = repository.join("src/deep");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir_all(repository.join(".git")).unwrap();
    let store = home.open();
    run(async {
        assert_eq!(store.project_memory(&inner).await.unwrap(), None);
        let first = store.set_project_memory(&inner, "remember", Expect::Absent).await.unwrap();
        assert_eq!(store.project_memory(&repository).await.unwrap(), Some(first.clone()));
        let second = Expect::Version(first.version.clone());
        store.set_project_memory(&repository, "more", second.clone()).await.unwrap();
        let late = store.set_project_memory(&repository, "lost?", second).await;
        assert!(matches!(late, Err(Error::Contended(_))), "nobody overwrites what they have not seen");
        assert_eq!(store.project_memory(&inner).await.unwrap().unwrap().text, "more");
    });
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_left_alone() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    std::fs::write(home.root().join("format.json"), "{\"rethread\":99}\n").unwrap();
    let before = tree(&home.root());
    let store = home.open();
    assert!(matches!(run(store.load(session.id())), Err(Error::NewerFormat { .. })));
    assert!(matches!(run(store.list(&Filter::default())), Err(Error::NewerFormat { .. })));
    assert!(matches!(run(store.create(NewSession::default())), Err(Error::NewerFormat { .. })));
    assert!(matches!(run(store.delete(session.id())), Err(Error::NewerFormat { .. })));
    assert_eq!(tree(&home.root()), before);
}

#[test]
fn reading_a_store_that_is_not_there_makes_nothing() {
    let home = Home::new();
    let store = home.open();
    run(async {
        assert!(store.list(&Filter::default()).await.unwrap().sessions.is_empty());
        assert!(store.load(&session_id("s")).await.unwrap().is_none());
        assert!(!store.delete(&session_id("s")).await.unwrap());
        assert!(!store.purge(&session_id("s")).await.unwrap());
        assert!(matches!(store.verify(&session_id("s")).await, Err(Error::SessionNotFound(_))));
        store.gc(&Cleaning::default()).await.unwrap();
    });
    store.close().unwrap();
    assert!(!home.root().try_exists().unwrap());
}

//! The traps that peers fell into, as far as they concern a store: each is a test here or is named with its test.
//!
//! Shown elsewhere already: a parent that is deleted never shortens its forks (`forks`), metadata that lags behind the
//! log is not believed (`care`), a lock file that was replaced does not make two holders (`promises::d13_…`).
//!
//! No matter of this crate: `git clean` and `git reset` in a restore, a failed capture that stands for the previous tree,
//! size limits together with "delete what is missing", borrowed objects of a repository (checkpoints); WAL on network
//! disks, transactions that upgrade, the switch to WAL (SQLite); part names made of the wall clock (S3).

mod clearing;
mod cramped;
mod idle;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rethread_store::{Entry, Error, Filter, Resume, Scope, Session, Start};

use crate::kit::{Home, chain_of, conversation, message, run, session_id, tree};

fn add(session: &Session, entry: Entry) {
    run(async { session.append(entry).await.unwrap().await }).unwrap();
}

/// Advisory lock files that are removed: two then hold "the" lock, each its own file.
#[test]
fn a_lock_file_that_somebody_keeps_removing_costs_no_record_and_doubles_none() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 0);
    let (lock, done) = (home.session_folder(session.id()).join("lock"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (home, id) = (&home, session.id());
                scope.spawn(move || {
                    let session = run(home.open().open(id)).unwrap();
                    (0..40).for_each(|n| add(&session, message(writer * 1000 + n)));
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                drop(std::fs::remove_file(&lock));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let session = run(home.open().open(session.id())).unwrap();
    let chain = chain_of(&session);
    let mut found: Vec<&str> = chain.split(' ').collect();
    let own = |writer: usize| (0..40).map(move |n| format!("u{}", writer * 1000 + n));
    for writer in 0..4 {
        let kept: Vec<&str> = found.iter().copied().filter(|id| own(writer).any(|own| own == **id)).collect();
        assert_eq!(kept, own(writer).collect::<Vec<_>>(), "each once, in its writer's order");
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 160);
}

/// A buffer in memory that is presented as replay: who comes late misses the beginning.
#[test]
fn who_follows_late_or_slowly_gets_everything_once_and_in_order() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    let batch = |from: usize| (from..from + 1500).map(message).collect::<Vec<_>>();
    run(async { session.append_all(batch(1)).await.unwrap().await }).unwrap();
    let late = run(home.open().open(session.id())).unwrap();
    let (all, part) =
        (run(late.follow(Start::Beginning)).unwrap(), run(late.follow(Start::Position(700))).unwrap());
    run(async { session.append_all(batch(1501)).await.unwrap().await }).unwrap();
    for (follow, from) in [(all, 1), (part, 700)] {
        for n in from..=3000 {
            let record = follow.next_blocking().unwrap().unwrap();
            assert_eq!((record.position, record.entry.id().as_str()), (n as u64, format!("u{n}").as_str()));
        }
    }
}

/// Names, parts or records that are put in order by the wall clock, which goes back as it likes.
#[test]
fn records_stay_in_the_order_they_were_appended_in_whatever_the_clocks_say() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    for n in 1..=9 {
        let back = 2030 - n;
        let text =
            format!(r#"{{"uuid":"u{n}","role":"user","content":"x","timestamp":"{back}-01-01T00:00:00Z"}}"#);
        add(&session, Entry::parse(text).unwrap());
        idle::set_back(&home.session_folder(session.id()), n as u64);
    }
    store.close().unwrap();
    let session = run(home.open().open(session.id())).unwrap();
    assert_eq!(chain_of(&session), "u1 u2 u3 u4 u5 u6 u7 u8 u9");
    let follow = run(session.follow(Start::Beginning)).unwrap();
    let followed: Vec<u64> = (1..=9).map(|_| follow.next_blocking().unwrap().unwrap().position).collect();
    assert_eq!(followed, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/// A resume that makes an empty file and puts it over the real one later (gemini-cli#29198, claude-code#41344).
#[test]
fn picking_a_session_up_without_a_word_changes_no_log_and_an_unknown_one_makes_nothing() {
    let home = Home::new();
    let store = home.open();
    let id = conversation(&store, "s", 3).id().clone();
    store.close().unwrap();
    let logs = || -> Vec<_> {
        let files = tree(&home.root()).into_iter();
        files.filter(|(path, _)| path.extension().is_some_and(|extension| extension == "jsonl")).collect()
    };
    let before = logs();
    for _ in 0..2 {
        let store = home.open();
        let session = run(store.resume(Resume::session(id.clone()))).unwrap();
        run(store.resume(Resume::latest("/tmp"))).unwrap();
        run(store.list(&Filter::everything())).unwrap();
        run(session.transcript(0)).unwrap();
        drop(run(session.follow(Start::Now)).unwrap());
        let unknown = run(store.resume(Resume::session(session_id("nobody"))));
        assert!(matches!(unknown, Err(Error::SessionNotFound(_))), "{unknown:?}");
        assert_eq!(
            run(store.latest(&Scope::Directory("/nowhere".into()))).unwrap().map(|s| s.id().clone()),
            None
        );
        store.close().unwrap();
        assert_eq!(logs(), before);
    }
    assert!(!home.session_folder(&session_id("nobody")).try_exists().unwrap());
}

/// The same while it is in use: a log that a sync tool has moved away is not begun anew in its place.
#[test]
fn a_log_that_is_away_for_a_while_is_not_begun_anew() {
    let home = Home::new();
    let store = home.open();
    let id = conversation(&store, "s", 3).id().clone();
    let (path, away, bundle) =
        (home.log(&id), home.folder.path().join("away"), home.folder.path().join("bundle"));
    run(store.export(&id, &mut std::fs::File::create(&bundle).unwrap())).unwrap();
    store.close().unwrap();
    let store = home.open();
    let session = run(store.open(&id)).unwrap();
    run(session.settle()).unwrap();
    std::fs::rename(&path, &away).unwrap();
    let lost = run(async { session.append(message(4)).await?.await });
    assert!(matches!(lost, Err(Error::Gone(_))), "{lost:?}");
    drop(store.close());
    let store = home.open();
    let again = run(store.open(session.id()));
    assert!(matches!(again, Err(Error::Damaged { .. })), "{again:?}");
    let imported = run(store.import_bundle(&bundle, None));
    assert!(matches!(imported, Err(Error::SessionExists(_))), "{imported:?}");
    assert!(!path.try_exists().unwrap(), "nothing takes its place");
    std::fs::rename(&away, &path).unwrap();
    let session = run(home.open().open(session.id())).unwrap();
    add(&session, message(5));
    assert_eq!(chain_of(&session), "u1 u2 u3 u5");
}

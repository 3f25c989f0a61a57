//! What a listing costs, and that its cache can be trusted.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rethread_store::{FileBackend, Filter, Metadata, Mode, Options, Store};

use crate::faulty_disk::FaultyDisk;
use crate::kit::{Home, conversation, message, run, session_id};

/// More than a listing reads without keeping what it learnt.
const MANY: usize = 40;

/// Makes sessions, and lists them once.
fn many() -> (Home, Vec<Metadata>) {
    let home = Home::new();
    let store = home.open();
    for n in 0..MANY {
        conversation(&store, &format!("s{n:02}"), 2);
    }
    store.close().unwrap();
    // What was written just now may not be durable, and is not kept.
    for n in 0..MANY {
        let log =
            std::fs::File::options().append(true).open(home.log(&session_id(&format!("s{n:02}")))).unwrap();
        log.set_modified(SystemTime::now() - Duration::from_secs(3600 - n as u64)).unwrap();
    }
    let listed = list(&home.open());
    assert_eq!(listed.len(), MANY);
    (home, listed)
}

fn list(store: &Store) -> Vec<Metadata> {
    let listing = run(store.list(&Filter::default())).unwrap();
    assert!(listing.unreadable.is_empty());
    listing.sessions
}

/// Lists as a new process would. Returns what was listed, and which files of sessions were opened for it.
fn watched(home: &Home) -> (Vec<Metadata>, Vec<PathBuf>) {
    let disk = FaultyDisk::default();
    let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), Options::default());
    let listed = list(&store);
    let sessions = home.root().join("sessions");
    (listed, disk.opened().into_iter().filter(|path| path.starts_with(&sessions)).collect())
}

#[test]
fn a_listing_opens_no_session_that_is_as_it_was() {
    let (home, before) = many();
    let (listed, opened) = watched(&home);
    assert_eq!((listed, opened), (before, vec![]));
}

#[test]
fn a_session_that_was_written_to_is_read_again_and_no_other() {
    let (home, before) = many();
    let changed = session_id("s07");
    let store = home.open();
    let session = run(store.open(&changed)).unwrap();
    run(async { session.append(message(3)).await.unwrap().await }).unwrap();
    // The process dies here: nothing is written when it is done.
    std::mem::forget(store);
    let (listed, opened) = watched(&home);
    assert_eq!(listed[0].session_id, changed, "the newest entry is the newest session");
    assert_eq!(listed[0].message_count, 3);
    assert_eq!(listed.len(), before.len());
    let folder = home.session_folder(&changed);
    assert!(!opened.is_empty() && opened.iter().all(|path| path.starts_with(&folder)), "{opened:?}");
}

#[test]
fn what_happens_to_sessions_shows_in_the_next_listing() {
    let (home, before) = many();
    let store = home.open();
    run(store.delete(&session_id("s01"))).unwrap();
    run(store.purge(&session_id("s02"))).unwrap();
    conversation(&store, "new", 1);
    let renamed = run(store.open(&session_id("s03"))).unwrap();
    run(renamed.update(|metadata| metadata.name = Some("another".into()))).unwrap();
    let (listed, _) = watched(&home);
    let find = |id: &str| listed.iter().find(|metadata| metadata.session_id.as_str() == id);
    assert_eq!(listed.len(), before.len() - 1);
    assert!(find("s01").is_none() && find("s02").is_none() && find("new").is_some());
    assert_eq!(find("s03").unwrap().name.as_deref(), Some("another"));
}

#[test]
fn a_catalog_that_is_missing_damaged_or_of_another_store_changes_nothing() {
    let (home, before) = many();
    let catalog = home.root().join("catalog.json");
    let good = std::fs::read(&catalog).unwrap();
    let (other, _) = many();
    let foreign = std::fs::read(other.root().join("catalog.json")).unwrap();
    for bytes in [&b""[..], b"{}", &good[..good.len() / 2], &[&good[..], b"x"].concat(), &foreign] {
        std::fs::write(&catalog, bytes).unwrap();
        assert_eq!(list(&home.open()), before);
    }
    std::fs::remove_file(&catalog).unwrap();
    assert_eq!(list(&home.open()), before);
}

#[test]
fn pages_of_a_listing_follow_each_other_without_a_gap() {
    let (home, all) = many();
    let store = home.open();
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let mut filter = Filter::default();
        (filter.limit, filter.after) = (7, after);
        let page = run(store.list(&filter)).unwrap();
        pages.extend(page.sessions);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, all);
}

#[test]
fn what_a_listing_remembers_of_a_growing_log_does_not_outlive_a_repair() {
    let home = Home::new();
    // A journal would give back what is lost below.
    let writer = Store::new(FileBackend::new(home.root()).with_journal(None, 0), Options::default());
    let session = conversation(&writer, "s", 50);
    assert_eq!(list(&home.open())[0].message_count, 50);
    let remembered = home.session_folder(session.id()).join("listed.json");
    assert!(remembered.try_exists().unwrap(), "a writer that was not closed has left no metadata");
    let log = std::fs::read(home.log(session.id())).unwrap();
    let kept = log.split_inclusive(|byte| *byte == b'\n').enumerate().filter(|(line, _)| *line != 20);
    let damaged: Vec<u8> = kept.flat_map(|(_, line)| line.to_vec()).collect();
    std::fs::write(home.log(session.id()), damaged).unwrap();

    run(home.open().repair(session.id(), Mode::Apply)).unwrap();

    assert!(!remembered.try_exists().unwrap());
    assert_eq!(list(&home.open())[0].entry_count, 49);
}

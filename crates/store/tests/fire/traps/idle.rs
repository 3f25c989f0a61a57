//! Cleaning up at the start, by age: it removes a long-idle user's whole history at once (claude-code#95203).

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rethread_store::backend::{Durability, LogKey, LogName};
use rethread_store::{
    Archive, BlobId, Cleaning, Entry, Filter, ForkKind, Kind, Line, Mode, Scope, Stamp, Store,
};

use crate::kit::{Home, conversation, entry_id, run, tree};

const YEAR: u64 = 366 * 24 * 3600;

/// Makes everything below a folder so many years older.
pub(super) fn set_back(folder: &Path, years: u64) {
    let then = SystemTime::now() - Duration::from_secs(YEAR * years);
    let mut paths: Vec<_> = tree(folder).into_iter().map(|(path, _)| path).collect();
    let folders: Vec<_> = paths.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
    paths.extend(folders);
    for path in paths {
        let times = FileTimes::new().set_accessed(then).set_modified(then);
        File::open(&path).unwrap().set_times(times).unwrap();
    }
}

/// A capture that refers to some content, as the checkpoints log holds it.
fn capture(store: &Store, session: &rethread_store::Session, content: &[u8]) {
    let blob = BlobId::of(content);
    let record = format!(r#"{{"before":{{"hash":"{blob}"}}}}"#);
    let (id, kind) = (entry_id("c1"), Kind::Entry);
    let stamp = Stamp { position: 0, parent: None, depth: 1, kind, id, left: 0, unsettled: 0 };
    let line = Line::new(&Entry::parse(record).unwrap(), stamp);
    let log = LogKey::new(session.id().clone(), LogName::Checkpoints);
    run(async {
        store.backend().put_blob(&blob, &mut &content[..]).await.unwrap();
        store.backend().append(&log, 0, &[line], Durability::Synced).await.unwrap();
    });
}

#[test]
fn a_store_that_nobody_opened_for_years_loses_nothing_by_being_opened_listed_and_cleaned() {
    let home = Home::new();
    let store = home.open();
    let parent = conversation(&store, "parent", 3);
    run(parent.fork(Default::default())).unwrap();
    run(parent.fork(rethread_store::Fork::of_kind(ForkKind::Detached))).unwrap();
    run(conversation(&store, "archived", 1).archive(Archive::Away)).unwrap();
    let trashed = conversation(&store, "trashed", 2);
    run(store.delete(trashed.id())).unwrap();
    conversation(&store, "silent", 0);
    capture(&store, &parent, b"a file as it was");
    run(store.set_project_memory(Path::new("/tmp"), "remember", rethread_store::backend::Expect::Any))
        .unwrap();
    store.close().unwrap();
    let kept = |home: &Home| -> Vec<_> {
        let derived = |path: &Path| path.ends_with("catalog.json") || path.ends_with("metadata.json");
        tree(&home.root()).into_iter().filter(|(path, _)| !derived(path) && !path.ends_with("lock")).collect()
    };
    set_back(&home.root(), 7);
    let before = kept(&home);

    let store = home.open();
    let listed = run(store.list(&Filter::everything())).unwrap();
    assert_eq!((listed.sessions.len(), listed.unreadable.len()), (6, 0));
    assert!(run(store.latest(&Scope::Directory("/tmp".into()))).unwrap().is_some());
    let planned = run(store.gc(&Cleaning { mode: Mode::Plan, ..Cleaning::default() })).unwrap();
    assert_eq!((planned.purged, planned.blobs), (vec![], vec![]), "a plan says so before");
    let cleaned = run(store.gc(&Cleaning::default())).unwrap();
    assert_eq!((cleaned.purged, cleaned.blobs, cleaned.leftovers), (vec![], vec![], 0));
    store.close().unwrap();
    assert_eq!(kept(&home), before);
}

#[test]
fn a_clock_that_was_years_ahead_does_not_empty_the_trash() {
    // The session is trashed while the clock is right, and cleaned up while its files claim to be from the future.
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 1);
    run(store.delete(session.id())).unwrap();
    let ahead = FileTimes::new().set_modified(SystemTime::now() + Duration::from_secs(20 * YEAR));
    File::open(home.log(session.id())).unwrap().set_times(ahead).unwrap();
    let cleaning = Cleaning { trash_after: Some(Duration::from_secs(3600)), ..Cleaning::default() };
    assert_eq!(run(store.gc(&cleaning)).unwrap().purged, []);
    assert!(run(store.restore(session.id())).is_ok());
}

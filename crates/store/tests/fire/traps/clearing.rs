//! Clearing away: a clean-up that needs room to make room, that leaves its own litter when it is killed, or that takes
//! what somebody else still needs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rethread_store::backend::Space;
use rethread_store::{Cleaned, Cleaning, Disk as _, FileBackend, Filter, Options, Result, Store};

use super::cramped::Cramped;
use crate::faulty_disk::{Fault, FaultyDisk};
use crate::fire::ledger::Ledger;
use crate::fire::run::{self as runs, Run};
use crate::fire::simulated_disk::SimulatedDisk;
use crate::kit::{Home, chain_of, conversation, message, run, session_id, tree};

fn store_on(disk: &FaultyDisk, home: &Home) -> Store {
    let options = Options { close_within: Duration::from_secs(2), ..Options::default() };
    Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), options)
}

/// Everything that is in the trash goes.
fn clean(store: &Store) -> Result<Cleaned> {
    std::thread::sleep(Duration::from_millis(2));
    run(store.gc(&Cleaning { trash_after: Some(Duration::ZERO), ..Cleaning::default() }))
}

/// A trashed session, its trashed fork and a live fork of that fork: u1 to u6 in all.
fn family(home: &Home) {
    let store = home.open();
    let parent = conversation(&store, "parent", 2);
    let mut last = parent.clone();
    for (name, from) in [("child", 3), ("grandchild", 5)] {
        last = run(last.fork(rethread_store::Fork::default().id(session_id(name)))).unwrap();
        for n in [from, from + 1] {
            run(async { last.append(message(n)).await.unwrap().await }).unwrap();
        }
    }
    for trashed in ["parent", "child"] {
        run(store.delete(&session_id(trashed))).unwrap();
    }
    store.close().unwrap();
}

fn heir(home: &Home) -> String {
    chain_of(&run(home.open().open(&session_id("grandchild"))).unwrap())
}

/// Pruning that cuts the chain which a fork still needs (langgraph#8443).
#[test]
fn emptying_the_trash_cuts_no_history_that_a_fork_still_needs() {
    let home = Home::new();
    family(&home);
    let cleaned = clean(&home.open()).unwrap();
    assert_eq!((cleaned.purged.len(), cleaned.failed.len()), (2, 0), "{cleaned:?}");
    assert_eq!(heir(&home), "u1 u2 u3 u4 u5 u6");
    let store = home.open();
    assert!(run(store.verify(&session_id("grandchild"))).unwrap().is_ok());
    assert_eq!(run(store.backend().list(Space::Sessions, None, 9)).unwrap().len(), 1);
}

/// A clean-up that was killed leaves temporary packs behind, and the next one makes more.
#[test]
fn a_clean_up_that_is_killed_at_any_call_loses_nothing_and_the_next_one_leaves_no_litter() {
    for n in 0.. {
        let (home, disk) = (Home::new(), FaultyDisk::default());
        family(&home);
        disk.set(Fault::DieBefore(n));
        let store = store_on(&disk, &home);
        drop(clean(&store));
        drop(store);
        assert_eq!(heir(&home), "u1 u2 u3 u4 u5 u6", "killed at call {n}");
        let cleaned = clean(&home.open()).unwrap();
        assert!(cleaned.failed.is_empty(), "killed at call {n}: {cleaned:?}");
        assert_eq!(heir(&home), "u1 u2 u3 u4 u5 u6", "killed at call {n}");
        let folders: Vec<_> = std::fs::read_dir(home.root().join("sessions")).unwrap().collect();
        assert_eq!(folders.len(), 1, "killed at call {n}");
        let litter = |path: &std::path::Path| path.starts_with(home.root().join("trash"));
        assert!(!tree(&home.root()).iter().any(|(path, _)| litter(path)), "killed at call {n}");
        if !disk.is_dead() {
            assert!(n > 10, "{n} calls");
            return;
        }
    }
}

/// A clean-up that needs twice the space it frees.
#[test]
fn a_full_disk_can_be_cleaned_up() {
    // A record takes a fortieth of a block: one of these logs ends where a block does.
    for length in 20..50 {
        let (home, disk) = (Home::new(), Cramped::new());
        let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), Options::default());
        let session = conversation(&store, "s", length);
        run(store.delete(session.id())).unwrap();
        store.close().unwrap();
        let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), Options::default());
        disk.leave(0);
        let cleaned = clean(&store).unwrap();
        assert_eq!((cleaned.purged.len(), cleaned.failed.len()), (1, 0), "{length}: {:?}", cleaned.failed);
        assert!(!home.session_folder(session.id()).try_exists().unwrap());
    }
}

#[test]
fn a_purge_without_room_for_its_forks_copies_leaves_everything_as_it_was() {
    // Room for the note that begins a purge, and none for the one that takes it back, is the worst of these.
    for slack in (0..640).step_by(80) {
        let (home, disk) = (Home::new(), Cramped::new());
        family(&home);
        for name in ["parent", "child"] {
            pad(&home, name, slack);
        }
        let store = Store::new(FileBackend::on(Arc::new(disk.clone()), home.root()), Options::default());
        disk.leave(0);
        let purged = run(store.purge(&session_id("parent")));
        assert_eq!(heir(&home), "u1 u2 u3 u4 u5 u6", "{slack} bytes: {purged:?}");
        if purged.is_err() {
            let restored = run(home.open().restore(&session_id("parent")));
            assert_eq!(chain_of(&restored.unwrap()), "u1 u2", "{slack} bytes: {purged:?}");
        }
    }
}

/// Adds to a trashed session's log until about so many bytes are left in its last block.
fn pad(home: &Home, name: &str, slack: usize) {
    let (store, id) = (home.open(), session_id(name));
    let length = || std::fs::metadata(home.log(&id)).unwrap().len() as usize;
    let add = |count: usize| {
        let session = run(store.restore(&id)).unwrap();
        let text = "x".repeat(count);
        run(session.update(move |metadata| drop(metadata.extra.insert("pad".into(), text.clone().into()))))
            .unwrap();
        run(store.delete(&id)).unwrap();
    };
    let before = length();
    add(1);
    let overhead = length() - before;
    add(1 + (2 * 4096 - slack - (length() + overhead) % 4096) % 4096);
    store.close().unwrap();
}

// A purge moves a session to the trash with one rename. Where the sync of that failed, or its process was killed before,
// the next clean-up removed the files, and after a power cut the session stood there again without them.
#[test]
fn what_was_moved_to_the_trash_without_a_sync_is_synced_before_it_is_removed() {
    let disk = SimulatedDisk::new();
    let mut run_ = Run::on(&disk, Ledger::default());
    run_.create("a");
    run_.append("a");
    run_.close();
    disk.make_folder(Path::new("/store/trash")).unwrap();
    disk.rename(Path::new("/store/sessions/a"), Path::new("/store/trash/a.aside")).unwrap();
    run(runs::store_on(&disk, None).gc(&Cleaning::default())).unwrap();
    let (moment, mut rng) = (disk.moment("swept"), fastrand::Rng::with_seed(1));
    for _ in 0..40 {
        let listing =
            run(runs::store_on(&moment.after_crash(&mut rng), None).list(&Filter::everything())).unwrap();
        assert!(listing.unreadable.is_empty() && listing.sessions.is_empty(), "{listing:?}");
    }
}

//! A rewind that dies at any call, and a recovery that dies at any call: every path is as it was or as it was to be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pollster::block_on;
use rethread_checkpoint::{Checkpointer, Choices, Moment, Point, Settings, Window};
use rethread_store::{FileBackend, NewSession, Options, Session, Store};
use tempfile::TempDir;

use crate::kit::{Picture, id, picture, set_mode};
use crate::mortal::{Death, Mortal};

/// A project after a turn that made, changed, removed and replaced all kinds of things.
struct Scene {
    folder: TempDir,
    /// What it was before the turn, and what it is now.
    before: Picture,
    after: Picture,
}

fn base() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn open(folder: &Path, life: &Mortal) -> (Store, Session) {
    let options = Options { close_within: std::time::Duration::from_millis(200), ..Options::default() };
    let store = Store::new(FileBackend::on(Arc::new(life.clone()), folder.join("store")), options);
    let session = block_on(store.load(&"s".parse().unwrap())).unwrap();
    let session = session.unwrap_or_else(|| {
        block_on(store.create(NewSession::at(folder.join("project")).id("s".parse().unwrap()))).unwrap()
    });
    (store, session)
}

fn checkpoints(session: &Session, folder: &Path, life: &Mortal) -> rethread_checkpoint::Result<Checkpointer> {
    let mut settings = Settings::default();
    settings.hands = Arc::new(life.clone());
    block_on(Checkpointer::open(session, &folder.join("project"), settings))
}

impl Scene {
    fn new() -> Self {
        let folder = base();
        let root = folder.path().join("project");
        let write = |path: &str, content: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), content).unwrap();
        };
        for path in ["changed", "removed", "deep/er/changed", "swapped/inner", "becomes-folder", "untouched"]
        {
            write(path, &format!("{path} before\n"));
        }
        symlink("changed", root.join("link")).unwrap();
        set_mode(&root.join("changed"), 0o755);
        let life = Mortal::new(Death::Never);
        let (store, session) = open(folder.path(), &life);
        let checkpoints = checkpoints(&session, folder.path(), &life).unwrap();
        block_on(checkpoints.tree(Moment::of(id("m1")), Window::Idle)).unwrap();
        let before = picture(&root);
        write("changed", "changed after\n");
        set_mode(&root.join("changed"), 0o600);
        fs::remove_file(root.join("removed")).unwrap();
        write("deep/er/changed", "after\n");
        write("made/deep/file", "made\n");
        fs::remove_dir_all(root.join("swapped")).unwrap();
        write("swapped", "a file now\n");
        fs::remove_file(root.join("becomes-folder")).unwrap();
        write("becomes-folder/file", "in a folder now\n");
        fs::remove_file(root.join("link")).unwrap();
        symlink("elsewhere", root.join("link")).unwrap();
        block_on(checkpoints.tree(Moment::of(id("m1")).tool("t1"), Window::Tools)).unwrap();
        store.close().unwrap();
        let after = picture(&root);
        Self { folder, before, after }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Rewinds with a machine that dies. Returns whether it did.
fn rewind(folder: &Path, life: &Mortal, death: Death) -> bool {
    let (store, session) = open(folder, life);
    let checkpoints = checkpoints(&session, folder, life).unwrap();
    life.set(death);
    let done = block_on(async {
        let plan = checkpoints.plan(&Point::At(id("m1")), &Choices::default()).await?;
        checkpoints.apply(&plan).await
    });
    let died = life.is_dead() || (matches!(death, Death::Fails(..) | Death::FailsFrom(..)) && done.is_err());
    assert!(died || done.is_ok(), "{done:?}");
    // What still waits is lost with the machine.
    let _ = store.close();
    died
}

fn recover(folder: &Path, life: &Mortal) -> rethread_checkpoint::Result<()> {
    let (store, session) = open(folder, life);
    let done = checkpoints(&session, folder, life).map(drop);
    // What still waits is lost with the machine.
    let _ = store.close();
    done
}

/// Checks that every path is before or after, and that what is there can be undone or done again.
fn check(scene: &Scene, told: &str) {
    let folder = scene.path();
    let life = Mortal::new(Death::Never);
    recover(folder, &life).unwrap_or_else(|error| panic!("{told}: it cannot be recovered: {error:?}"));
    let root = folder.join("project");
    let (before, after) = (&scene.before, &scene.after);
    let found = picture(&root);
    assert!(
        found == *before || found == *after,
        "{told}: half of it: {:?}",
        differences(&found, before, after)
    );
    // Whatever it was, the next rewind works, and its undo too.
    let (store, session) = open(folder, &life);
    let checkpoints = checkpoints(&session, folder, &life).unwrap();
    let rewound = block_on(async {
        let plan = checkpoints.plan(&Point::At(id("m1")), &Choices::default()).await?;
        checkpoints.apply(&plan).await
    });
    let rewound = rewound.unwrap_or_else(|error| panic!("{told}: {error}"));
    assert_eq!(picture(&root), *before, "{told}");
    if let Some(receipt) = rewound.receipt {
        let plan = block_on(checkpoints.plan(&Point::Undo(receipt), &Choices::default())).unwrap();
        block_on(checkpoints.apply(&plan)).unwrap();
        assert_eq!(picture(&root), *after, "{told}");
    }
    store.close().unwrap();
}

/// Says of each path that differs whether it is as before, as after, or neither.
fn differences(found: &Picture, before: &Picture, after: &Picture) -> Vec<(PathBuf, bool, bool)> {
    let all: std::collections::BTreeSet<&PathBuf> =
        found.keys().chain(before.keys()).chain(after.keys()).collect();
    let is = |path: &PathBuf, picture: &Picture| found.get(path) == picture.get(path);
    let told = all.into_iter().map(|path| (path.clone(), is(path, before), is(path, after)));
    told.filter(|(_, before, after)| !(*before && *after)).collect()
}

#[test]
fn r7_a_crash_at_every_call_of_a_rewind_ends_before_or_after() {
    for death in [Death::Before as fn(usize) -> Death, Death::After] {
        let calls = at_every_call(|call| {
            let scene = Scene::new();
            let died = rewind(scene.path(), &Mortal::new(Death::Never), death(call));
            check(&scene, &format!("{:?}", death(call)));
            died
        });
        assert!(calls > 40, "a rewind makes more calls than {calls}");
    }
}

/// What the second death leaves undone is the same before a call and after the one before it, so one of the two does.
#[test]
fn r7_a_crash_at_every_call_of_a_recovery_from_a_crash_at_every_call_ends_before_or_after() {
    let pairs = AtomicUsize::new(0);
    at_every_call(|call| {
        for second in 0.. {
            let scene = Scene::new();
            if !rewind(scene.path(), &Mortal::new(Death::Never), Death::After(call)) {
                return false;
            }
            let life = Mortal::new(Death::After(second));
            let _ = recover(scene.path(), &life);
            pairs.fetch_add(1, Ordering::Relaxed);
            check(&scene, &format!("died at {call}, and again at {second}"));
            if !life.is_dead() {
                break;
            }
        }
        true
    });
    assert!(pairs.load(Ordering::Relaxed) > 500, "{pairs:?}");
}

/// Opens another session's checkpoints, which has never heard of the rewind.
fn open_another(folder: &Path, root: &str) -> rethread_checkpoint::Result<usize> {
    let store = Store::new(FileBackend::new(folder.join("store")), Options::default());
    let root = folder.join(root);
    let opened = block_on(async {
        let other = store.create(NewSession::at(&root)).await?;
        Checkpointer::open(&other, &root, Settings::default()).await
    });
    let recovered = opened.map(|opened| opened.recovered().len());
    store.close().unwrap();
    recovered
}

#[test]
fn r7_whoever_comes_next_beneath_the_root_finds_an_interrupted_rewind_whatever_session_it_is_of() {
    for root in ["project", "project/deep"] {
        let recovered = AtomicUsize::new(0);
        at_every_call(|call| {
            let scene = Scene::new();
            let died = rewind(scene.path(), &Mortal::new(Death::Never), Death::After(call));
            let told = format!("{root}, died at {call}");
            let found = open_another(scene.path(), root).unwrap_or_else(|error| panic!("{told}: {error:?}"));
            recovered.fetch_add(found, Ordering::Relaxed);
            let picture = picture(&scene.path().join("project"));
            let whole = picture == scene.before || picture == scene.after;
            assert!(whole, "{told}: {:?}", differences(&picture, &scene.before, &scene.after));
            check(&scene, &told);
            died
        });
        assert!(recovered.load(Ordering::Relaxed) > 15, "{root}: {recovered:?}");
    }
}

/// Returns a scene whose rewind died half-way.
fn half_way() -> Scene {
    (0..)
        .map(|call| {
            let scene = Scene::new();
            rewind(scene.path(), &Mortal::new(Death::Never), Death::After(call));
            scene
        })
        .find(|scene| {
            let found = picture(&scene.path().join("project"));
            // Beyond the mark and what waits beside: something has changed its place.
            found.get(&scene.path().join("project/becomes-folder"))
                != scene.after.get(&scene.path().join("project/becomes-folder"))
        })
        .unwrap()
}

#[test]
fn r7_a_rewind_that_only_another_store_can_finish_is_refused_and_told() {
    let scene = half_way();
    let root = scene.path().join("project");
    let half = picture(&root);
    let elsewhere = base();
    let store = Store::new(FileBackend::new(elsewhere.path().join("store")), Options::default());
    let other = block_on(store.create(NewSession::at(&root))).unwrap();
    let refused = block_on(Checkpointer::open(&other, &root, Settings::default())).unwrap_err();
    let told = refused.to_string();
    assert!(matches!(refused, rethread_checkpoint::Error::Unfinished { .. }), "{told}");
    assert!(told.contains("session s in") && told.contains("/store"), "{told}");
    assert_eq!(picture(&root), half);
    check(&scene, "then by its own store");
    block_on(Checkpointer::open(&other, &root, Settings::default())).unwrap();
}

#[test]
fn r7_a_mark_that_a_stranger_made_stops_nobody() {
    let scene = half_way();
    let mark = scene.path().join("project/.rethread-rewind");
    let chown = |owner| std::os::unix::fs::lchown(&mark, Some(owner), None);
    if chown(65_534).is_err() {
        return crate::kit::cannot("giving files to others needs root");
    }
    assert_eq!(open_another(scene.path(), "project").unwrap(), 0);
    chown(0).unwrap();
    assert_eq!(open_another(scene.path(), "project").unwrap(), 1);
}

#[test]
fn r7_a_capture_of_a_wider_tree_leaves_out_where_a_rewind_was_interrupted() {
    let scene = half_way();
    let store = Store::new(FileBackend::new(scene.path().join("store")), Options::default());
    let wider = block_on(store.create(NewSession::at(scene.path()))).unwrap();
    let checkpoints = block_on(Checkpointer::open(&wider, scene.path(), Settings::default())).unwrap();
    let captured = block_on(checkpoints.tree(Moment::default(), Window::Idle)).unwrap();
    let left_out: Vec<_> = captured.left_out.iter().map(|left| left.path.to_string()).collect();
    assert_eq!(left_out, ["project"], "{captured:?}");
    store.close().unwrap();
}

#[test]
fn r7_a_rewind_that_was_interrupted_can_be_told_without_touching_it() {
    let scene = half_way();
    let half = picture(&scene.path().join("project"));
    let (store, session) = open(scene.path(), &Mortal::new(Death::Never));
    let told = block_on(rethread_checkpoint::interrupted(&store, session.id())).unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].root, scene.path().join("project").canonicalize().unwrap());
    assert_eq!(picture(&scene.path().join("project")), half);
    store.close().unwrap();
    recover(scene.path(), &Mortal::new(Death::Never)).unwrap();
    let (store, session) = open(scene.path(), &Mortal::new(Death::Never));
    assert_eq!(block_on(rethread_checkpoint::interrupted(&store, session.id())).unwrap(), []);
    store.close().unwrap();
}

#[test]
fn r4_an_error_at_any_call_of_a_rewind_once_or_for_good_leaves_everything_before_or_after() {
    for (error, from) in
        [(5, false), (28, false), (30, false), (24, false), (13, false), (5, true), (28, true)]
    {
        at_every_call(|call| {
            let scene = Scene::new();
            let life = Mortal::new(Death::Never);
            let death = if from { Death::FailsFrom(call, error) } else { Death::Fails(call, error) };
            rewind(scene.path(), &life, death);
            check(&scene, &format!("{death:?}"));
            life.calls() > call
        });
    }
}

#[test]
fn r7_an_error_at_any_call_of_a_recovery_is_told_and_the_next_one_ends_before_or_after() {
    let failures = AtomicUsize::new(0);
    at_every_call(|call| {
        for second in 0.. {
            let scene = Scene::new();
            if !rewind(scene.path(), &Mortal::new(Death::Never), Death::After(call)) {
                return false;
            }
            let error = [5, 28, 30, 13][second % 4];
            let life = Mortal::new(Death::Fails(second, error));
            let failed = recover(scene.path(), &life).is_err();
            failures.fetch_add(usize::from(failed), Ordering::Relaxed);
            check(&scene, &format!("died at {call}, then call {second} failed with {error}"));
            if life.calls() <= second {
                break;
            }
        }
        true
    });
    assert!(failures.load(Ordering::Relaxed) > 200, "{failures:?}");
}

/// Tries every call, many at a time since they mostly wait, until there is no such call. Returns how many there are.
fn at_every_call(tried: impl Fn(usize) -> bool + Sync) -> usize {
    let (next, end) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let call = next.fetch_add(1, Ordering::Relaxed);
                    if call >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    if !tried(call) {
                        end.fetch_min(call, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    end.into_inner()
}

#[test]
fn r7_new_contents_are_durable_before_they_take_their_place() {
    let scene = Scene::new();
    let life = Mortal::new(Death::Never);
    rewind(scene.path(), &life, Death::Never);
    let done = life.done();
    let at = |what: &str| done.iter().position(|done| done.starts_with(what)).unwrap();
    let synced = at("sync");
    assert!(
        done[..synced].iter().all(|done| ["make_file", "write", "set_mode", "make_link"].contains(done)),
        "{done:?}"
    );
    // The very last is the mark, which goes when everything has ended.
    let (rest, mark) = done.split_at(done.len() - 1);
    let last_of = |what: &[&str]| rest.iter().rposition(|done| what.contains(done)).unwrap();
    assert_eq!((mark, done[0]), (&["remove"][..], "make_link"), "{done:?}");
    let changed = last_of(&["exchange", "rename", "remove", "make_folder"]);
    assert!(last_of(&["sync", "sync_all"]) > changed, "{done:?}");
}

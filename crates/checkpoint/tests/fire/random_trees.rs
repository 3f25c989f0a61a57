//! Random trees and random edits against pictures: going back gives what was there, and going forward again too.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pollster::block_on;
use rethread_checkpoint::{Checkpointer, Choices, Moment, Point, Settings, Window};

use crate::effort::Effort;
use crate::kit::{Picture, Project, id, picture, set_mode};

#[test]
fn rewind_after_edits_is_the_original_and_undo_after_rewind_is_nothing() {
    for round in Effort::new("random trees and edits, rewound and undone", 500) {
        let mut random = round.rng();
        let project = Project::quick();
        let root = project.root();
        project.write(".git/HEAD", "ref: refs/heads/main\n");
        for _ in 0..random.usize(1..12) {
            edit(&root, &mut random);
        }
        let mut checkpoints = open(&project, &mut random);
        let mut pictures: Vec<(String, Picture)> = Vec::new();
        for turn in 0..random.usize(1..5) {
            let message = format!("m{turn}");
            let moment = || Moment::of(id(&message));
            block_on(checkpoints.tree(moment(), Window::Idle)).unwrap();
            pictures.push((message.clone(), picture(&root)));
            for _ in 0..random.usize(0..6) {
                change(&checkpoints, &root, &moment(), &mut random);
            }
            block_on(checkpoints.tree(moment().tool("t"), Window::Tools)).unwrap();
            if random.bool() {
                checkpoints = open(&project, &mut random);
            }
        }
        let last = picture(&root);
        let untouched = picture(&root.join(".git"));
        for _ in 0..3 {
            let (message, expected) = &pictures[random.usize(..pictures.len())];
            let now = picture(&root);
            let receipt = go(&checkpoints, Point::At(id(message)), round.number);
            assert_eq!(differs(&picture(&root), expected), Vec::<PathBuf>::new(), "to {message}");
            if let Some(receipt) = receipt {
                let undone = go(&checkpoints, Point::Undo(receipt), round.number);
                assert_eq!(differs(&picture(&root), &now), Vec::<PathBuf>::new(), "undo");
                // And undone once more, so that the next round starts elsewhere.
                if random.bool() {
                    go(&checkpoints, Point::Undo(undone.unwrap()), round.number);
                }
            }
        }
        assert_eq!(picture(&root.join(".git")), untouched);
        drop(last);
        project.store.close().unwrap();
    }
}

fn open(project: &Project, random: &mut fastrand::Rng) -> Checkpointer {
    let mut settings = Settings::default();
    settings.cache = random.bool().then(|| project.base().join("cache"));
    project.open_with(settings)
}

fn go(checkpoints: &Checkpointer, to: Point, round: u64) -> Option<rethread_store::EntryId> {
    block_on(async {
        let plan = checkpoints.plan(&to, &Choices::default()).await.unwrap();
        assert!(plan.conflicts.is_empty(), "round {round}: {:#?}", plan.conflicts);
        checkpoints.apply(&plan).await.unwrap().receipt
    })
}

fn differs(one: &Picture, other: &Picture) -> Vec<PathBuf> {
    let all: std::collections::BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    all.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

/// Edits something, as a tool that names its files would or as a shell does.
fn change(checkpoints: &Checkpointer, root: &Path, moment: &Moment, random: &mut fastrand::Rng) {
    if random.bool() {
        edit(root, random);
        // Nobody knows what a shell did, so the tree is looked at before the next tool runs.
        block_on(checkpoints.tree(moment.clone().tool("shell"), Window::Tools)).unwrap();
        return;
    }
    let path = somewhere(root, random);
    // What is behind a link nobody names: it would be unknown, and stop the rewind.
    if path.ancestors().skip(1).take_while(|folder| *folder != root).any(Path::is_symlink) {
        return;
    }
    block_on(checkpoints.before(moment.clone(), &[&path])).unwrap();
    edit_at(&path, random);
    if random.bool() {
        block_on(checkpoints.after(moment.clone(), &[&path])).unwrap();
    }
}

fn edit(root: &Path, random: &mut fastrand::Rng) {
    edit_at(&somewhere(root, random), random);
}

/// Picks one of few names at one of few depths, so that edits meet each other.
fn somewhere(root: &Path, random: &mut fastrand::Rng) -> PathBuf {
    let mut path = root.to_owned();
    for _ in 0..random.usize(1..4) {
        path.push(["a", "b", "c", "\u{fc}ber", "with space"][random.usize(..5)]);
    }
    path
}

fn edit_at(path: &Path, random: &mut fastrand::Rng) {
    // A name beneath a file cannot be edited, as a tool would find out.
    if fs::create_dir_all(path.parent().unwrap()).is_err() {
        return;
    }
    let there = fs::symlink_metadata(path);
    let what = random.usize(..8);
    if what == 3 && there.as_ref().is_ok_and(fs::Metadata::is_file) {
        return set_mode(path, [0o644, 0o755, 0o600, 0o777][random.usize(..4)]);
    }
    match there {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
    // A link to its own folder is also beneath itself: then the way to that name went with it.
    if fs::metadata(path.parent().unwrap()).is_err() {
        return;
    }
    match what {
        0 => {}
        1 => symlink(["a", "../b", "/nowhere"][random.usize(..3)], path).unwrap(),
        2 => fs::create_dir(path).unwrap(),
        4 => {
            let other = path.with_file_name("moved");
            if fs::rename(&other, path).is_err() {
                fs::write(path, "not moved\n").unwrap();
            }
        }
        _ => {
            let lines = random.usize(..20);
            fs::write(path, "line\n".repeat(lines) + &random.u8(..).to_string()).unwrap();
        }
    }
}

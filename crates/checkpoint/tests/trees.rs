//! Whole-tree captures: what changed since the last one, whoever changed it.

use std::fs;
use std::os::unix::fs::symlink;

use pollster::block_on;
use rethread_checkpoint::{Checkpoint, Checkpointer, Error, Moment, Reason, Settings, Source, State, Window};

use crate::kit::{Project, Speak, at, forcing, id, leaving};

/// Captures the tree at the beginning of a turn.
pub(crate) fn idle(checkpoints: &Checkpointer, message: &str) -> Checkpoint {
    block_on(checkpoints.tree(Moment::of(id(message)), Window::Idle)).unwrap()
}

/// Captures what a tool did.
pub(crate) fn ran(checkpoints: &Checkpointer, message: &str) -> Checkpoint {
    block_on(checkpoints.tree(Moment::of(id(message)).tool("bash-1"), Window::Tools)).unwrap()
}

fn paths(captured: &Checkpoint) -> Vec<String> {
    captured.changes.iter().map(|change| change.path.to_string()).collect()
}

fn cached(project: &Project) -> Settings {
    let mut settings = Settings::default();
    settings.cache = Some(project.base().join("cache"));
    settings
}

#[test]
fn what_a_shell_command_did_is_rewound_though_nobody_named_a_path() {
    let project = Project::new();
    project.write("kept", "kept\n");
    project.write("src/a", "a\n");
    project.write("src/b", "b\n");
    fs::create_dir(project.path("empty")).unwrap();
    symlink("src/a", project.path("link")).unwrap();
    let original = project.picture();
    let checkpoints = project.open();
    assert!(idle(&checkpoints, "m1").changes.is_empty());

    fs::remove_dir_all(project.path("src")).unwrap();
    fs::remove_dir(project.path("empty")).unwrap();
    project.remove("link");
    symlink("elsewhere", project.path("link")).unwrap();
    project.write("made/deep/file", "made\n");
    let captured = ran(&checkpoints, "m1");
    assert_eq!(
        paths(&captured),
        ["empty", "link", "made", "made/deep", "made/deep/file", "src", "src/a", "src/b"]
    );
    assert!(captured.changes.iter().all(|change| change.source == Source::Window));

    let changed = project.picture();
    let rewound = checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(project.picture(), original);
    assert!(rewound.complete);
    checkpoints.rewind(rethread_checkpoint::Point::Undo(rewound.receipt.unwrap())).unwrap();
    assert_eq!(project.picture(), changed);
}

#[test]
fn what_changes_while_no_tool_runs_is_a_conflict_until_it_is_named() {
    let project = Project::new();
    project.write("agents", "0\n");
    project.write("persons", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    project.write("agents", "1\n");
    ran(&checkpoints, "m1");
    project.write("persons", "edited\n");
    let outside = idle(&checkpoints, "m2");
    assert_eq!(outside.changes[0].source, Source::Outside);

    let plan = checkpoints.planned(at("m1"));
    assert_eq!(
        plan.conflicts.iter().map(|it| (it.path.to_string(), it.reason)).collect::<Vec<_>>(),
        [("persons".into(), Reason::Outside)]
    );
    let left = checkpoints.choose(at("m1"), leaving(&["persons"]));
    block_on(checkpoints.apply(&left)).unwrap();
    assert_eq!(
        (project.read("agents").unwrap(), project.read("persons").unwrap()),
        ("0\n".into(), "edited\n".into())
    );
    let forced = checkpoints.choose(at("m1"), forcing(&["persons"]));
    block_on(checkpoints.apply(&forced)).unwrap();
    assert_eq!(project.read("persons").unwrap(), "0\n");
}

#[test]
fn what_happened_before_a_turn_is_not_undone_with_it() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    project.write("a", "a person's\n");
    idle(&checkpoints, "m2");
    project.write("a", "agent's\n");
    ran(&checkpoints, "m2");
    checkpoints.rewind(at("m2")).unwrap();
    assert_eq!(project.read("a").unwrap(), "a person's\n");
}

#[test]
fn named_captures_and_whole_tree_captures_make_one_chain() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    checkpoints.capture("m1", &["a"]);
    project.write("a", "1\n");
    checkpoints.captured("m1", &["a"]);
    assert_eq!(paths(&ran(&checkpoints, "m1")), [""; 0], "it is known already");
    // A tool that named its file, after which nobody looked: the next capture knows whose change it is.
    checkpoints.capture("m2", &["a", "new"]);
    project.write("a", "2\n");
    project.write("new", "made\n");
    let captured = idle(&checkpoints, "m3");
    assert!(captured.changes.iter().all(|change| change.source == Source::Named), "{captured:?}");
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!((project.read("a").unwrap(), project.read("new")), ("0\n".into(), None));
}

#[test]
fn a_new_process_goes_on_where_the_last_one_was_with_or_without_its_cache() {
    for keep in [true, false] {
        let project = Project::new();
        project.write("src/a", "0\n");
        project.write("src/b", "b\n");
        idle(&project.open_with(cached(&project)), "m1");
        project.write("src/a", "1\n");
        if !keep {
            fs::remove_dir_all(project.base().join("cache")).unwrap();
        }
        let checkpoints = project.open_with(cached(&project));
        assert_eq!(paths(&ran(&checkpoints, "m1")), ["src/a"]);
        project.open_with(cached(&project)).rewind(at("m1")).unwrap();
        assert_eq!(project.read("src/a").unwrap(), "0\n");
        assert_eq!(paths(&idle(&project.open_with(cached(&project)), "m2")), [""; 0]);
    }
}

#[test]
fn another_session_beneath_the_same_root_begins_anew_and_stores_nothing_twice() {
    let project = Project::new();
    for number in 0..100 {
        project.write(&format!("src/{number}"), format!("file {number}\n"));
    }
    idle(&project.open_with(cached(&project)), "m1");
    std::thread::sleep(std::time::Duration::from_millis(60));
    idle(&project.open_with(cached(&project)), "m1");
    let blobs = || crate::kit::picture(&project.base().join("store/blobs")).len();
    let before = blobs();
    let other = block_on(project.store.create(rethread_store::NewSession::at(project.root()))).unwrap();
    let checkpoints = block_on(Checkpointer::open(&other, &project.root(), cached(&project))).unwrap();
    idle(&checkpoints, "n1");
    assert!(blobs() <= before + 3, "at most a list and its folder, {before} {}", blobs());
    project.write("src/7", "changed\n");
    ran(&checkpoints, "n1");
    checkpoints.rewind(at("n1")).unwrap();
    assert_eq!(project.read("src/7").unwrap(), "file 7\n");
}

#[test]
fn the_first_capture_of_many_files_makes_packs_and_not_a_blob_of_each() {
    let project = Project::quick();
    for number in 0..500 {
        project.write(&format!("{}/{number}", number % 7), format!("file {number}\n").repeat(20));
    }
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    let blobs = crate::kit::picture(&project.base().join("store/blobs/sha256"));
    let files = blobs.values().filter(|(mode, _)| mode & 0o170_000 == 0o100_000).count();
    assert!(files <= 9, "{files} blobs");
    let original = project.picture();
    for number in (0..500).step_by(3) {
        project.remove(&format!("{}/{number}", number % 7));
    }
    ran(&checkpoints, "m1");
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(project.picture(), original);
}

#[test]
fn what_rules_leave_out_is_named_and_never_taken_for_new_when_the_rules_change() {
    let project = Project::new();
    project.write(".gitignore", "target/\n*.log\n");
    project.write(".rethreadignore", "!keep.log\nsecret\n");
    for path in ["target/debug/x", "a.log", "keep.log", "secret", "src/b.log", "src/main"] {
        project.write(path, "x\n");
    }
    project.write(".git/HEAD", "ref\n");
    let checkpoints = project.open();
    let captured = idle(&checkpoints, "m1");
    let left: Vec<String> = captured.left_out.iter().map(|left| left.path.to_string()).collect();
    assert_eq!(left, ["a.log", "secret", "src/b.log", "target"]);

    project.write(".gitignore", "");
    project.write("made", "made\n");
    assert_eq!(paths(&ran(&checkpoints, "m1")), [".gitignore", "made"]);
    let plan = checkpoints.planned(at("m1"));
    assert!(plan.skipped.iter().any(|skipped| skipped.path.to_string() == "target"), "{plan:?}");
    block_on(checkpoints.apply(&plan)).unwrap();
    for path in ["target/debug/x", "a.log", "keep.log", "secret", "src/b.log", "src/main", ".git/HEAD"] {
        assert!(project.read(path).is_some(), "{path} was removed");
    }
}

#[test]
fn a_file_that_rules_begin_to_leave_out_is_still_rewound() {
    let project = Project::new();
    project.write("notes", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    project.write(".gitignore", "notes\n");
    project.write("notes", "1\n");
    assert_eq!(paths(&ran(&checkpoints, "m1")), [".gitignore", "notes"]);
}

#[test]
fn a_store_inside_the_tree_is_neither_captured_nor_touched() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("project/.sessions");
    let store = rethread_store::Store::new(rethread_store::FileBackend::new(&inside), Default::default());
    let project = Project::within(folder, store);
    project.write("a", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    project.write("a", "1\n");
    assert_eq!(paths(&ran(&checkpoints, "m1")), ["a"]);
    let missed = checkpoints.capture("m1", &[".sessions/format.json", ".sessions"]).missed;
    assert_eq!(missed.len(), 2);
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(project.read("a").unwrap(), "0\n");
    assert!(block_on(project.store.verify(project.session.id())).unwrap().problems.is_empty());
}

#[test]
fn r13_files_over_the_limit_are_named_and_never_deleted() {
    let project = Project::new();
    project.write("large", vec![b'x'; 5000]);
    let mut settings = Settings::default();
    settings.tree_file_limit = 4096;
    let checkpoints = project.open_with(settings);
    idle(&checkpoints, "m1");
    // It shrinks: what it was nobody kept, so nobody can bring it back, and nobody removes it either.
    project.write("large", "small\n");
    let captured = ran(&checkpoints, "m1");
    assert!(matches!(captured.changes[0].before, Some(State::Skipped { .. })));
    let plan = checkpoints.planned(at("m1"));
    assert!(plan.steps.is_empty() && !plan.is_complete());
    assert_eq!(plan.skipped.len(), 1);
}

#[test]
fn r13_a_change_within_the_same_tick_of_the_clock_is_found() {
    let project = Project::quick();
    let checkpoints = project.open();
    for round in 0..50_u32 {
        project.write("a", format!("{:04}", round * 2));
        idle(&checkpoints, "m1");
        let before = fs::metadata(project.path("a")).unwrap();
        project.write("a", format!("{:04}", round * 2 + 1));
        // As a file system with a slow clock would have it.
        let file = fs::File::options().write(true).open(project.path("a")).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
        assert_eq!(paths(&ran(&checkpoints, "m1")), ["a"], "round {round}");
    }
}

#[test]
fn r12_a_folder_that_cannot_be_read_leads_to_no_deletion() {
    let project = Project::new();
    project.write("folder/file", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    // A link where the folder was: what is known of it is gone for certain, what is behind the link is nobody's.
    fs::rename(project.path("folder"), project.base().join("away")).unwrap();
    symlink(project.base().join("away"), project.path("folder")).unwrap();
    assert_eq!(paths(&ran(&checkpoints, "m1")), ["folder", "folder/file"]);
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(project.read("folder/file").unwrap(), "0\n");
    assert_eq!(fs::read_to_string(project.base().join("away/file")).unwrap(), "0\n");
}

#[test]
fn a_root_that_vanished_is_an_error_and_not_an_empty_tree() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    fs::remove_dir_all(project.root()).unwrap();
    let failed = block_on(checkpoints.tree(Moment::of(id("m1")).tool("rm"), Window::Tools));
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
}

#[test]
fn a_root_that_was_replaced_is_an_error_and_not_a_tree_full_of_changes() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    idle(&checkpoints, "m1");
    fs::rename(project.root(), project.base().join("away")).unwrap();
    fs::create_dir(project.root()).unwrap();
    let failed = block_on(checkpoints.tree(Moment::of(id("m1")).tool("rm"), Window::Tools));
    assert!(matches!(failed, Err(Error::BadPath { .. })), "{failed:?}");
}

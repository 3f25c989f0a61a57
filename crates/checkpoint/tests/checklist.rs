//! What the first specification asks for by name, the faults of the stores before this one, and the traps that others
//! fell into when they restored files.

use std::fs;

use pollster::block_on;
use rethread_checkpoint::{Moment, Point, Settings, Switch, Window};

use crate::kit::{Project, Speak, at, id, picture};

#[test]
fn checkpoint_creation_file_snapshots_are_taken_before_mutating_tool_execution() {
    let project = Project::new();
    project.write("a", "before the tool\n");
    let checkpoints = project.open();
    let captured = checkpoints.capture("m1", &["a"]);
    let hash = captured.changes[0].before.as_ref().unwrap().file().unwrap().hash.to_string();
    let blob = project.base().join("store/blobs/sha256").join(&hash[..2]).join(&hash[2..]);
    assert_eq!(fs::read_to_string(blob).unwrap(), "before the tool\n");
}

#[test]
fn rewind_correctness_files_are_restored_to_the_exact_checkpoint_state() {
    let project = Project::new();
    project.write("a", [0, 255, 10, 13, 0]);
    let original = project.picture();
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "text\n");
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(project.picture(), original);
}

#[test]
fn rewind_dry_run_returns_diff_stats_without_modifying_files() {
    let project = Project::new();
    project.write("a", "1\n2\n");
    project.write("same", "same\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a", "same"]);
    project.write("a", "1\n2\n3\n4\n");
    let before = project.picture();
    let plan = checkpoints.planned(at("m1"));
    // Lines, not files; and only files that would change.
    assert_eq!((plan.insertions, plan.deletions, plan.steps.len()), (0, 2, 1));
    assert_eq!(project.picture(), before);
}

#[test]
fn new_file_handling_files_created_after_the_checkpoint_are_deleted_on_rewind() {
    let project = Project::new();
    let checkpoints = project.open();
    checkpoints.capture("m1", &["new"]);
    project.write("new", "made\n");
    project.write("another", "not the agent's\n");
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!((project.read("new"), project.read("another").is_some()), (None, true));
}

#[test]
fn persist_flag_off_skips_all_disk_writes() {
    let project = Project::new();
    project.write("a", "x\n");
    let before = picture(&project.base().join("store"));
    let mut settings = Settings::default();
    settings.switch = Switch::Off;
    let checkpoints = project.open_with(settings);
    checkpoints.capture("m1", &["a"]);
    block_on(checkpoints.tree(Moment::default(), Window::Idle)).unwrap();
    assert_eq!(picture(&project.base().join("store")), before);
}

#[test]
fn a_second_capture_of_a_turn_does_not_lose_the_first_ones_files() {
    let project = Project::new();
    project.write("a", "a\n");
    project.write("b", "b\n");
    let checkpoints = project.open();
    for name in ["a", "b"] {
        checkpoints.capture("m1", &[name]);
        project.write(name, "changed\n");
    }
    assert_eq!(checkpoints.rewind(at("m1")).unwrap().files_changed.len(), 2);
}

#[test]
fn the_same_content_is_kept_once_for_all_checkpoints_and_sessions() {
    let project = Project::new();
    for name in ["a", "b", "c"] {
        project.write(name, "the same\n");
    }
    for message in ["m1", "m2"] {
        project.open().capture(message, &["a", "b", "c"]);
    }
    let other = block_on(project.store.create(rethread_store::NewSession::at(project.root()))).unwrap();
    let theirs =
        block_on(rethread_checkpoint::Checkpointer::open(&other, &project.root(), Settings::default()))
            .unwrap();
    theirs.capture("n1", &["a", "b"]);
    let blobs = picture(&project.base().join("store/blobs/sha256"));
    assert_eq!(blobs.values().filter(|(mode, _)| mode & 0o170_000 == 0o100_000).count(), 1);
}

#[test]
fn nothing_that_was_never_recorded_is_cleaned_away_even_if_rules_come_back_with_the_rewind() {
    let project = Project::new();
    project.write(".gitignore", "notes\n");
    project.write("notes", "a person's\n");
    let checkpoints = project.open();
    block_on(checkpoints.tree(Moment::of(id("m1")), Window::Idle)).unwrap();
    project.remove(".gitignore");
    project.write("untracked", "a person's too\n");
    // Nobody has looked since `untracked` appeared, and `notes` was never looked at.
    checkpoints.capture("m1", &[".gitignore"]);
    checkpoints.rewind(at("m1")).unwrap();
    assert!(project.read("notes").is_some() && project.read("untracked").is_some());
}

#[test]
fn a_rewind_needs_neither_the_repository_nor_the_files_that_contents_came_from() {
    let project = Project::new();
    project.write(".git/objects/pack/pack-1.pack", "objects\n");
    for number in 0..50 {
        project.write(&format!("src/{number}"), format!("{number}\n"));
    }
    let original = picture(&project.path("src"));
    let checkpoints = project.open();
    block_on(checkpoints.tree(Moment::of(id("m1")), Window::Idle)).unwrap();
    fs::remove_dir_all(project.path("src")).unwrap();
    block_on(checkpoints.tree(Moment::of(id("m1")).tool("rm"), Window::Tools)).unwrap();
    fs::remove_dir_all(project.path(".git")).unwrap();
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(picture(&project.path("src")), original);
    assert!(!project.path(".git").is_dir());
}

#[test]
fn a_capture_that_failed_is_never_taken_for_the_one_before_it() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    block_on(checkpoints.tree(Moment::of(id("m1")), Window::Idle)).unwrap();
    let away = project.base().join("away");
    fs::rename(project.root(), &away).unwrap();
    fs::write(away.join("a"), "1\n").unwrap();
    block_on(checkpoints.tree(Moment::of(id("m1")).tool("t"), Window::Tools)).unwrap_err();
    fs::rename(&away, project.root()).unwrap();
    // The next capture says so, and so does every plan across it.
    block_on(checkpoints.tree(Moment::of(id("m1")).tool("t"), Window::Tools)).unwrap();
    let plan = checkpoints.planned(at("m1"));
    assert!(!plan.is_complete() && plan.steps.len() == 1, "{plan:?}");
}

#[test]
fn an_undo_outlives_new_prompts_and_new_captures() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "1\n");
    let receipt = checkpoints.rewind(at("m1")).unwrap().receipt.unwrap();
    checkpoints.capture("m2", &["b"]);
    project.write("b", "later work\n");
    checkpoints.captured("m2", &["b"]);
    project.open().rewind(Point::Undo(receipt)).unwrap();
    assert_eq!(
        (project.read("a").unwrap(), project.read("b").unwrap()),
        ("1\n".into(), "later work\n".into())
    );
}

#[test]
fn a_record_of_an_imported_store_can_be_rewound_to() {
    let project = Project::new();
    project.write("a", "now\n");
    let content = b"then\n";
    let blob = rethread_store::BlobId::of(content);
    block_on(project.store.backend().put_blob(&blob, &mut &content[..])).unwrap();
    let record = serde_json::json!({
        "id": "old", "message": "m1", "created_at": "2026-02-09T10:00:00Z", "source": "import",
        "changes": [{"path": "a", "before": {"present": {"hash": blob, "size": 5}}, "after": null, "source": "named"}],
        "root": project.root().canonicalize().unwrap(),
    });
    block_on(project.session.append_checkpoint(rethread_store::Entry::of(&record).unwrap())).unwrap();
    project.open().rewind(at("old")).unwrap();
    assert_eq!(project.read("a").unwrap(), "then\n");
}

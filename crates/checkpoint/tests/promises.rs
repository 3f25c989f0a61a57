//! The promises about rewinds, R1 to R12, each by its name.

use std::os::unix::fs::{MetadataExt, symlink};
use std::{fs, io};

use pollster::block_on;
use rethread_checkpoint::{Checkpointer, Choices, Error, Moment, Point, Reason, Settings, State, Switch};

use crate::kit::{Project, Speak, at, forcing, id, leaving, mode, set_mode, tree_path};

#[test]
fn r1_only_recorded_paths_are_touched_and_never_git_nor_the_store() {
    let project = Project::new();
    project.write("a", "old\n");
    project.write("mine", "mine\n");
    project.write(".git/config", "[core]\n");
    let checkpoints = project.open();
    let captured = checkpoints.capture("m1", &["a", ".git/config", "../store/format.json", "/etc/hostname"]);
    assert_eq!(captured.changes.iter().map(|change| change.path.to_string()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(captured.missed.len(), 3, "{:?}", captured.missed);
    project.write("a", "new\n");
    project.write("mine", "edited\n");
    project.write(".git/config", "[user]\n");

    let rewound = checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(rewound.files_changed, [project.path("a")]);
    assert!(!rewound.complete, "what could not be captured is not forgotten");
    assert_eq!(project.read("a").unwrap(), "old\n");
    assert_eq!(project.read("mine").unwrap(), "edited\n");
    assert_eq!(project.read(".git/config").unwrap(), "[user]\n");
}

#[test]
fn r2_an_unreadable_file_is_unknown_and_stops_the_rewind() {
    let project = Project::new();
    // A folder on the way is a link: nobody can say what is behind it without following it.
    fs::create_dir(project.path("real")).unwrap();
    project.write("real/file", "x\n");
    symlink("real", project.path("link")).unwrap();
    let checkpoints = project.open();
    let captured = checkpoints.capture("m1", &["link/file"]);
    assert!(matches!(captured.changes[0].before, Some(State::Unknown { .. })), "{captured:?}");

    let plan = checkpoints.planned(at("m1"));
    assert_eq!(plan.conflicts[0].reason, Reason::Unknown);
    assert!(!plan.is_complete());
    let error = block_on(checkpoints.apply(&plan)).unwrap_err();
    assert!(matches!(error, Error::InTheWay { count: 1, .. }), "{error}");
    let plan = checkpoints.choose(at("m1"), leaving(&["link/file"]));
    assert!(plan.is_ready());
}

#[test]
fn r3_a_plan_that_no_longer_holds_is_not_applied() {
    let project = Project::new();
    project.write("a", "old\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "new\n");
    let plan = checkpoints.planned(at("m1"));
    project.write("a", "newer\n");
    let error = block_on(checkpoints.apply(&plan)).unwrap_err();
    assert!(matches!(&error, Error::Changed { at: Some(path) } if path.to_string() == "a"), "{error}");
    assert_eq!(project.read("a").unwrap(), "newer\n");
}

#[test]
fn r3_a_dry_run_changes_nothing_and_counts_lines() {
    let project = Project::new();
    project.write("a", "1\n2\n3\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a", "b"]);
    project.write("a", "1\nx\ny\n3\n");
    project.write("b", "made\n");
    let before = project.picture();
    let plan = checkpoints.planned(at("m1"));
    assert_eq!((plan.insertions, plan.deletions, plan.steps.len()), (1, 3, 2));
    assert_eq!(project.picture(), before);
}

#[test]
fn r4_one_conflict_stops_everything_until_it_is_named() {
    let project = Project::new();
    project.write("a", "old a\n");
    project.write("b", "old b\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a", "b"]);
    project.write("a", "new a\n");
    project.write("b", "new b\n");
    checkpoints.captured("m1", &["a", "b"]);
    project.write("b", "a person's\n");
    let before = project.picture();

    let error = checkpoints.rewind(at("m1")).unwrap_err();
    assert!(matches!(error, Error::InTheWay { count: 1, .. }), "{error}");
    assert_eq!(project.picture(), before);

    let left = checkpoints.choose(at("m1"), leaving(&["b"]));
    block_on(checkpoints.apply(&left)).unwrap();
    assert_eq!(
        (project.read("a").unwrap(), project.read("b").unwrap()),
        ("old a\n".into(), "a person's\n".into())
    );

    let forced = checkpoints.choose(at("m1"), forcing(&["b"]));
    let receipt = block_on(checkpoints.apply(&forced)).unwrap().receipt.unwrap();
    assert_eq!(project.read("b").unwrap(), "old b\n");
    // Saved first, forced or not.
    checkpoints.rewind(Point::Undo(receipt)).unwrap();
    assert_eq!(project.read("b").unwrap(), "a person's\n");
}

#[test]
fn r4_a_name_that_means_nothing_is_refused() {
    let project = Project::new();
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    let error = block_on(checkpoints.plan(&at("m1"), &forcing(&["typo"]))).unwrap_err();
    assert!(matches!(error, Error::NotInPlan(_)), "{error}");
}

#[test]
fn r4_missing_and_corrupt_content_stops_before_the_first_change() {
    for spoil in [
        |path: &std::path::Path| fs::remove_file(path),
        |path: &std::path::Path| fs::write(path, "rotten\n".repeat(400_000)),
    ] {
        let project = Project::new();
        project.write("a", "old a\n");
        // Large enough to be read piece by piece, where only we look at its hash.
        project.write("b", "old b\n".repeat(500_000));
        let checkpoints = project.open();
        let captured = checkpoints.capture("m1", &["a", "b"]);
        project.write("a", "new a\n");
        project.write("b", "new b\n");
        let before = project.picture();
        let hash = captured.changes[1].before.as_ref().unwrap().file().unwrap().hash.to_string();
        spoil(&project.base().join("store/blobs/sha256").join(&hash[..2]).join(&hash[2..])).unwrap();
        checkpoints.rewind(at("m1")).unwrap_err();
        assert_eq!(project.picture(), before);
        let plan = checkpoints.choose(at("m1"), leaving(&["b"]));
        block_on(checkpoints.apply(&plan)).unwrap();
        assert_eq!(project.read("a").unwrap(), "old a\n");
    }
}

#[test]
fn r5_the_first_state_after_the_point_counts_for_each_path() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    let first = checkpoints.capture("m1", &["a"]);
    project.write("a", "1\n");
    let second = checkpoints.capture("m1", &["a", "b"]);
    project.write("a", "2\n");
    project.write("b", "made\n");
    checkpoints.captured("m1", &["a", "b"]);
    let third = checkpoints.capture("m2", &["b"]);
    project.remove("b");

    let states = |to| {
        checkpoints.rewind(at(to)).unwrap();
        (project.read("a"), project.read("b"))
    };
    assert_eq!(states(third.id.as_str()), (Some("2\n".into()), Some("made\n".into())));
    assert_eq!(states(second.id.as_str()), (Some("1\n".into()), None));
    assert_eq!(states(first.id.as_str()), (Some("0\n".into()), None));
    // Forward again, to a state that is only in the history any more.
    assert_eq!(states(third.id.as_str()), (Some("2\n".into()), Some("made\n".into())));
    assert_eq!(states("m1"), (Some("0\n".into()), None));
}

#[test]
fn r5_a_persons_edit_between_two_edits_of_the_agent_is_a_conflict() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "1\n");
    checkpoints.captured("m1", &["a"]);
    project.write("a", "1 and a person's line\n");
    checkpoints.capture("m2", &["a"]);
    project.write("a", "2\n");
    checkpoints.captured("m2", &["a"]);

    let plan = checkpoints.planned(at("m1"));
    assert_eq!(plan.conflicts[0].reason, Reason::EditedBetween);
    // To the second turn alone there is no conflict: the person's line is what was there.
    checkpoints.rewind(at("m2")).unwrap();
    assert_eq!(project.read("a").unwrap(), "1 and a person's line\n");
}

#[test]
fn r5_what_nobody_looked_at_afterwards_is_assumed_and_saved() {
    let project = Project::new();
    project.write("a", "0\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "somebody's\n");
    let plan = checkpoints.planned(at("m1"));
    assert!(plan.steps[0].assumed);
    let receipt = block_on(checkpoints.apply(&plan)).unwrap().receipt.unwrap();
    checkpoints.rewind(Point::Undo(receipt)).unwrap();
    assert_eq!(project.read("a").unwrap(), "somebody's\n");
}

#[test]
fn r8_undo_restores_bytes_modes_and_existence_across_restarts_and_can_be_undone() {
    let project = Project::new();
    project.write("script", "#!/bin/sh\n");
    set_mode(&project.path("script"), 0o755);
    symlink("script", project.path("link")).unwrap();
    let original = project.picture();
    project.open().capture("m1", &["script", "link", "new/deep/file", "binary"]);
    project.write("script", "changed\n");
    set_mode(&project.path("script"), 0o600);
    project.remove("link");
    symlink("nowhere", project.path("link")).unwrap();
    project.write("new/deep/file", "made\n");
    project.write("binary", [0, 159, 146, 150]);
    let changed = project.picture();

    let rewound = project.open().rewind(at("m1")).unwrap();
    assert_eq!(project.picture(), original);
    let undone = project.open().rewind(Point::Undo(rewound.receipt.unwrap())).unwrap();
    assert_eq!(project.picture(), changed);
    let again = project.open().rewind(Point::Undo(undone.receipt.unwrap())).unwrap();
    assert_eq!(project.picture(), original);
    project.open().rewind(Point::Undo(again.receipt.unwrap())).unwrap();
    assert_eq!(project.picture(), changed);
}

#[test]
fn r9_a_link_in_place_of_a_folder_is_not_followed_by_a_rewind() {
    let project = Project::new();
    project.write("folder/file", "old\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["folder/file"]);
    fs::create_dir(project.base().join("outside")).unwrap();
    fs::write(project.base().join("outside/file"), "not ours\n").unwrap();
    fs::remove_dir_all(project.path("folder")).unwrap();
    symlink(project.base().join("outside"), project.path("folder")).unwrap();
    assert!(checkpoints.rewind(at("m1")).is_err());
    assert_eq!(fs::read_to_string(project.base().join("outside/file")).unwrap(), "not ours\n");
}

#[test]
fn r10_permissions_are_exact_and_setuid_is_never_set() {
    let project = Project::new();
    for (name, bits) in [("a", 0o000), ("b", 0o777), ("c", 0o4755), ("d", 0o640)] {
        project.write(name, name);
        set_mode(&project.path(name), bits);
    }
    let checkpoints = project.open();
    // Only root reads a file that nobody may read; for anybody else it is unknown, and left out.
    let names =
        if fs::read(project.path("a")).is_ok() { &["a", "b", "c", "d"][..] } else { &["b", "c", "d"] };
    checkpoints.capture("m1", names);
    names.iter().for_each(|name| project.remove(name));
    checkpoints.rewind(at("m1")).unwrap();
    let modes: Vec<u32> = ["b", "c", "d"].iter().map(|name| mode(&project.path(name))).collect();
    assert_eq!(modes, [0o777, 0o755, 0o640]);
    assert!(names.len() == 3 || mode(&project.path("a")) == 0);
}

#[test]
fn r10_folders_are_removed_only_if_the_agent_made_them_and_they_are_empty() {
    let project = Project::new();
    fs::create_dir(project.path("theirs")).unwrap();
    let checkpoints = project.open();
    checkpoints.capture("m1", &["theirs/file", "made/file", "shared/file", "made/deeper/file"]);
    for path in ["theirs/file", "made/file", "shared/file", "made/deeper/file"] {
        project.write(path, "agent's\n");
    }
    project.write("shared/mine", "a person's\n");
    let rewound = checkpoints.rewind(at("m1")).unwrap();
    assert!(project.path("theirs").is_dir(), "it was there before");
    assert!(!project.path("made").is_dir());
    assert_eq!(project.read("shared/mine").unwrap(), "a person's\n");
    assert!(rewound.complete && rewound.skipped.len() == 1, "{rewound:?}");
}

#[test]
fn r10_pipes_and_sockets_are_never_opened_and_never_made() {
    let project = Project::new();
    let made = std::process::Command::new("mkfifo").arg(project.path("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(project.path("socket")).unwrap();
    let checkpoints = project.open();
    let captured = checkpoints.capture("m1", &["pipe", "socket"]);
    assert!(
        captured.changes.iter().all(|change| matches!(change.before, Some(State::Skipped { .. }))),
        "{captured:?}"
    );
    project.remove("pipe");
    let plan = checkpoints.planned(at("m1"));
    assert!(plan.steps.is_empty() && plan.is_ready() && !plan.is_complete());
    assert_eq!(plan.skipped.len(), 2);
}

#[test]
fn r10_a_file_with_several_names_is_reported() {
    let project = Project::new();
    project.write("a", "old\n");
    fs::hard_link(project.path("a"), project.path("other")).unwrap();
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "new\n");
    let plan = checkpoints.planned(at("m1"));
    assert!(plan.steps[0].several_names);
    block_on(checkpoints.apply(&plan)).unwrap();
    assert_eq!(
        (project.read("a").unwrap(), project.read("other").unwrap()),
        ("old\n".into(), "new\n".into())
    );
}

#[test]
fn r10_names_that_are_not_utf8_come_back() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(project.root().join(name), "old\n").unwrap();
    let checkpoints = project.open();
    block_on(checkpoints.before(Moment::of(id("m1")), &[name])).unwrap();
    fs::remove_file(project.root().join(name)).unwrap();
    project.open().rewind(at("m1")).unwrap();
    assert_eq!(fs::read(project.root().join(name)).unwrap(), b"old\n");
}

#[test]
fn r11_unchanged_files_keep_their_times_and_an_error_means_that_nothing_was_applied() {
    let project = Project::new();
    project.write("same", "same\n");
    project.write("other", "old\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["same", "other"]);
    project.write("other", "new\n");
    let times = |path| {
        fs::metadata(path).map(|metadata| (metadata.ino(), metadata.mtime_nsec(), metadata.ctime_nsec()))
    };
    let before = times(project.path("same")).unwrap();
    let rewound = checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(times(project.path("same")).unwrap(), before);
    assert_eq!(rewound.files_changed, [project.path("other")]);
    assert_eq!((rewound.can_rewind, rewound.error, rewound.complete), (true, None, true));
}

#[test]
fn r12_a_capture_that_failed_makes_every_plan_across_it_incomplete() {
    let project = Project::new();
    project.write("a", "old\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "new\n");
    checkpoints.captured("m1", &["a"]);
    block_on(checkpoints.missed(Moment::default(), "the tool had run before it was captured")).unwrap();
    let later = checkpoints.capture("m2", &["a"]);
    let across = checkpoints.planned(at("m1"));
    assert!(across.is_ready() && !across.is_complete());
    assert_eq!(across.incomplete.len(), 1);
    assert!(checkpoints.planned(Point::At(later.id)).is_complete());
}

#[test]
fn off_captures_nothing_and_has_nothing_to_rewind_to() {
    let project = Project::new();
    project.write("a", "old\n");
    let mut settings = Settings::default();
    settings.switch = Switch::Off;
    let checkpoints = project.open_with(settings);
    checkpoints.capture("m1", &["a"]);
    assert!(matches!(checkpoints.rewind(at("m1")), Err(Error::Off)));
    assert!(!project.base().join("store/blobs").is_dir());
    assert!(matches!(project.open().rewind(at("m1")), Err(Error::NoSuchPoint { .. })));
}

#[test]
fn one_file_or_one_turn_can_be_rewound_alone() {
    let project = Project::new();
    project.write("a", "0\n");
    project.write("b", "0\n");
    let checkpoints = project.open();
    for (message, path) in [("m1", "a"), ("m2", "b"), ("m3", "a")] {
        checkpoints.capture(message, &[path]);
        project.write(path, message);
        checkpoints.captured(message, &[path]);
    }
    let only = Choices { only: [tree_path("b")].into(), ..Choices::default() };
    let plan = checkpoints.choose(at("m1"), only);
    assert_eq!(plan.steps.iter().map(|step| step.path.to_string()).collect::<Vec<_>>(), ["b"]);

    let turn = checkpoints.planned(Point::Turn(id("m1")));
    assert_eq!(turn.conflicts[0].reason, Reason::Edited, "a later turn builds on it");
    let turn = checkpoints.planned(Point::Turn(id("m2")));
    block_on(checkpoints.apply(&turn)).unwrap();
    assert_eq!((project.read("a").unwrap(), project.read("b").unwrap()), ("m3".into(), "0\n".into()));
}

#[test]
fn a_memory_store_keeps_checkpoints_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = rethread_store::Store::new(rethread_store::MemoryBackend::default(), Default::default());
    let project = Project::within(folder, store);
    project.write("a", "old\n");
    let checkpoints = project.open();
    checkpoints.capture("m1", &["a"]);
    project.write("a", "new\n");
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(project.read("a").unwrap(), "old\n");
}

#[test]
fn an_unknown_point_or_receipt_is_an_error_of_its_own() {
    let project = Project::new();
    let checkpoints = project.open();
    assert!(matches!(checkpoints.rewind(at("nowhere")), Err(Error::NoSuchPoint { .. })));
    assert!(matches!(checkpoints.rewind(Point::Undo(id("nothing"))), Err(Error::NoSuchReceipt { .. })));
    let nowhere = project.path("missing");
    let missing = Checkpointer::open(&project.session, &nowhere, Settings::default());
    assert!(
        matches!(block_on(missing), Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound)
    );
}

#[test]
fn r12_an_error_at_capture_is_never_taken_for_an_absent_file() {
    let project = Project::new();
    project.write("a", "mine\n");
    let checkpoints = project.open();
    // No file can have such a name, but the error does not say that nothing is there.
    let long = "x".repeat(300);
    let captured = checkpoints.capture("m1", &[&long, "a/b"]);
    let before = |at: usize| captured.changes[at].before.clone().unwrap();
    assert_eq!((captured.changes[0].path.to_string(), before(0)), ("a/b".into(), State::Absent));
    assert!(matches!(before(1), State::Unknown { .. }), "{:?}", before(1));
    assert!(!checkpoints.planned(at("m1")).is_complete());
}

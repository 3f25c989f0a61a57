//! Forks, subagents, the trash and clean-ups: nobody loses a checkpoint that somebody can still go back to.

use std::time::Duration;

use pollster::block_on;
use rethread_checkpoint::{Checkpointer, Error, Keep, Moment, Reason, Retention, Settings, Window, retire};
use rethread_store::{Cleaning, Entry, Files, Fork, Imported, MemoryBackend, Mode, Options, Session, Store};

use crate::kit::{Project, Speak, at, id};

fn say(session: &Session, message: &str) {
    let entry = Entry::parse(format!(r#"{{"uuid":"{message}","role":"user","content":"x"}}"#)).unwrap();
    block_on(async { session.append(entry).await.unwrap().await.unwrap() });
}

fn of(session: &Session, project: &Project) -> Checkpointer {
    block_on(Checkpointer::open(session, &project.root(), Settings::default())).unwrap()
}

fn turn(project: &Project, session: &Session, message: &str, content: &str) {
    say(session, message);
    let checkpoints = of(session, project);
    checkpoints.capture(message, &["a"]);
    project.write("a", content);
    checkpoints.captured(message, &["a"]);
}

/// Clears away everything that nothing refers to, however young it is.
fn clean(project: &Project) -> usize {
    let cleaning = Cleaning {
        trash_after: Some(Duration::ZERO),
        blobs_after: Duration::ZERO,
        grace: Duration::ZERO,
        mode: Mode::Apply,
    };
    std::thread::sleep(Duration::from_millis(5));
    let cleaned = block_on(project.store.gc(&cleaning)).unwrap();
    assert!(cleaned.failed.is_empty(), "{:?}", cleaned.failed);
    cleaned.blobs.len()
}

#[test]
fn a_fork_goes_back_to_its_ancestors_checkpoints_even_after_they_are_purged() {
    let project = Project::new();
    project.write("a", "0\n");
    turn(&project, &project.session, "m1", "1\n");
    turn(&project, &project.session, "m2", "2\n");
    let fork = block_on(project.session.fork(Fork::default().at(id("m2")))).unwrap();
    turn(&project, &fork, "f1", "3\n");
    assert_eq!(of(&fork, &project).checkpoints_of(), ["m1", "m1", "m2", "m2", "f1", "f1"]);
    for purge in [false, true] {
        if purge {
            block_on(project.store.delete(project.session.id())).unwrap();
            block_on(project.store.purge(project.session.id())).unwrap();
            clean(&project);
        }
        of(&fork, &project).rewind(at("m1")).unwrap();
        assert_eq!(project.read("a").unwrap(), "0\n", "purged: {purge}");
        of(&fork, &project).rewind(at("f1")).unwrap();
        assert_eq!(project.read("a").unwrap(), "2\n", "purged: {purge}");
    }
}

#[test]
fn a_fork_at_an_earlier_message_does_not_see_what_came_later() {
    let project = Project::new();
    project.write("a", "0\n");
    turn(&project, &project.session, "m1", "1\n");
    turn(&project, &project.session, "m2", "2\n");
    let fork = block_on(project.session.fork(Fork::default().at(id("m1")))).unwrap();
    assert_eq!(of(&fork, &project).checkpoints_of(), ["m1", "m1"]);
    // What the other branch did is not this one's to undo.
    assert!(matches!(of(&fork, &project).rewind(at("m1")), Err(Error::InTheWay { .. })));
    assert!(matches!(of(&fork, &project).rewind(at("m2")), Err(Error::NoSuchPoint { .. })));
}

#[test]
fn what_a_subagent_edits_belongs_to_the_turn_that_spawned_it() {
    let project = Project::new();
    project.write("a", "0\n");
    project.write("b", "0\n");
    turn(&project, &project.session, "m1", "1\n");
    let child = block_on(project.session.spawn_child("reviewer")).unwrap();
    let theirs = of(&child, &project);
    theirs.capture("m1", &["b"]);
    project.write("b", "child's\n");
    theirs.captured("m1", &["b"]);
    assert_eq!(theirs.checkpoints_of().len(), 2);
    block_on(project.store.delete(child.id())).unwrap();
    block_on(project.store.purge(child.id())).unwrap();
    clean(&project);
    of(&project.session, &project).rewind(at("m1")).unwrap();
    assert_eq!((project.read("a").unwrap(), project.read("b").unwrap()), ("0\n".into(), "0\n".into()));
}

#[test]
fn r14_a_clean_up_takes_nothing_that_a_capture_a_receipt_or_the_trash_refers_to() {
    let project = Project::new();
    for number in 0..100 {
        project.write(&format!("src/{number}"), format!("file {number}\n"));
    }
    project.write("a", "0\n");
    let checkpoints = of(&project.session, &project);
    block_on(checkpoints.tree(Moment::of(id("m0")), Window::Idle)).unwrap();
    turn(&project, &project.session, "m1", "1\n");
    project.write("src/7", "changed\n");
    block_on(checkpoints.tree(Moment::of(id("m1")).tool("t"), Window::Tools)).unwrap();
    let receipt = checkpoints.rewind(at("m1")).unwrap().receipt.unwrap();
    assert_eq!(clean(&project), 0);
    block_on(project.store.delete(project.session.id())).unwrap();
    let kept =
        Cleaning { trash_after: None, blobs_after: Duration::ZERO, grace: Duration::ZERO, mode: Mode::Apply };
    assert!(block_on(project.store.gc(&kept)).unwrap().blobs.is_empty());
    block_on(project.store.restore(project.session.id())).unwrap();
    of(&project.session, &project).rewind(rethread_checkpoint::Point::Undo(receipt)).unwrap();
    assert_eq!(
        (project.read("a").unwrap(), project.read("src/7").unwrap()),
        ("1\n".into(), "changed\n".into())
    );
    block_on(project.store.delete(project.session.id())).unwrap();
    assert!(clean(&project) > 2, "with the last session its contents go");
}

#[test]
fn retention_gives_up_the_oldest_shows_it_first_and_spares_what_is_pinned() {
    let project = Project::new();
    project.write("a", "0\n");
    for number in 1..=4 {
        turn(&project, &project.session, &format!("m{number}"), &format!("{number}\n"));
    }
    let checkpoints = of(&project.session, &project);
    let keep = |keep| Retention { keep: Some(keep), ..Retention::default() };
    let pinned = block_on(checkpoints.checkpoints()).unwrap()[2].id.clone();
    block_on(checkpoints.pin(&pinned, Keep::Pinned)).unwrap();
    assert_eq!(
        block_on(retire(&project.session, &keep(2), Mode::Plan)).unwrap().checkpoints.len(),
        2,
        "no further than the pin"
    );
    block_on(checkpoints.pin(&pinned, Keep::Free)).unwrap();
    assert_eq!(block_on(retire(&project.session, &keep(2), Mode::Plan)).unwrap().checkpoints.len(), 6);
    assert_eq!(checkpoints.checkpoints_of().len(), 8, "a preview changes nothing");
    block_on(retire(&project.session, &keep(2), Mode::Apply)).unwrap();
    assert_eq!(checkpoints.checkpoints_of(), ["m4", "m4"]);
    assert!(clean(&project) > 0);
    assert!(matches!(checkpoints.rewind(at("m1")), Err(Error::NoSuchPoint { .. })));
    of(&project.session, &project).rewind(at("m4")).unwrap();
    assert_eq!(project.read("a").unwrap(), "3\n");
}

#[test]
fn retention_by_size_keeps_the_newest_that_fit() {
    let project = Project::new();
    for number in 0..5 {
        project.write("a", vec![b'0' + number; 1000]);
        of(&project.session, &project).capture(&format!("m{number}"), &["a"]);
    }
    let retired = block_on(retire(
        &project.session,
        &Retention { bytes: Some(2500), ..Retention::default() },
        Mode::Plan,
    ))
    .unwrap();
    assert_eq!(retired.checkpoints.len(), 3);
    let young = Retention { older_than: Some(Duration::from_secs(3600)), ..Retention::default() };
    assert!(block_on(retire(&project.session, &young, Mode::Plan)).unwrap().checkpoints.is_empty());
}

trait Messages {
    fn checkpoints_of(&self) -> Vec<String>;
}

impl Messages for Checkpointer {
    fn checkpoints_of(&self) -> Vec<String> {
        let all = block_on(self.checkpoints()).unwrap();
        all.iter().filter_map(|checkpoint| checkpoint.message.as_ref().map(ToString::to_string)).collect()
    }
}

/// Sends a session to a store that has never seen any of it.
fn travel(project: &Project, session: &Session, files: Files) -> (Store, Session, Imported) {
    let bundle = project.base().join("bundle");
    let mut out = std::fs::File::create(&bundle).unwrap();
    block_on(project.store.export_with(session.id(), files, &mut out)).unwrap();
    let elsewhere = Store::new(MemoryBackend::default(), Options::default());
    let imported = block_on(elsewhere.import_bundle(&bundle, None)).unwrap();
    let session = block_on(elsewhere.open(&imported.session_id)).unwrap();
    (elsewhere, session, imported)
}

#[test]
fn a_session_that_travels_takes_the_contents_along_that_its_checkpoints_and_its_ancestors_refer_to() {
    let project = Project::new();
    let large: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    project.write("a", "0\n");
    project.write("large", &large);
    project.write("empty", "");
    for number in 0..60 {
        project.write(&format!("many/{number}"), format!("{number} of many\n"));
    }
    turn(&project, &project.session, "m1", "1\n");
    let fork = block_on(project.session.fork(Fork::default().at(id("m1")))).unwrap();
    say(&fork, "f1");
    let checkpoints = of(&fork, &project);
    block_on(checkpoints.tree(Moment::of(id("f1")), Window::Idle)).unwrap();
    std::fs::remove_dir_all(project.path("many")).unwrap();
    project.write("a", "2\n");
    project.write("large", "small\n");
    project.remove("empty");
    block_on(checkpoints.tree(Moment::of(id("f1")).tool("t"), Window::Tools)).unwrap();

    let (store, there, imported) = travel(&project, &fork, Files::Included);
    assert!(imported.files > 3 && !imported.without_files && imported.skipped == 0, "{imported:?}");
    let mut looked = rethread_checkpoint::Looked::default();
    let lost = block_on(rethread_checkpoint::verify(&store, there.id(), &mut looked));
    assert_eq!(lost.unwrap(), []);
    assert!(block_on(store.verify(there.id())).unwrap().is_ok());
    let checkpoints = of(&there, &project);
    checkpoints.rewind(at("f1")).unwrap();
    assert_eq!(project.read("large").unwrap(), large);
    assert_eq!((project.read("a").unwrap(), project.read("empty").unwrap()), ("1\n".into(), String::new()));
    assert_eq!(project.read("many/59").unwrap(), "59 of many\n");
    // What the fork inherits travels too.
    checkpoints.rewind(at("m1")).unwrap();
    assert_eq!(project.read("a").unwrap(), "0\n");
}

#[test]
fn a_session_that_travels_without_its_contents_says_so_and_its_rewind_stops_before_the_first_change() {
    let project = Project::new();
    project.write("a", "0\n");
    turn(&project, &project.session, "m1", "1\n");
    let (_, there, imported) = travel(&project, &project.session, Files::LeftOut);
    assert!(imported.files == 0 && imported.without_files, "{imported:?}");
    let plan = of(&there, &project).planned(at("m1"));
    assert_eq!(plan.conflicts[0].reason, Reason::Missing);
    assert_eq!(project.read("a").unwrap(), "1\n");
}

//! What a turn, a tool call or a capture changed.

use pollster::block_on;
use rethread_checkpoint::{Changes, Checkpointer, Error, Moment, Source, Span, State, Window};

use crate::kit::{Project, Speak as _, at, id};
use crate::trees::{idle, ran};

fn changes(checkpoints: &Checkpointer, span: Span) -> Changes {
    block_on(checkpoints.changes(&span)).unwrap()
}

fn names(changes: &Changes) -> Vec<String> {
    changes.paths.iter().map(|changed| changed.path.to_string()).collect()
}

fn diff(checkpoints: &Checkpointer, changes: &Changes, path: &str) -> Option<String> {
    let changed = changes.paths.iter().find(|changed| changed.path.to_string() == path).unwrap();
    block_on(checkpoints.diff_of(changed)).unwrap()
}

/// A person writes, an agent's tool writes, and so again in a second turn.
fn two_turns(project: &Project, checkpoints: &Checkpointer) {
    project.write("a", "1\n");
    project.write("gone", "x\n");
    idle(checkpoints, "m1");
    project.write("a", "2\n");
    project.remove("gone");
    ran(checkpoints, "m1");
    project.write("a", "by hand\n");
    project.write("notes", "by hand\n");
    idle(checkpoints, "m2");
    let call = || Moment::of(id("m2")).tool("write-1");
    block_on(checkpoints.before(call(), &["a"])).unwrap();
    project.write("a", "3\n");
    block_on(checkpoints.after(call(), &["a"])).unwrap();
}

#[test]
fn a_turn_shows_what_it_did_and_not_what_a_person_did_before_it() {
    let project = Project::quick();
    let checkpoints = project.open();
    two_turns(&project, &checkpoints);
    let first = changes(&checkpoints, Span::Turn(id("m1")));
    assert_eq!(names(&first), ["a", "gone"]);
    assert_eq!(diff(&checkpoints, &first, "a").unwrap(), "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n");
    assert!(diff(&checkpoints, &first, "gone").unwrap().contains("+++ /dev/null"));
    let second = changes(&checkpoints, Span::Turn(id("m2")));
    assert_eq!(names(&second), ["a"]);
    assert!(diff(&checkpoints, &second, "a").unwrap().ends_with("-by hand\n+3\n"));
    assert_eq!(changes(&checkpoints, Span::Turn(id("m3"))), Changes::default());
}

#[test]
fn a_tool_call_and_a_capture_show_their_own_part() {
    let project = Project::quick();
    let checkpoints = project.open();
    two_turns(&project, &checkpoints);
    let call = changes(&checkpoints, Span::Tool("write-1".into()));
    assert_eq!(
        (names(&call), call.paths[0].source, call.paths[0].assumed),
        (vec!["a".into()], Source::Named, false)
    );
    let last = block_on(checkpoints.checkpoints()).unwrap().pop().unwrap();
    let capture = changes(&checkpoints, Span::Checkpoint(last.id));
    assert!(diff(&checkpoints, &capture, "a").unwrap().ends_with("-by hand\n+3\n"));
    let nowhere = block_on(checkpoints.changes(&Span::Checkpoint(id("nowhere"))));
    assert!(matches!(nowhere, Err(Error::NoSuchPoint { .. })), "{nowhere:?}");
}

#[test]
fn since_a_turn_is_up_to_what_is_on_disk_now() {
    let project = Project::quick();
    let checkpoints = project.open();
    two_turns(&project, &checkpoints);
    project.write("a", "later\n");
    let since = changes(&checkpoints, Span::Since(id("m1")));
    assert_eq!(names(&since), ["a", "gone", "notes"]);
    assert!(diff(&checkpoints, &since, "a").unwrap().ends_with("-1\n+later\n"));
    assert!(since.paths[0].assumed && !since.paths[1].assumed);
    // What is again as it was has not changed.
    project.write("a", "1\n");
    assert_eq!(names(&changes(&checkpoints, Span::Since(id("m1")))), ["gone", "notes"]);
}

#[test]
fn what_nobody_looked_at_afterwards_is_what_was_found_there_next() {
    let project = Project::quick();
    project.write("a", "1\n");
    let checkpoints = project.open();
    let before = |message: &str| block_on(checkpoints.before(Moment::of(id(message)), &["a"])).unwrap();
    before("m1");
    project.write("a", "2\n");
    before("m2");
    project.write("a", "3\n");
    let first = changes(&checkpoints, Span::Turn(id("m1")));
    assert!(diff(&checkpoints, &first, "a").unwrap().ends_with("-1\n+2\n") && first.paths[0].assumed);
    let second = changes(&checkpoints, Span::Turn(id("m2")));
    assert!(diff(&checkpoints, &second, "a").unwrap().ends_with("-2\n+3\n") && second.paths[0].assumed);
}

#[test]
fn what_has_no_lines_has_no_diff_and_a_missed_capture_is_said() {
    let project = Project::quick();
    project.write("binary", [0, 1, 2]);
    let checkpoints = project.open();
    block_on(checkpoints.tree(Moment::of(id("m1")), Window::Idle)).unwrap();
    project.write("binary", [0, 3]);
    project.write("large", "line\n".repeat(300_000));
    ran(&checkpoints, "m1");
    block_on(checkpoints.missed(Moment::default(), "the disk was full")).unwrap();
    let all = changes(&checkpoints, Span::Since(id("m1")));
    assert_eq!(names(&all), ["binary", "large"]);
    assert_eq!((diff(&checkpoints, &all, "binary"), diff(&checkpoints, &all, "large")), (None, None));
    assert_eq!(all.paths[1].before, State::Absent);
    assert!(all.incomplete[0].contains("the disk was full"), "{:?}", all.incomplete);
}

#[test]
fn a_turn_of_which_nothing_could_be_captured_did_not_change_nothing() {
    let project = Project::quick();
    project.write("a", "old\n");
    let checkpoints = project.open();
    block_on(checkpoints.tree(Moment::of(id("m1")), Window::Idle)).unwrap();
    let call = Moment { tool_use: vec!["t1".into()], ..Moment::of(id("m2")) };
    block_on(checkpoints.missed(call, "the disk was full")).unwrap();
    for span in [Span::Turn(id("m2")), Span::Tool("t1".into()), Span::Since(id("m2"))] {
        let changes = changes(&checkpoints, span);
        assert!(changes.incomplete[0].contains("the disk was full"), "{:?}", changes.incomplete);
    }
    let plan = checkpoints.planned(at("m2"));
    assert!(!plan.is_complete() && plan.incomplete.len() == 1, "{plan:?}");
}

//! A loop's recorder with checkpoints.

#[path = "../examples/rewinding_loop.rs"]
#[expect(dead_code, reason = "its main is not run here")]
mod rewinding_loop;

use std::sync::Arc;

use pollster::block_on;
use rethread_store::{Recorder, Recording, Tool};

use crate::kit::Project;

#[test]
fn the_example_takes_a_turn_back_and_undoes_that() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    rewinding_loop::run(folder.path(), &mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    let expected = "after the agent: [\"out\"]\n  Create greeting.txt\n  Remove out\n  Remove out/log\n\
        after the rewind: [\"greeting.txt\"]\n  greeting.txt says \"hello, world\\n\"\nafter its undo: [\"out\"]\n";
    assert_eq!(said, expected);
}

#[test]
fn a_capture_that_fails_is_told_and_stops_nothing() {
    let project = Project::new();
    let recorder = Recorder::on(project.session.clone(), Recording::default()).unwrap();
    let without = block_on(recorder.before_tool(&Tool::call("c").path("a")));
    assert!(without.checkpoint.is_none() && without.problem.is_none());
    let recorder = recorder.with_checkpoints(Arc::new(project.open()));
    let captured = block_on(recorder.before_tool(&Tool::call("c").path("a")));
    assert!(captured.checkpoint.is_some() && captured.problem.is_none());
    std::fs::remove_dir_all(project.root()).unwrap();
    let failed = block_on(recorder.after_tool(&Tool::call("c")));
    assert!(failed.checkpoint.is_none() && failed.problem.is_some());
}

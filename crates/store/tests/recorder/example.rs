//! The example agent loop, run as a person would run it.

#[expect(dead_code, reason = "its main is for `cargo run --example agent_loop`")]
#[path = "../../examples/agent_loop.rs"]
mod agent_loop;

use self::agent_loop::{Ran, run};
use crate::kit::{Home, run as block_on};

const ANSWER: &str = r#"hello.txt says \"hello, world\". It greets. Good."#;

struct Place {
    home: Home,
    dir: tempfile::TempDir,
}

#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
impl Place {
    fn new() -> Self {
        Self { home: Home::new(), dir: tempfile::tempdir().unwrap() }
    }

    /// Runs the loop in its own store, and returns what it came to and what it printed.
    fn run(&self, args: &[&str]) -> (Ran, String) {
        let (root, dir) = (self.home.root(), self.dir.path());
        let mut all = vec!["--store", root.to_str().unwrap(), "--dir", dir.to_str().unwrap()];
        all.extend(args);
        let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        let mut out = Vec::new();
        let ran = run(&all, &mut out).unwrap();
        (ran, String::from_utf8(out).unwrap())
    }
}

#[test]
fn the_example_loop_runs_to_its_end_with_real_tools() {
    let place = Place::new();
    let (ran, printed) = place.run(&[]);

    assert_eq!((ran.exit_reason, ran.turn_count, ran.messages.len()), ("end_turn", 4, 8));
    assert!(ran.messages[7].as_str().contains(ANSWER), "{:?}", ran.messages[7]);
    assert_eq!(std::fs::read_to_string(place.dir.path().join("hello.txt")).unwrap(), "hello, world\n");
    assert!(printed.contains("assistant calls write_file"), "{printed}");
    let metadata = block_on(place.home.open().metadata(&ran.session)).unwrap();
    assert_eq!((metadata.turn_count, metadata.message_count), (4, 8));
    assert_eq!((metadata.exit_reason.as_deref(), metadata.total_tokens > 0), (Some("end_turn"), true));
    let transcript = place.home.session_folder(&ran.session).join("transcript.jsonl");
    assert_eq!(std::fs::read_to_string(transcript).unwrap().lines().count(), 8);
}

#[test]
fn the_example_loop_stopped_after_any_turn_and_continued_comes_to_the_same_end() {
    for turns in ["1", "2", "3"] {
        let place = Place::new();
        let (stopped, _) = place.run(&["--turns", turns]);
        assert_eq!((stopped.exit_reason, stopped.turn_count.to_string().as_str()), ("max_turns", turns));

        let (ended, printed) = place.run(&["--continue"]);

        assert_eq!(ended.session, stopped.session, "{printed}");
        assert_eq!(ended.messages[..stopped.messages.len()], stopped.messages[..]);
        assert_eq!((ended.exit_reason, ended.turn_count, ended.messages.len()), ("end_turn", 4, 8));
        assert!(ended.messages[7].as_str().contains(ANSWER), "{:?}", ended.messages[7]);
    }
}

#[test]
fn the_example_loop_goes_on_in_a_fork_and_leaves_the_original_alone() {
    let place = Place::new();
    let (first, _) = place.run(&[]);
    let (id, point) = (first.session.to_string(), first.messages[2].id().to_string());

    let (forked, _) = place.run(&["--resume", &id, "--at", &point, "--fork"]);

    assert_ne!(forked.session, first.session);
    assert_eq!(forked.messages[..3], first.messages[..3]);
    assert_eq!((forked.exit_reason, forked.turn_count, forked.messages.len()), ("end_turn", 3, 8));
    let store = place.home.open();
    let metadata = block_on(store.metadata(&forked.session)).unwrap();
    assert_eq!(metadata.parent_id.as_ref(), Some(&first.session));
    let original = block_on(block_on(store.open(&first.session)).unwrap().messages()).unwrap();
    assert_eq!(original.entries().cloned().collect::<Vec<_>>(), first.messages);
}

#[test]
fn the_example_loop_makes_a_call_that_a_dead_run_left_open() {
    let place = Place::new();
    let (first, _) = place.run(&["--turns", "1"]);
    let (id, call) = (first.session.to_string(), first.messages[1].id().to_string());
    std::fs::remove_file(place.dir.path().join("hello.txt")).unwrap();

    let (ended, _) = place.run(&["--resume", &id, "--at", &call]);

    assert_eq!((ended.session, ended.exit_reason, ended.messages.len()), (first.session, "end_turn", 8));
    assert!(place.dir.path().join("hello.txt").is_file());
}

#[test]
fn the_example_loop_does_the_same_without_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--dir".to_owned(), dir.path().display().to_string()];
    let ran = run(&args, &mut Vec::new()).unwrap();
    assert_eq!((ran.exit_reason, ran.turn_count, ran.messages.len()), ("end_turn", 4, 8));
    let files: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["hello.txt"]);
}

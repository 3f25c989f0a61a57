//! Sessions of Claude Code's own that went more than one way: every branch can be seen, and gone on from.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::kit::Home;
use crate::native::{ONE, home, turn};

/// What was asked first, and another way than the session went on with.
const LEFT: &str = "bbbbbbbb-0000-4000-8000-000000000000";
const ACTIVE: &str = "aaaaaaaa-0000-4000-8000-000000000003";

/// A session with a branch that was left, lines about itself and one that is no entry.
fn branched() -> (Home, String) {
    let home = home();
    let follows = "aaaaaaaa-0000-4000-8000-000000000001";
    let left = json!({ "parentUuid": follows, "type": "user", "uuid": LEFT, "timestamp": "2026-02-09T10:00:00.500Z",
        "message": { "role": "user", "content": "Left behind" } });
    let title = json!({ "type": "custom-title", "customTitle": "Two ways", "sessionId": ONE });
    let lines = [
        turn(0, "/work/one").concat(),
        format!("{left}\n"),
        turn(1, "/work/one").concat(),
        format!("{title}\n"),
    ];
    let text = lines.concat();
    fs::write(home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl")), &text).unwrap();
    (home, text)
}

fn uuids(home: &Home, words: &[&str]) -> Vec<String> {
    let answer = home.answer(words);
    let uuid = |line: &str| serde_json::from_str::<Value>(line).unwrap()["uuid"].as_str().unwrap().to_owned();
    answer.lines().map(uuid).collect()
}

#[test]
fn everything_is_shown_with_the_branch_it_is_on() {
    let (home, _) = branched();
    let expected = format!(
        "user  aaaaaaaa-0000-4000-8000-000000000000\n  Question 0 about /work/one\n\n\
        assistant  aaaaaaaa-0000-4000-8000-000000000001\n  Answer 0\n\n\
        -- not on the active branch --\nuser  {LEFT}\n  Left behind\n\n\
        -- after aaaaaaaa-0000-4000-8000-000000000001 --\n\
        user  aaaaaaaa-0000-4000-8000-000000000002\n  Question 1 about /work/one\n\n\
        assistant  {ACTIVE}\n  Answer 1\n\n[custom-title]  -\n"
    );
    assert_eq!(home.answer(&["show", ONE, "--all"]), expected);
}

#[test]
fn raw_lines_are_those_of_the_file() {
    let (home, text) = branched();
    let lines: Vec<&str> = text.lines().collect();
    let active = [lines[0], lines[1], lines[3], lines[4]].map(|line| format!("{line}\n")).concat();
    assert_eq!(home.answer(&["show", ONE, "--raw"]), active);
    assert_eq!(home.answer(&["show", ONE, "--raw", "--all"]), text);
    let left = lines[..3].join("\n") + "\n";
    assert_eq!(home.answer(&["show", ONE, "--raw", "--branch", LEFT]), left);
    // What is damaged stands there as well.
    let damaged = text + "no entry\r\n\n{\"half";
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    fs::write(file, &damaged).unwrap();
    let shown = home.run(&["show", ONE, "--raw", "--all"]);
    assert_eq!((shown.code, shown.out), (1, damaged + "\n"));
}

#[test]
fn branches_are_listed_and_each_can_be_shown_and_forked() {
    let (home, _) = branched();
    let listed = home.answer(&["show", ONE, "--branches"]);
    let expected = format!(
        "{LEFT}     3  2026-02-09T10:00:00.500Z  [left] Left behind\n\
        {ACTIVE}     4  2026-02-09T10:00:01.000Z  [active] Answer 1\n"
    );
    assert_eq!(listed, expected);
    assert_eq!(uuids(&home, &["show", ONE, "--branches", "--json"]), [LEFT, ACTIVE]);
    let branch = uuids(&home, &["show", ONE, "--json", "--branch", "bbbb"]);
    let expected = ["aaaaaaaa-0000-4000-8000-000000000000", "aaaaaaaa-0000-4000-8000-000000000001", LEFT];
    assert_eq!(branch, expected);
    let fork = home.answer(&["fork", ONE, "--at", "bbbb", "--name", " Another\nway "]);
    assert_eq!(uuids(&home, &["show", fork.trim(), "--json"]), expected);
    home.answer(&["new", "--id", "mine"]);
    assert_eq!(home.run(&["show", "mine", "--branches"]).code, 2);
}

#[test]
fn a_fork_is_named_as_a_session_is_renamed() {
    let (home, _) = branched();
    let fork = home.answer(&["fork", ONE, "--name", " Another\nway "]);
    let folder = home.path().join(".claude/projects/-work-one");
    let named = |id: &str| {
        let text = fs::read_to_string(folder.join(format!("{id}.jsonl"))).unwrap().replace(id, "ID");
        let lines = text.lines().filter(|line| line.contains("Another")).map(str::to_owned);
        let beside = fs::read_to_string(folder.join(id).join("custom-title.json")).unwrap();
        lines.chain([beside]).collect::<Vec<String>>()
    };
    home.run(&["rename", ONE, " Another\nway "]);
    assert_eq!(named(fork.trim()), named(ONE));
    assert_eq!(named(ONE).len(), 3);
}

#[test]
fn a_name_that_is_too_long_is_cut_and_the_person_is_told() {
    let (home, _) = branched();
    let said = home.run(&["rename", ONE, &"é".repeat(250)]);
    let expected = format!(
        "Session 11111111 is now called \"{}\".\n\
        warning: Claude Code's names have at most 200 characters: 200 of 250 were kept\n",
        "é".repeat(200)
    );
    assert_eq!((said.code, said.err), (0, expected));
    assert!(!home.run(&["rename", ONE, &"é".repeat(200)]).err.contains("warning"));
    let forked = home.run(&["fork", ONE, "--name", &"é".repeat(250)]);
    assert!(forked.err.contains("200 of 250 were kept"), "{}", forked.err);
    assert!(!home.run(&["fork", ONE, "--name", "é"]).err.contains("warning"));
}

#[test]
fn what_a_tool_changed_is_shown_as_lines_and_no_more_than_a_person_reads() {
    let home = home();
    let hunk = |lines: Vec<String>| json!({ "oldStart": 1, "newStart": 1, "lines": lines });
    let changed = ["-old", "+new"].map(str::to_owned).to_vec();
    let many = (0..20).map(|number| format!("+line {number}")).collect();
    let result = |uuid: &str, parent: &str, hunks: Value| {
        let content = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "done" }]);
        let entry = json!({ "parentUuid": parent, "type": "user", "uuid": uuid, "message": { "role": "user", "content": content },
            "toolUseResult": { "filePath": "/x", "structuredPatch": hunks } });
        format!("{entry}\n")
    };
    let text = turn(0, "/work/one").concat()
        + &result("r1", "aaaaaaaa-0000-4000-8000-000000000001", json!([hunk(changed)]))
        + &result("r2", "r1", json!([hunk(many)]));
    fs::write(home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl")), text).unwrap();
    let shown = home.answer(&["show", ONE]);
    assert!(shown.contains("user  r1\n  < done\n    -old\n    +new\n\n"), "{shown}");
    assert!(shown.ends_with("    +line 11\n    … 8 lines more\n"), "{shown}");
}

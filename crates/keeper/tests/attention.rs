//! What waits for a person: what their answers do, and what becomes of a question that nobody answers any more.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use rethread_testkit::Prompt;
use serde_json::{Value, json};

use crate::driving::{Desk, create, decide, live_pid, pending, turn, until_state, wait_for_request};
use crate::kit::{Kept, Socket};

fn shell(command: &str) -> Prompt {
    Prompt::new("Run it.").calls("Bash", json!({ "command": command, "description": "run" })).says("Done.")
}

/// Answers a request with more than yes or no.
fn answer(kept: &Kept, request: &Value, more: Value) -> crate::kit::Answer {
    let mut body = json!({ "decision": "allow", "shown_digest": request["digest"] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    kept.post(&format!("/attention/{}/decision", request["shown"]["id"].as_str().unwrap()), body)
}

#[test]
fn what_is_allowed_for_the_session_is_not_asked_again_there_and_everything_else_is() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let id = create(&kept, &desk, &shell("touch one"));
    let request = wait_for_request(&kept);
    answer(&kept, &request, json!({ "scope": "session" })).good();
    until_state(&kept, &id, "idle");
    fs::remove_file(desk.project().join("one")).unwrap();
    turn(&kept, &id, &shell("touch one"), "start");
    kept.until("it ran unasked", || desk.project().join("one").try_exists().unwrap().then_some(()));
    until_state(&kept, &id, "idle");
    assert_eq!(kept.get("/attention").good()["items"].as_array().unwrap().len(), 1);
    // Another tool, and another session, ask as ever.
    let input = json!({ "file_path": desk.project().join("two"), "content": "two" });
    turn(&kept, &id, &Prompt::new("Write it.").calls("Write", input).says("Done."), "start");
    assert_eq!(wait_for_request(&kept)["shown"]["tool_name"], "Write");
    decide(&kept, &wait_for_request(&kept), "deny").good();
    until_state(&kept, &id, "idle");
    let other = create(&kept, &desk, &shell("touch one"));
    assert_eq!(wait_for_request(&kept)["shown"]["session_id"], other.as_str());
}

#[test]
fn a_tool_runs_with_what_it_was_allowed_with_and_the_record_says_so() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let file = desk.project().join("new.txt");
    let input = |text: &str| json!({ "file_path": file, "content": text });
    let prompt = Prompt::new("Write it.").calls("Write", input("the model's")).says("Done.");
    let id = create(&kept, &desk, &prompt);
    let request = wait_for_request(&kept);
    // No tool is called with anything but an object; nothing was decided by asking so.
    assert_eq!(answer(&kept, &request, json!({ "updated_input": "rm" })).status, 400);
    assert_eq!(pending(&kept).len(), 1);
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    socket.until("caught_up");
    let decided = answer(&kept, &request, json!({ "updated_input": input("the person's") })).good();
    // Everybody hears who decided.
    let told = socket.until("attention.decided").1["data"].clone();
    assert_eq!(
        (&told["id"], &told["state"], &told["decided_by"]),
        (&request["shown"]["id"], &json!("allowed"), &json!("token"))
    );
    assert_eq!(decided["updated_input"], input("the person's"));
    until_state(&kept, &id, "idle");
    assert_eq!(fs::read_to_string(&file).unwrap(), "the person's");
    let listed = kept.get("/attention?state=allowed").good()["items"][0].clone();
    assert_eq!(listed["shown"]["input"]["content"], "the model's");
    assert_eq!(listed["updated_input"], input("the person's"));
}

/// Claudekeeper's fault 7: what waits is never cleared when its turn is interrupted.
#[test]
fn a_request_is_withdrawn_when_its_turn_is_interrupted_and_allows_nothing() {
    is_withdrawn("turn.interrupted", |kept, _, id| {
        assert_eq!(kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good()["interrupted"], true);
    });
}

/// Nor when the agent crashes.
#[test]
fn a_request_is_withdrawn_when_its_agent_dies_and_allows_nothing() {
    is_withdrawn("turn.failed", |kept, desk, id| {
        let pid = kept.until("the CLI is registered", || live_pid(desk, id));
        assert!(
            std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success()
        );
    });
}

/// Has a tool wait for a decision, ends its turn, and checks that the question is over for everybody.
fn is_withdrawn(ends: &str, end: impl FnOnce(&Kept, &Desk, &str)) {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    socket.until("caught_up");
    let id = create(&kept, &desk, &shell("touch never"));
    let request = wait_for_request(&kept);
    end(&kept, &desk, &id);
    let mut told = Vec::new();
    while !["attention.withdrawn", ends].iter().all(|kind| told.iter().any(|it: &Value| it["type"] == *kind))
    {
        told.push(socket.next());
    }
    let withdrawn = told.iter().find(|it| it["type"] == "attention.withdrawn").unwrap();
    assert_eq!(withdrawn["data"]["id"], request["shown"]["id"]);
    assert!(told.iter().all(|it| it["type"] != "attention.decided"), "{told:?}");
    assert_eq!(pending(&kept).len(), 0);
    let late = decide(&kept, &request, "allow");
    assert_eq!((late.status, late.json()["about"]["attention"]["state"].as_str()), (409, Some("withdrawn")));
    // The session goes on, and asks anew.
    turn(&kept, &id, &shell("touch again"), "queue");
    let again = wait_for_request(&kept);
    assert_eq!(again["repeats"], Value::Null);
    decide(&kept, &again, "deny").good();
    until_state(&kept, &id, "idle");
    let made = ["never", "again"].map(|name| desk.project().join(name).try_exists().unwrap());
    assert_eq!(made, [false, false]);
}

//! Prompts that wait: none is lost, and none is said twice.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;

use rethread_testkit::{Prompt, Reply};
use serde_json::{Value, json};

use crate::driving::{Desk, create, new_id, state, texts, turn, until_state};
use crate::kit::{Kept, Socket};

#[test]
fn prompts_wait_for_their_turn_and_the_same_one_twice_is_one() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let (id, gate) = busy(&desk, &kept);
    let busy = json!({ "client_message_id": new_id(), "parts": [{ "type": "text", "text": "x" }] });
    let answer = kept.post(&format!("/sessions/{id}/turns"), busy);
    assert_eq!((answer.status, answer.json()["code"].as_str()), (409, Some("busy")));
    let (second, accepted) = turn(&kept, &id, &Prompt::new("continue").says("Two."), "queue");
    assert_eq!(accepted["queued"], true);
    let again = json!({ "client_message_id": second, "mode": "queue", "parts": [{ "type": "text", "text": "continue" }] });
    kept.post(&format!("/sessions/{id}/turns"), again).good();
    let (third, _) = turn(&kept, &id, &Prompt::new("never").says("Never."), "queue");
    turn(&kept, &id, &Prompt::new("continue").says("Three."), "queue");
    assert_eq!(kept.get(&format!("/sessions/{id}/queue")).good()["items"].as_array().unwrap().len(), 3);
    assert_eq!(kept.delete(&format!("/sessions/{id}/queue/{third}")).status, 204);
    fs::write(&gate, "").unwrap();
    kept.until("all were answered", || {
        let all = kept.get(&format!("/sessions/{id}/messages")).good().to_string();
        (all.contains("Three.") && state(&kept, &id) == "idle").then_some(())
    });
    let said = texts(&kept, &id);
    assert_eq!(said.iter().filter(|text| text.contains("continue")).count(), 2, "{said:?}");
    assert!(!said.iter().any(|text| text.contains("Never.")));
    let page = kept.get(&format!("/sessions/{id}/messages")).good();
    assert!(page["items"].as_array().unwrap().iter().any(|item| item["uuid"] == second.as_str()));
}

/// Begins a session whose first turn goes on until its gate is open.
fn busy(desk: &Desk, kept: &Kept) -> (String, PathBuf) {
    let gate = desk.gate();
    let id = create(kept, desk, &Prompt::new("First.").reply(Reply::text("One.").once(&gate)));
    until_state(kept, &id, "running");
    (id, gate)
}

fn queue(kept: &Kept, session: &str) -> Value {
    kept.get(&format!("/sessions/{session}/queue")).good()
}

fn ids(queue: &Value) -> Vec<&str> {
    let items = queue["items"].as_array().unwrap().iter();
    items.map(|item| item["client_message_id"].as_str().unwrap()).collect()
}

fn how_often(said: &[String], text: &str) -> usize {
    said.iter().filter(|said| said.contains(text)).count()
}

#[test]
fn prompts_that_wait_when_the_keeper_ends_wait_in_the_next_one_until_somebody_goes_on() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper();
    let (id, gate) = busy(&desk, &kept);
    let (second, _) = turn(&kept, &id, &Prompt::new("second").says("Two."), "queue");
    let (taken_back, _) = turn(&kept, &id, &Prompt::new("never").says("Never."), "queue");
    let (third, _) = turn(&kept, &id, &Prompt::new("third").says("Three."), "queue");
    kept.end();
    fs::write(&gate, "").unwrap();
    let kept = desk.keeper();
    let left = queue(&kept, &id);
    assert_eq!((ids(&left), &left["held"]), (vec![&*second, &*taken_back, &*third], &json!(true)));
    assert_eq!(kept.delete(&format!("/sessions/{id}/queue/{taken_back}")).status, 204);
    assert_eq!(kept.delete(&format!("/sessions/{id}/queue/{taken_back}")).status, 404);
    assert_eq!(state(&kept, &id), "idle", "nothing goes on by itself");
    let mut socket = Socket::open(&kept);
    socket.subscribe(&format!("session:{id}"), None);
    socket.until("caught_up");
    assert_eq!(kept.post(&format!("/sessions/{id}/queue/resume"), json!({})).status, 202);
    assert_eq!(socket.until("queue.changed").1["data"]["held"], false);
    for message in [&second, &third] {
        assert_eq!(socket.until("turn.completed").1["data"]["message"], **message);
    }
    let said = texts(&kept, &id);
    assert!(
        ["Two.", "Three."].iter().all(|text| how_often(&said, text) == 2),
        "asked and answered: {said:?}"
    );
    assert_eq!(how_often(&said, "Never."), 0);
    assert_eq!(ids(&queue(&kept, &id)), Vec::<&str>::new());
}

#[test]
fn what_is_said_next_goes_behind_what_an_earlier_keeper_left() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper();
    let (id, gate) = busy(&desk, &kept);
    let (second, _) = turn(&kept, &id, &Prompt::new("second").says("Two."), "queue");
    kept.end();
    fs::write(&gate, "").unwrap();
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe(&format!("session:{id}"), None);
    socket.until("caught_up");
    let (third, accepted) = turn(&kept, &id, &Prompt::new("third").says("Three."), "start");
    assert_eq!(accepted["queued"], true);
    for message in [&second, &third] {
        assert_eq!(socket.until("turn.completed").1["data"]["message"], **message);
    }
}

#[test]
fn a_session_that_is_let_go_keeps_what_waits() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let (id, gate) = busy(&desk, &kept);
    let (second, _) = turn(&kept, &id, &Prompt::new("second").says("Two."), "queue");
    kept.post(&format!("/sessions/{id}/lease"), json!({ "action": "release" })).good();
    fs::write(&gate, "").unwrap();
    assert_eq!(ids(&queue(&kept, &id)), [&*second]);
    assert_eq!(kept.post(&format!("/sessions/{id}/queue/resume"), json!({})).status, 202);
    kept.until("it was answered", || (how_often(&texts(&kept, &id), "Two.") == 2).then_some(()));
}

#[test]
fn a_prompt_that_is_sent_again_after_the_keeper_was_started_again_is_one() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper();
    let id = create(&kept, &desk, &Prompt::new("First.").says("One."));
    until_state(&kept, &id, "idle");
    let prompt = Prompt::new("second").says("Two.");
    let (second, _) = turn(&kept, &id, &prompt, "start");
    until_state(&kept, &id, "idle");
    assert_eq!(how_often(&texts(&kept, &id), "Two."), 2);
    kept.end();
    let kept = desk.keeper();
    let parts = json!([{ "type": "text", "text": prompt.to_string() }]);
    let again = json!({ "client_message_id": second, "parts": parts });
    assert_eq!(kept.post(&format!("/sessions/{id}/turns"), again).status, 202);
    let (_, _) = turn(&kept, &id, &Prompt::new("third").says("Three."), "start");
    until_state(&kept, &id, "idle");
    let said = texts(&kept, &id);
    assert_eq!((how_often(&said, "Two."), how_often(&said, "Three.")), (2, 2), "{said:?}");
}

#[test]
fn a_session_that_was_begun_with_a_key_is_not_begun_again_by_the_next_keeper_nor_is_anything_said_twice() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper();
    let body = json!({ "cwd": desk.project(), "prompt": Prompt::new("Go.").says("Gone.").to_string() });
    let begin = |kept: &Kept| {
        let begun = kept.ask("POST", "/api/v1/sessions", &[("Idempotency-Key", "k")], &body.to_string());
        assert_eq!(begun.status, 201, "{begun:?}");
        begun.json()["session_id"].as_str().unwrap().to_owned()
    };
    let id = begin(&kept);
    until_state(&kept, &id, "idle");
    kept.end();
    let kept = desk.keeper();
    assert_eq!(begin(&kept), id);
    turn(&kept, &id, &Prompt::new("And?").says("Well."), "start");
    until_state(&kept, &id, "idle");
    let said = texts(&kept, &id);
    assert_eq!(said.iter().filter(|text| text.contains("Go.")).count(), 1, "{said:?}");
}

//! What goes wrong around an agent, and is told or mended.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rethread_testkit::Prompt;
use serde_json::{Value, json};

use crate::driving::{Desk, create, decide, new_id, texts, turn, until_state, wait_for_request};
use crate::kit::Socket;

#[test]
fn what_could_not_be_captured_is_unknown_and_never_nothing() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let id = create(&kept, &desk, &Prompt::new("First.").says("One."));
    until_state(&kept, &id, "idle");
    fs::write(desk.project().join("kept.txt"), "as it was\n").unwrap();
    // Where contents are kept there is something else now; the session's records can still be written.
    let store = kept.home.with_file_name("store");
    let (blobs, aside) = (store.join("blobs"), store.join("aside"));
    fs::create_dir_all(&blobs).unwrap();
    fs::rename(&blobs, &aside).unwrap();
    fs::write(&blobs, "in the way").unwrap();
    let input = json!({ "command": "echo changed > kept.txt", "description": "change" });
    let (message, _) = turn(&kept, &id, &Prompt::new("Go.").calls("Bash", input).says("Done."), "start");
    decide(&kept, &wait_for_request(&kept), "allow").good();
    until_state(&kept, &id, "idle");
    assert_eq!(fs::read_to_string(desk.project().join("kept.txt")).unwrap(), "changed\n");
    fs::remove_file(&blobs).unwrap();
    fs::rename(&aside, &blobs).unwrap();
    let plan = kept.post(&format!("/sessions/{id}/rewind"), json!({ "to": message, "dry_run": true })).good();
    assert_eq!(plan["result"]["complete"], false, "{plan}");
    assert!(!plan["result"]["incomplete"].as_array().unwrap().is_empty(), "{plan}");
    let diff = kept.get(&format!("/sessions/{id}/diff?turn={message}")).good();
    assert!(!diff["incomplete"].as_array().unwrap().is_empty(), "{diff}");
}

#[test]
fn an_empty_transcript_that_an_agent_left_behind_keeps_no_session_from_beginning() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    // Somebody else's first, which shows where transcripts of the project are.
    let other = create(&kept, &desk, &Prompt::new("First.").says("One."));
    until_state(&kept, &other, "idle");
    texts(&kept, &other);
    let begun = kept.post("/sessions", json!({ "cwd": desk.project() })).good();
    let id = begun["session_id"].as_str().unwrap();
    let left = json!({ "type": "mode", "mode": "normal", "sessionId": id });
    let path = desk.transcript(&other).with_file_name(format!("{id}.jsonl"));
    fs::write(&path, format!("{left}\n")).unwrap();
    turn(&kept, id, &Prompt::new("Begin.").says("Begun."), "start");
    until_state(&kept, id, "idle");
    let said: Vec<String> = texts(&kept, id);
    assert!(said.iter().any(|text| text.contains("Begun.")), "{said:?}");
    let audit = fs::read_to_string(kept.home.join("audit.jsonl")).unwrap();
    let put_away = audit.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let put_away: Vec<Value> = put_away.filter(|line| line["what"] == "put-away-empty").collect();
    assert_eq!(put_away.len(), 1, "{audit}");
    assert_eq!(put_away[0]["about"]["session"], id);
}

#[test]
fn a_turn_that_is_interrupted_while_its_agent_starts_never_begins() {
    let Some(desk) = Desk::new() else { return };
    let gate = desk.gate();
    let kept = desk.keeper_with(|settings| {
        let agent = settings.agent.as_mut().unwrap();
        let slow = settings.home.with_file_name("slow");
        let wait = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
        fs::write(&slow, format!("#!/bin/sh\n{wait}\nexec {} \"$@\"\n", agent.program.display())).unwrap();
        fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
        agent.program = slow;
    });
    let begun = kept.post("/sessions", json!({ "cwd": desk.project() })).good();
    let id = begun["session_id"].as_str().unwrap();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let text = Prompt::new("Go.").says("Gone.").to_string();
            let parts = json!([{ "type": "text", "text": text }]);
            kept.post(
                &format!("/sessions/{id}/turns"),
                json!({ "client_message_id": new_id(), "parts": parts }),
            )
        });
        let interrupt = || kept.post(&format!("/sessions/{id}/interrupt"), json!({}));
        kept.until("there is a turn to interrupt", || {
            (interrupt().good()["interrupted"] == true).then_some(())
        });
        fs::write(&gate, "").unwrap();
        let sent = sent.join().unwrap();
        assert_eq!((sent.status, sent.json()["code"].as_str()), (409, Some("interrupted")));
    });
    socket.until("turn.interrupted");
    assert_eq!(desk.requests(), 0, "the model was never asked");
    // It goes on as if nothing had been said.
    turn(&kept, id, &Prompt::new("Again.").says("Done."), "start");
    socket.until("turn.completed");
    let said = texts(&kept, id);
    assert!(!said.iter().any(|text| text.contains("Go.")), "{said:?}");
}

//! Agents that are not what they should be: whoever listens hears of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rethread_keeper::{Agent, Settings};
use serde_json::json;

use crate::kit::{Answer, Home, Kept, Socket, session};

/// Answers the first prompt, as Claude Code does, closes its ears, and asks something: that it cannot be answered is how
/// its host finds out.
const CLOSES_ITS_EARS: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit
read -r line
id=$(printf %s "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"commands":[]}}}\n' "$id"
read -r line
exec 0<&-
printf '{"type":"control_request","request_id":"r1","request":{"subtype":"quite_new"}}\n'
sleep 1
printf '{"type":"result","subtype":"success","is_error":false,"result":"hello","session_id":"s"}\n'
sleep 8
"#;

/// Answers each prompt, and does not end when it is told that no more will come: the first one, that is.
const LINGERS: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit
read -r line
id=$(printf %s "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"commands":[]}}}\n' "$id"
while read -r line; do
  printf '{"type":"result","subtype":"success","is_error":false,"result":"hello","session_id":"s"}\n'
done
[ -e "$0.lingered" ] && exit
touch "$0.lingered"
while :; do sleep 1; done
"#;

/// Says how far a tool is, and then answers.
const TELLS_PROGRESS: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit
read -r line
id=$(printf %s "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"commands":[]}}}\n' "$id"
read -r line
printf '{"type":"tool_progress","tool_use_id":"toolu_1","tool_name":"Bash","elapsed_time_seconds":7,"session_id":"s"}\n'
printf '{"type":"result","subtype":"success","is_error":false,"result":"hello","session_id":"s"}\n'
cat >/dev/null
"#;

/// A keeper whose agent is a script, and a session of its.
fn kept_with(home: &Home, script: &str, change: impl FnOnce(&mut Settings)) -> (Kept, String) {
    let id = session();
    (kept_on(home, &id, script, change), id)
}

fn kept_on(home: &Home, id: &str, script: &str, change: impl FnOnce(&mut Settings)) -> Kept {
    home.conversation(id, home.path().to_str().unwrap(), 2);
    let program = home.path().join("agent");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let mut settings = home.settings();
    settings.agent = Some(Agent { program, environment: Vec::new() });
    change(&mut settings);
    Kept::start(settings)
}

fn send(kept: &Kept, id: &str, message: &str) -> Answer {
    let parts = json!([{ "type": "text", "text": "hello" }]);
    let body = json!({ "client_message_id": message, "parts": parts });
    kept.post(&format!("/sessions/{id}/turns"), body)
}

#[test]
fn an_agent_that_does_not_end_is_made_to_and_the_next_one_answers() {
    let home = Home::new();
    let (kept, id) = kept_with(&home, LINGERS, |settings| {
        settings.idle = Duration::from_millis(100);
        settings.heartbeat = Duration::from_secs(3600);
    });
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    socket.until("caught_up");
    assert_eq!(send(&kept, &id, "8f529643-98e0-4045-abbb-6f2887e6ce71").status, 202);
    socket.until("turn.completed");
    // It is idle at once, and has half a minute to end.
    std::thread::sleep(Duration::from_secs(1));
    let message = "8f529643-98e0-4045-abbb-6f2887e6ce72";
    assert_eq!(send(&kept, &id, message).status, 202);
    assert_eq!(socket.until("turn.completed").1["data"]["message"], message);
}

#[test]
fn a_prompt_that_the_agent_could_not_be_given_is_told_as_a_turn_that_failed() {
    let home = Home::new();
    let (kept, id) = kept_with(&home, CLOSES_ITS_EARS, |_| {});
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    socket.until("caught_up");
    assert_eq!(send(&kept, &id, "8f529643-98e0-4045-abbb-6f2887e6ce71").status, 202);
    socket.until("turn.completed");
    let message = "8f529643-98e0-4045-abbb-6f2887e6ce72";
    let sent = send(&kept, &id, message);
    assert_eq!((sent.status, sent.json()["code"].as_str()), (502, Some("agent-failed")), "{sent:?}");
    let (before, failed) = socket.until("turn.failed");
    assert!(before.iter().any(|it| it["type"] == "turn.started"), "{before:?}");
    assert_eq!(
        (&failed["data"]["message"], failed["data"]["errors"][0].is_string()),
        (&json!(message), true)
    );
    assert_eq!(kept.get(&format!("/sessions/{id}")).good()["state"], "failed");
}

#[test]
fn an_agent_whose_changes_could_not_be_taken_back_is_not_started() {
    let home = Home::new();
    let begun = home.path().join("begun");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.325 (Claude Code)' && exit\ntouch {begun:?}\n"
    );
    let id = session();
    // A folder where the log of checkpoints should be: no read of it can succeed.
    let log = home.path().join("store/sessions").join(&id).join("checkpoints.jsonl");
    fs::create_dir_all(&log).unwrap();
    let kept = kept_on(&home, &id, &script, |_| {});
    let answer = send(&kept, &id, "4b6b4b6e-6a0e-4c3f-9a7e-5f7b1d0f4b11");
    let problem = answer.json();
    assert_eq!((answer.status, &problem["code"]), (502, &json!("checkpoints-failed")), "{problem}");
    assert!(problem["hint"].as_str().unwrap().contains("nothing was sent"), "{problem}");
    assert!(!begun.try_exists().unwrap());
    // Where that is mended the session can be driven.
    fs::remove_dir(&log).unwrap();
    send(&kept, &id, "4b6b4b6e-6a0e-4c3f-9a7e-5f7b1d0f4b12");
    kept.until("it was started", || begun.try_exists().unwrap().then_some(()));
}

#[test]
fn how_far_a_tool_is_reaches_whoever_listens_and_is_not_told_again() {
    let home = Home::new();
    let (kept, id) = kept_with(&home, TELLS_PROGRESS, |_| {});
    let mut socket = Socket::open(&kept);
    socket.subscribe(&format!("session:{id}"), None);
    let head = socket.until("caught_up").1;
    assert_eq!(send(&kept, &id, "8f529643-98e0-4045-abbb-6f2887e6ce71").status, 202);
    let (before, progress) = socket.until("tool.progress");
    assert_eq!((&progress["data"]["elapsed_time_seconds"], &progress["seq"]), (&json!(7), &json!(null)));
    assert!(before.iter().any(|it| it["type"] == "turn.started"), "{before:?}");
    socket.until("turn.completed");
    let mut late = Socket::open(&kept);
    late.subscribe(&format!("session:{id}"), Some(&head));
    let replayed = late.until("turn.completed").0;
    assert!(replayed.iter().all(|it| it["type"] != "tool.progress"), "{replayed:?}");
}

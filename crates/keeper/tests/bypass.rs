//! Sessions that ask nobody: only where somebody said so twice, and everybody can see it.

use std::fs;

use rethread_keeper::Bypass;
use rethread_testkit::Prompt;
use serde_json::json;

use crate::driving::{Desk, create, decide, until_state, wait_for_request};
use crate::kit::Socket;

/// Point 11.
#[test]
fn a_session_that_asks_nobody_says_so_and_is_refused_where_that_is_not_allowed() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper_with(|settings| settings.bypass = Bypass::Allowed);
    assert_eq!(kept.get("/info").good()["bypass_allowed"], true);
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    socket.until("caught_up");
    let touch = |name: &str| {
        let input = json!({ "command": format!("touch {name}"), "description": "touch" });
        Prompt::new("Run it.").calls("Bash", input).says("Done.")
    };
    let body = json!({ "cwd": desk.project(), "permission_mode": "bypassPermissions", "prompt": touch("one").to_string() });
    let created = kept.post("/sessions", body).good();
    assert_eq!(created["permission_mode"], "bypassPermissions");
    assert_eq!(socket.until("session.created").1["data"]["permission_mode"], "bypassPermissions");
    let id = created["session_id"].as_str().unwrap().to_owned();
    socket.until("turn.completed");
    until_state(&kept, &id, "idle");
    assert!(desk.project().join("one").try_exists().unwrap());
    assert_eq!(kept.get("/attention").good()["items"], json!([]));
    // Its card says so now that it has a transcript; a fork of it asks, and so does every other session.
    assert_eq!(kept.get(&format!("/sessions/{id}")).good()["permission_mode"], "bypassPermissions");
    let fork = kept.post(&format!("/sessions/{id}/fork"), json!({})).good();
    assert_eq!(fork["permission_mode"], json!(null));
    let other = create(&kept, &desk, &touch("two"));
    assert_eq!(kept.get(&format!("/sessions/{other}")).good()["permission_mode"], json!(null));
    decide(&kept, &wait_for_request(&kept), "deny").good();
    until_state(&kept, &other, "idle");
    kept.end();
    // A keeper that does not allow it shows what it is, and does not go on with it.
    let kept = desk.keeper();
    assert_eq!(kept.get("/info").good()["bypass_allowed"], false);
    let listed = kept.get("/sessions").good();
    let card = listed["items"].as_array().unwrap().iter().find(|it| it["session_id"] == id.as_str()).unwrap();
    assert_eq!(card["permission_mode"], "bypassPermissions");
    let parts = json!([{ "type": "text", "text": touch("three").to_string() }]);
    let turn = json!({ "client_message_id": "8f529643-98e0-4045-abbb-6f2887e6ce71", "parts": parts });
    let refused = kept.post(&format!("/sessions/{id}/turns"), turn);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("bypass-refused")));
    let lease = kept.post(&format!("/sessions/{id}/lease"), json!({ "action": "take_over" }));
    assert_eq!((lease.status, lease.json()["code"].as_str()), (403, Some("bypass-refused")));
    let made: Vec<_> = fs::read_dir(desk.project()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(!made.iter().any(|name| name == "two" || name == "three"), "{made:?}");
}

//! Requests that change what a running session does, by what it then does.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use rethread_claude::{ClaudeClient, Message, PermissionMode};
use rethread_testkit::{Home, Prompt as Script, Reply, not_in_this_version};
use serde_json::json;

use crate::kit::{Heard, ask, connect, home, options, own_home};

/// Returns the model that was asked last.
fn model(home: &Home) -> String {
    home.api().requests().last().unwrap().body["model"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_goes_back_to_the_usual_model() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home)).await;
    let mut asked = Vec::new();
    for change in [None, Some("claude-haiku-4-5"), None] {
        client.set_model(change).await.unwrap();
        ask(&client, Script::new("Hello").says("Hi.")).await;
        asked.push(model(&home));
    }
    assert_eq!((asked[1].as_str(), &asked[0]), ("claude-haiku-4-5", &asked[2]));
    assert_ne!(asked[0], asked[1]);
}

/// Writes a file in answer to a prompt, and returns whether it is there then.
async fn writes(home: &Home, client: &ClaudeClient, name: &str) -> bool {
    let file = home.project().join(name);
    let input = json!({ "file_path": file, "content": "x" });
    ask(client, Script::new("Write").calls("Write", input).says("over")).await;
    file.try_exists().unwrap()
}

#[tokio::test]
async fn what_is_allowed_changes_between_turns() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    assert!(!writes(home, &client, "before-the-mode").await);
    client.set_permission_mode(PermissionMode::AcceptEdits).await.unwrap();
    assert!(writes(home, &client, "in-the-mode").await);
    client.set_permission_mode(PermissionMode::Default).await.unwrap();
    assert!(!writes(home, &client, "after-the-mode").await);
}

#[tokio::test]
async fn an_interruption_says_who_still_waits_and_they_are_answered() {
    let Some(home) = home() else { return };
    let client = connect(options(home).include_partial_messages(true)).await;
    let hanging = Script::new("Go").reply(Reply::text("and").hanging()).to_string();
    let mut hanging = client.send_message(hanging).await.unwrap();
    while let Some(message) = hanging.next_message().await {
        if matches!(message.unwrap(), Message::StreamEvent(event) if event.text() == Some("and")) {
            break;
        }
    }
    let waiting = client.send_message(Script::new("Wait").says("my turn").to_string()).await.unwrap();
    // The order of what is sent is kept, and so the prompt is there before the interruption.
    let interrupted = client.interrupt().await.unwrap();
    if home.program().is_at_least("2.1.300") {
        assert_eq!(interrupted.still_queued, [waiting.prompt_uuid()]);
    }
    assert!(Heard::all(hanging).await.result().is_error());
    assert_eq!(Heard::all(waiting).await.text(), "my turn");
}

#[tokio::test]
async fn a_file_that_counts_as_read_may_be_written_over() {
    let Some(home) = home() else { return };
    let client = connect(options(home).permission_mode(PermissionMode::AcceptEdits)).await;
    for (name, is_seeded) in [("unread", false), ("seeded", true)] {
        let file = home.project().join(name);
        fs::write(&file, "before").unwrap();
        if is_seeded {
            let changed = fs::metadata(&file).unwrap().modified().unwrap();
            let changed = changed.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
            client.seed_read_state(file.to_str().unwrap(), changed).await.unwrap();
        }
        let input = json!({ "file_path": file, "content": "after" });
        let heard = ask(&client, Script::new("Write").calls("Write", input).says("over")).await;
        // The newest does not insist on it any more; older ones show that the request has its effect.
        let is_written = is_seeded || home.program().is_at_least("2.1.300");
        let expected = if is_written { "after" } else { "before" };
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{heard:?}");
    }
}

#[tokio::test]
async fn a_command_that_takes_long_is_moved_to_the_background() {
    let Some(home) = own_home() else { return };
    if !home.program().is_at_least("2.1.300") {
        return not_in_this_version("commands cannot be moved");
    }
    let client = connect(options(&home).permission_mode(PermissionMode::BypassPermissions)).await;
    let begun = home.path().join("begun");
    let command = format!("touch {}; sleep 600", begun.display());
    let input = json!({ "command": command, "description": "d" });
    let turn =
        client.send_message(Script::new("Wait").calls("Bash", input).says("over").to_string()).await.unwrap();
    while !begun.try_exists().unwrap() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // It is known as a task only some time after it began.
    let moves = async {
        loop {
            client.background_tasks(None).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let heard = tokio::select! {
        heard = Heard::all(turn) => heard,
        () = moves => unreachable!("it never ends"),
    };
    assert!(heard.tool_results().contains("background"), "{}", heard.tool_results());
    assert_eq!(heard.text(), "over");
}

//! Faults of the crate whose names this one keeps, each by its story.

use rethread_claude::{
    ClaudeAgentOptions, ContentBlock, ErrorSubtype, Frame, Message, ResultMessage, SystemMessage,
};
use rethread_testkit::Prompt as Script;
use serde_json::{Value, json};

use crate::kit::{Heard, connect, options, own_home};

fn message(frame: Value) -> Message {
    Frame::parse(frame.to_string()).unwrap().message().unwrap()
}

/// `--session-name` and `--enable-file-checkpointing` made the process die at its start: the CLI does not know them.
/// That the options work is in `seed::checkpoints`, against the real CLI.
#[test]
fn no_option_becomes_a_flag_that_the_cli_does_not_know() {
    let options = ClaudeAgentOptions::builder().session_name("refactor-v2").enable_file_checkpointing(true);
    let arguments = format!("{:?}", options.append_system_prompt("x").build().launch("claude").arguments);
    for flag in ["session-name", "enable-file-checkpointing", "system-prompt-preset", "persist-session"] {
        assert!(!arguments.contains(&format!("--{flag}")), "{arguments}");
    }
}

/// Enums without room for anything new made every stream fail that held one of these.
#[test]
fn frames_that_came_later_are_messages_like_any_other() {
    let status = message(json!({ "type": "system", "subtype": "status", "status": "requesting" }));
    assert!(matches!(status, Message::System(SystemMessage::Status { status: Some(_), .. })));
    let hook = message(json!({ "type": "system", "subtype": "hook_started", "hook_id": "1" }));
    assert!(
        matches!(hook, Message::System(SystemMessage::Other { subtype, .. }) if subtype == "hook_started")
    );
    for (subtype, expected) in [
        ("error_max_turns", ErrorSubtype::MaxTurns),
        ("error_during_execution", ErrorSubtype::DuringExecution),
    ] {
        let result = message(json!({ "type": "result", "subtype": subtype, "errors": ["x"] }));
        assert!(
            matches!(result, Message::Result(ResultMessage::Error { subtype, .. }) if subtype == expected)
        );
    }
    let delta = json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "a" } });
    let event = message(json!({ "type": "stream_event", "event": delta }));
    assert!(matches!(event, Message::StreamEvent(event) if event.text() == Some("a")));
    let user = message(json!({ "type": "user", "message": { "role": "user", "content": "only text" } }));
    let Message::User(user) = user else { panic!("{user:?}") };
    assert_eq!(user.message.content, [ContentBlock::Text { text: "only text".into() }]);
}

/// `--resume ID` in two words let an id that begins with a dash become a flag.
#[test]
fn an_id_is_bound_to_its_flag() {
    let launch =
        ClaudeAgentOptions::builder().resume("--dangerously-skip-permissions").build().launch("claude");
    assert!(launch.arguments.iter().any(|word| word == "--resume=--dangerously-skip-permissions"));
}

/// Its example of checkpoints made ids up (`msg_1`): the CLI knows a prompt by its UUID, which the example had no way to
/// learn. Here it is chosen before the prompt is sent. That files really go back is in `files`.
#[tokio::test]
async fn a_prompt_is_named_by_the_uuid_it_was_sent_with() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home).enable_file_checkpointing(true)).await;
    let answer = client.send_message(Script::new("Hello").says("Hi.").to_string()).await.unwrap();
    let uuid = answer.prompt_uuid().to_owned();
    Heard::all(answer).await;
    assert!(client.rewind_files_dry_run(&uuid).await.unwrap().can_rewind);
    let invented = client.rewind_files("msg_1").await.unwrap();
    assert!(!invented.can_rewind && invented.error.is_some(), "{invented:?}");
}

/// It could neither list, read, name, tag nor delete sessions, nor choose their ids or where to resume them, and its samples
/// resumed `sess_abc123`, which is no session's id. The other calls are in `sessions_door` and `sessions_on_disk`.
#[cfg(feature = "sessions")]
#[tokio::test]
async fn a_session_has_the_id_that_was_chosen_and_is_found_by_it() {
    let Some(home) = own_home() else { return };
    let id = "0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22";
    let mut client = connect(options(&home).session_id(id)).await;
    let heard = crate::kit::ask(&client, Script::new("Hello").says("Hi.")).await;
    client.close().await.unwrap();
    let sessions = rethread_claude::sessions::Sessions::at(home.config());
    let listed: Vec<String> =
        sessions.list().unwrap().into_iter().map(|session| session.session_id).collect();
    assert_eq!((heard.session(), listed), (id, vec![id.to_owned()]));
    assert_eq!(sessions.messages(id).unwrap().len(), 2);
    let mut unknown =
        rethread_claude::ClaudeClient::new(options(&home).resume("sess_abc123").build()).unwrap();
    let refused = unknown.connect().await.unwrap_err().to_string();
    assert!(refused.contains("sess_abc123"), "{refused}");
}

//! Faults of the crate whose names this one keeps, each by its story.

use rethread_claude::{
    ClaudeAgentOptions, ContentBlock, ErrorSubtype, Frame, Message, ResultMessage, SystemMessage,
};
use serde_json::{Value, json};

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

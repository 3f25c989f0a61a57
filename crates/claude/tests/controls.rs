//! Everything that can be asked of a running session.

use rethread_claude::{ClaudeClient, Error, PermissionMode, Result};
use rethread_testkit::{Home, Prompt as Script, not_in_this_version};
use serde_json::{Value, json};

use crate::kit::{ask, connect, home, options, own_home};

/// Returns the answer to a request; `None` from a version that does not know it, which refuses it and fails in no other way.
fn known(home: &Home, request: &str, since: &str, answer: Result<Value>) -> Option<Value> {
    match answer {
        Ok(answer) => home.program().is_at_least(since).then_some(answer),
        Err(Error::Refused { .. }) if !home.program().is_at_least(since) => None,
        Err(error) => panic!("{request}: {error}"),
    }
}

/// Checks the answer of a version that knows the request.
macro_rules! answers {
    ($home:expr, $client:ident.$call:ident($($input:expr),*), $since:literal, |$answer:ident| $holds:expr) => {
        if let Some($answer) = known($home, stringify!($call), $since, $client.$call($($input),*).await) {
            assert!($holds, "{}: {}", stringify!($call), $answer);
        }
    };
}

#[tokio::test]
async fn every_request_is_answered_with_what_was_asked_for() {
    let Some(home) = &own_home() else { return };
    std::fs::write(home.project().join("readable.txt"), "a certain text").unwrap();
    let hook =
        json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": "echo a-certain-hook" }] });
    let settings = json!({ "hooks": { "PreToolUse": [hook] } }).to_string();
    let client = connect(options(home).allowed_tools(["Bash(git status)"]).settings(settings)).await;
    ask(&client, Script::new("Hello").says("Hi.")).await;
    let holds = |answer: &Value, text: &str| answer.to_string().contains(text);
    answers!(home, client.session_cost(), "2.1.300", |answer| holds(&answer["text"], "Total cost"));
    answers!(home, client.usage(), "2.1.300", |answer| answer["session"]["total_cost_usd"].as_f64()
        > Some(0.0));
    answers!(home, client.settings(), "2.1.100", |answer| holds(&answer["effective"], "a-certain-hook"));
    answers!(home, client.models(), "2.1.300", |answer| answer["models"][0]["value"].is_string());
    answers!(home, client.binary_version(), "2.1.300", |answer| answer["version"] == home.program().version);
    answers!(home, client.permission_rules(), "2.1.300", |answer| holds(&answer, "Bash(git status)"));
    answers!(home, client.hooks(), "2.1.300", |answer| holds(&answer["hooks"], "a-certain-hook"));
    answers!(home, client.read_file("readable.txt"), "2.1.300", |answer| answer["contents"]
        == "a certain text");
    answers!(home, client.mcp_status(), "2.1.100", |answer| answer["mcpServers"].is_array());
    // What names the session is a model, and so its answer is scripted, too.
    let title = Script::new("About tests").says(r#"{"title": "A certain title"}"#).to_string();
    answers!(home, client.generate_title(&title), "2.1.300", |answer| answer["title"] == "A certain title");
    let usage = client.context_usage().await.unwrap();
    assert!(usage.max_tokens > usage.total_tokens && usage.total_tokens > 0, "{usage:?}");
    assert!(client.server_info().unwrap()["commands"].is_array());
    assert_eq!(ask(&client, Script::new("Again").says("still here")).await.text(), "still here");
}

#[tokio::test]
async fn files_are_suggested_by_a_part_of_their_name() {
    let Some(home) = &own_home() else { return };
    std::fs::write(home.project().join("a-certain-file.txt"), "text").unwrap();
    let client = connect(options(home)).await;
    // The CLI looks for files in the background, and knows none at first.
    for _ in 0..600 {
        let answer = known(home, "file_suggestions", "2.1.300", client.file_suggestions("certain").await);
        let Some(answer) = answer else { return not_in_this_version("files are not suggested") };
        if answer["suggestions"].to_string().contains("a-certain-file.txt") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the file was never suggested");
}

#[tokio::test]
async fn a_request_nobody_knows_is_refused() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    let refused = client.control("no_such_request", Value::Null).await;
    assert!(matches!(refused, Err(Error::Refused { request: "no_such_request", .. })), "{refused:?}");
    let rewound = client.rewind_files("0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22").await;
    assert!(matches!(rewound, Err(Error::Refused { .. })), "checkpoints are not enabled: {rewound:?}");
    let rewound = client.rewind_files_dry_run("0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22").await.unwrap();
    assert!(!rewound.can_rewind && rewound.error.is_some(), "{rewound:?}");
    let mode = client.set_permission_mode(PermissionMode::Other("no such mode".into())).await;
    if home.program().is_at_least("2.1.300") {
        assert!(matches!(mode, Err(Error::Refused { .. })), "{mode:?}");
    }
}

#[tokio::test]
async fn a_session_changes_its_model_its_mode_and_its_name() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home)).await;
    client.set_model(Some("claude-haiku-4-5")).await.unwrap();
    client.set_permission_mode(PermissionMode::AcceptEdits).await.unwrap();
    let heard = ask(&client, Script::new("Hello").says("Hi.")).await;
    let asked = home.api().requests();
    assert!(asked.iter().any(|request| request.body["model"].to_string().contains("haiku")));
    let mode = heard.messages.iter().find_map(|message| match message {
        rethread_claude::Message::System(rethread_claude::SystemMessage::Init {
            permission_mode, ..
        }) => permission_mode.clone(),
        _ => None,
    });
    assert_eq!(mode, Some(PermissionMode::AcceptEdits));
    if !home.program().is_at_least("2.1.200") {
        return not_in_this_version("sessions cannot be renamed");
    }
    client.rename("Another name").await.unwrap();
    end(client).await;
    assert!(std::fs::read_to_string(home.transcript(heard.session())).unwrap().contains("Another name"));
}

async fn end(client: ClaudeClient) {
    client.end_session().await.unwrap();
    let ending = client.ended().await.unwrap();
    assert!(matches!(ending, rethread_claude::transport::Ending::Exited(0)), "{ending:?}");
}

//! Everything that can be asked of a running session.

use rethread_claude::{ClaudeClient, Error, PermissionMode, Result};
use rethread_testkit::Prompt as Script;
use serde_json::Value;

use crate::kit::{ask, connect, home, options, own_home};

/// Requests that older versions do not know are refused by them, and in no other way.
fn known(request: &str, answer: Result<Value>, since: &str) {
    let is_here = home().is_some_and(|home| home.program().is_at_least(since));
    match answer {
        Ok(_) => {}
        Err(Error::Refused { .. }) if !is_here => {}
        Err(error) => panic!("{request}: {error}"),
    }
}

#[tokio::test]
async fn every_request_that_was_seen_to_work_is_answered() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    ask(&client, Script::new("Hello").says("Hi.")).await;
    std::fs::write(home.project().join("readable.txt"), "text").unwrap();
    let new = "2.1.300";
    known("get_session_cost", client.session_cost().await, new);
    known("get_usage", client.usage().await, new);
    known("get_settings", client.settings().await, "2.1.100");
    known("list_models", client.models().await, new);
    known("get_binary_version", client.binary_version().await, new);
    known("list_permission_rules", client.permission_rules().await, new);
    known("get_hooks_listing", client.hooks().await, new);
    known("file_suggestions", client.file_suggestions("read").await, new);
    known("background_tasks", client.background_tasks(None).await, new);
    known("read_file", client.read_file("readable.txt").await, new);
    known("mcp_status", client.mcp_status().await, "2.1.100");
    known("generate_session_title", client.generate_title("A test").await, new);
    let done = |answer: Result<()>| answer.map(|()| Value::Null);
    known("seed_read_state", done(client.seed_read_state("readable.txt", 0).await), new);
    known("set_max_thinking_tokens", done(client.set_max_thinking_tokens(Some(2000)).await), "2.1.100");
    let usage = client.context_usage().await.unwrap();
    assert!(usage.max_tokens > 0, "{usage:?}");
    assert!(client.server_info().unwrap()["commands"].is_array());
    assert_eq!(ask(&client, Script::new("Again").says("still here")).await.text(), "still here");
}

#[tokio::test]
async fn a_request_nobody_knows_is_refused() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    let refused = client.control("no_such_request", Value::Null).await;
    assert!(matches!(refused, Err(Error::Refused { request: "no_such_request", .. })), "{refused:?}");
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
        return rethread_testkit::not_in_this_version("sessions cannot be renamed");
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

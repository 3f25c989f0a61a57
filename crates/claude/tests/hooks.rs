//! Hooks of the host's.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rethread_claude::{
    ClaudeAgentOptionsBuilder, HookEvent, HookInput, HookMatcher, HookOutput, PermissionMode,
    PermissionResult,
};
use rethread_testkit::{Home, Prompt as Script, Reply};
use serde_json::json;

use crate::kit::{ask, connect, home, options, own_home};

fn runs(command: &str) -> Script {
    Script::new("Run it").calls("Bash", json!({ "command": command, "description": "d" })).says("over")
}

#[tokio::test]
async fn hooks_are_called_at_their_events_for_the_tools_they_match() {
    let Some(home) = home() else { return };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut all = options(home).permission_mode(PermissionMode::BypassPermissions);
    for (event, matcher) in [
        (HookEvent::UserPromptSubmit, ""),
        (HookEvent::PreToolUse, "Read"),
        (HookEvent::PreToolUse, "Bash|Edit"),
        (HookEvent::PostToolUse, "Bash"),
        (HookEvent::Stop, ""),
    ] {
        let seen = Arc::clone(&seen);
        all = all.hook(event, matcher, move |input: HookInput| {
            seen.lock().unwrap().push((input.hook_event_name, input.tool_name));
            std::future::ready(HookOutput::proceed())
        });
    }
    ask(&connect(all).await, runs("echo hi")).await;
    let seen: Vec<_> = seen.lock().unwrap().drain(..).collect();
    let seen: Vec<_> = seen.iter().map(|(event, tool)| (event.as_str(), tool.as_str())).collect();
    assert_eq!(
        seen,
        [("UserPromptSubmit", ""), ("PreToolUse", "Bash"), ("PostToolUse", "Bash"), ("Stop", "")]
    );
}

/// Takes note of every event of some.
fn noting(home: &Home, events: &[HookEvent], seen: &Arc<Mutex<Vec<String>>>) -> ClaudeAgentOptionsBuilder {
    let mut all = options(home).can_use_tool(async |_| PermissionResult::allow());
    for event in events {
        let seen = Arc::clone(seen);
        all = all.hook(event.clone(), "", move |input: HookInput| {
            seen.lock().unwrap().push(input.hook_event_name);
            std::future::ready(HookOutput::proceed())
        });
    }
    all
}

#[tokio::test]
async fn hooks_are_called_for_failures_subagents_permissions_and_compaction() {
    use HookEvent::*;
    let Some(home) = own_home() else { return };
    let is_new = home.program().is_at_least("2.1.300");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = [PermissionRequest, PostToolUseFailure, SubagentStart, SubagentStop, PreCompact, Stop];
    let newer = [PostToolBatch, PostCompact, PreModelSwitch, PostModelSwitch, StopFailure];
    let never = [SessionEnd, Setup];
    let all = [&events[..], if is_new { &newer } else { &[] }, &never].concat();
    let mut client = connect(noting(&home, &all, &seen)).await;
    let came = || seen.lock().unwrap().drain(..).collect::<Vec<_>>().join(" ");

    let errand = Script::new("look").says("found").to_string();
    let agent = json!({ "description": "d", "prompt": errand, "subagent_type": "general-purpose", "run_in_background": false });
    let fails = json!({ "command": "touch made; false", "description": "d" });
    ask(&client, Script::new("Do").calls("Bash", fails).calls("Agent", agent).says("over")).await;
    let batch = if is_new { " PostToolBatch" } else { "" };
    let expected =
        format!("PermissionRequest PostToolUseFailure{batch} SubagentStart SubagentStop{batch} Stop");
    assert_eq!(came(), expected);

    ask(&client, "/compact").await;
    let compacted = came();
    assert!(compacted.starts_with("PreCompact"), "{compacted}");
    assert_eq!(compacted.ends_with("PostCompact"), is_new, "{compacted}");
    if is_new {
        client.set_model(Some("claude-haiku-4-5")).await.unwrap();
        ask(&client, Script::new("Fail").reply(Reply::status(400))).await;
        assert_eq!(came(), "PreModelSwitch PostModelSwitch StopFailure");
    }
    client.close().await.unwrap();
    assert_eq!(came(), "", "the end of a session is told to nobody");
}

/// A session that begins is not told to a host; one that goes on after it was compacted is.
#[tokio::test]
async fn a_session_that_begins_is_told_only_after_it_was_compacted() {
    let Some(home) = own_home() else { return };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let client = connect(noting(&home, &[HookEvent::SessionStart], &seen)).await;
    ask(&client, Script::new("Hello").says("Hi.")).await;
    assert!(seen.lock().unwrap().is_empty(), "{seen:?}");
    ask(&client, "/compact").await;
    if home.program().is_at_least("2.1.300") {
        assert_eq!(*seen.lock().unwrap(), ["SessionStart"]);
    }
}

#[tokio::test]
async fn a_hook_denies_changes_and_adds() {
    let Some(home) = home() else { return };
    let all = options(home)
        .permission_mode(PermissionMode::BypassPermissions)
        .hook(HookEvent::PreToolUse, "Bash", async |input: HookInput| {
            match input.tool_input["command"].as_str() {
                Some("echo denied") => HookOutput::deny("not by me"),
                Some("echo plain") => HookOutput::allow("as I say")
                    .updated_input(json!({ "command": "echo replaced", "description": "d" })),
                _ => HookOutput::proceed(),
            }
        })
        .hook(HookEvent::UserPromptSubmit, "", async |_| {
            HookOutput::proceed().additional_context("It is raining.")
        });
    let client = connect(all).await;
    let denied = ask(&client, runs("echo denied")).await;
    assert!(denied.tool_results().contains("not by me"), "{denied:?}");
    let replaced = ask(&client, runs("echo plain")).await;
    assert!(replaced.tool_results().contains("replaced"), "{replaced:?}");
    let requests = home.api().requests();
    assert!(requests.iter().any(|request| request.body.to_string().contains("It is raining.")));
}

#[tokio::test]
async fn a_hook_that_fails_before_a_tool_keeps_the_tool_from_running() {
    let Some(home) = home() else { return };
    let hanging = HookMatcher::new("Bash", |_| std::future::pending()).timeout(Duration::from_millis(100));
    let all = options(home)
        .permission_mode(PermissionMode::BypassPermissions)
        .hook_matcher(HookEvent::PreToolUse, hanging)
        .hook(HookEvent::PreToolUse, "Write", async |_| panic!("as planned"));
    let client = connect(all).await;
    let late = ask(&client, runs("echo hi")).await;
    assert!(late.tool_results().contains("it took too long"), "{late:?}");
    let file = home.project().join("unwritten");
    let input = json!({ "file_path": file, "content": "x" });
    let panicked = ask(&client, Script::new("Write").calls("Write", input).says("over")).await;
    assert!(panicked.tool_results().contains("did not return"), "{panicked:?}");
    assert!(!file.try_exists().unwrap());
}

//! How the real CLI is started: where, with what around it, with flags and fields that this crate does not know.

use std::os::unix::fs::PermissionsExt as _;
use std::{fs, path::Path};

use rethread_claude::{ClaudeAgentOptions, ClaudeClient, Error, Message, PermissionMode, SystemMessage};
use rethread_testkit::{Prompt as Script, not_in_this_version};
use serde_json::json;

use crate::kit::{Heard, ask, connect, home, options, own_home};

fn runs(command: &str) -> Script {
    Script::new("Run it").calls("Bash", json!({ "command": command, "description": "d" })).says("over")
}

#[tokio::test]
async fn the_cli_works_in_its_folder_with_the_variables_it_was_given_and_no_others() {
    let Some(home) = home() else { return };
    let folder = home.path().join("another folder");
    fs::create_dir_all(&folder).unwrap();
    // One of this process's own, which every run of tests has.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let told = "echo $(pwd) [$GIVEN] [$CARGO_MANIFEST_DIR]";
    let bypass = || options(home).permission_mode(PermissionMode::BypassPermissions).cwd(&folder);
    let bare = ask(&connect(bypass().env("GIVEN", "by the host")).await, runs(told)).await;
    let expected = |own: &str| format!("{} [by the host] [{own}]", folder.display());
    assert!(bare.tool_results().contains(&expected("")), "{}", bare.tool_results());
    let full =
        ask(&connect(bypass().env("GIVEN", "by the host").clear_environment(false)).await, runs(told)).await;
    assert!(full.tool_results().contains(&expected(env!("CARGO_MANIFEST_DIR"))), "{}", full.tool_results());
}

#[tokio::test]
async fn a_flag_with_a_value_that_this_crate_does_not_know_reaches_the_cli() {
    let Some(home) = home() else { return };
    let log = home.path().join("debug.log");
    let client = connect(options(home).extra_arg("debug-file", log.to_str().unwrap())).await;
    ask(&client, Script::new("Hello").says("Hi.")).await;
    assert!(fs::metadata(&log).unwrap().len() > 0);
}

#[tokio::test]
async fn a_field_of_the_first_request_that_this_crate_does_not_know_reaches_the_cli() {
    let Some(home) = own_home() else { return };
    let told = options(&home).extra_initialize("appendSystemPrompt", json!("Speak like a certain pirate."));
    ask(&connect(told).await, Script::new("Hello").says("Hi.")).await;
    let reached =
        home.api().requests()[0].body["system"].to_string().contains("Speak like a certain pirate.");
    if !home.program().is_at_least("2.1.200") {
        return not_in_this_version("a system prompt that comes with the first request is passed over");
    }
    assert!(reached);
}

/// Reads an answer to its end, with what could not be read.
async fn all(client: &ClaudeClient, prompt: Script) -> (Vec<Message>, Vec<Error>) {
    let mut stream = client.send_message(prompt.to_string()).await.unwrap();
    let (mut messages, mut errors) = (Vec::new(), Vec::new());
    while let Some(message) = stream.next_message().await {
        match message {
            Ok(message) => messages.push(message),
            Err(error) => errors.push(error),
        }
    }
    (messages, errors)
}

#[tokio::test]
async fn a_message_that_is_longer_than_allowed_is_told_and_the_turn_goes_on() {
    let Some(home) = home() else { return };
    let limit = 200 << 10;
    let client = connect(options(home).max_frame_bytes(limit)).await;
    let long = "a long story ".repeat(limit / 10);
    // The result repeats the last text, and so only the first may be long.
    let echo = json!({ "command": "echo hi", "description": "d" });
    let reply = rethread_testkit::Reply::text(long).tool("Bash", echo);
    let (messages, errors) = all(&client, Script::new("Tell").reply(reply).says("the end")).await;
    assert!(matches!(errors[..], [Error::FrameTooLong { limit: 204_800 }]), "{errors:?}");
    assert_eq!(Heard { messages }.text(), "the end");
    assert_eq!(ask(&client, Script::new("Again").says("short")).await.text(), "short");
}

/// Writes a program that says what version it is, and nothing else.
fn claims(program: &Path, version: &str) {
    fs::write(program, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_cli_that_is_too_old_or_none_at_all_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("claude");
    for (says, expected) in [
        (
            "1.0.128 (Claude Code)",
            "is version 1.0.128, at least 2.0.0 is needed; update it with `claude update`",
        ),
        ("Python 3.11.2", r#"does not tell its version as Claude Code does: "Python 3.11.2""#),
    ] {
        claims(&program, says);
        let mut client = ClaudeClient::new(ClaudeAgentOptions::builder().cli_path(&program).build()).unwrap();
        let refused = client.connect().await.unwrap_err().to_string();
        assert_eq!(refused, format!("{} {expected}", program.display()));
    }
    let missing = ClaudeAgentOptions::builder().cli_path(folder.path().join("missing"));
    let refused = ClaudeClient::new(missing.build()).unwrap().connect().await.unwrap_err();
    assert!(
        matches!(&refused, Error::Io { action: "run", path, .. } if path.ends_with("missing")),
        "{refused}"
    );
    let nowhere = ClaudeAgentOptions::builder().cwd(folder.path().join("missing")).cli_path(&program);
    let refused = ClaudeClient::new(nowhere.build()).unwrap().connect().await.unwrap_err();
    assert!(matches!(&refused, Error::Io { action: "work in", .. }), "{refused}");
}

/// Asks to be allowed everything from now on, and returns whether it was, and whether a tool then runs.
async fn bypasses(home: &rethread_testkit::Home, allowed: bool, name: &str) -> (bool, bool) {
    let client = connect(options(home).allow_dangerously_skip_permissions(allowed)).await;
    let switched = client.set_permission_mode(PermissionMode::BypassPermissions).await;
    assert!(matches!(switched, Ok(()) | Err(Error::Refused { .. })), "{switched:?}");
    let file = home.project().join(name);
    let heard = ask(&client, runs(&format!("install /dev/null {}", file.display()))).await;
    let mode = heard.messages.iter().find_map(|message| match message {
        Message::System(SystemMessage::Init { permission_mode, .. }) => permission_mode.clone(),
        _ => None,
    });
    assert_eq!(mode == Some(PermissionMode::BypassPermissions), switched.is_ok(), "{mode:?}");
    (switched.is_ok(), file.try_exists().unwrap())
}

#[tokio::test]
async fn everything_can_be_allowed_later_only_if_that_was_allowed_at_the_start() {
    let Some(home) = home() else { return };
    assert_eq!(bypasses(home, true, "bypassed").await, (true, true));
    assert_eq!(bypasses(home, false, "not-bypassed").await, (false, false));
}

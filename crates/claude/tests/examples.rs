//! Every example, run as a person would run it.

macro_rules! example {
    ($name:ident, $path:literal) => {
        #[expect(dead_code, unreachable_pub, reason = "its main is for `cargo run --example`")]
        #[path = $path]
        mod $name;
    };
}

example!(approvals, "../examples/approvals.rs");
example!(chat, "../examples/chat.rs");
example!(hooks, "../examples/hooks.rs");
example!(in_process_tool, "../examples/in_process_tool.rs");
example!(one_shot, "../examples/one_shot.rs");
example!(resume_and_fork, "../examples/resume_and_fork.rs");
example!(rewind, "../examples/rewind.rs");

use rethread_testkit::{Home, Prompt as Script};
use serde_json::{Value, json};

use crate::kit::{home, options};

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "d" })
}

/// Has an example print, and returns what it printed.
macro_rules! printed {
    ($run:expr) => {{
        let mut out = Vec::new();
        let run: Result<(), Box<dyn std::error::Error>> = $run(&mut out).await;
        run.unwrap();
        String::from_utf8(out).unwrap()
    }};
}

#[tokio::test]
async fn one_shot_prints_the_answer_and_what_it_cost() {
    let Some(home) = home() else { return };
    let prompt = Script::new("Hello").says("Hi.").to_string();
    let out = printed!(async |out: &mut Vec<u8>| one_shot::run(options(home), &prompt, out).await);
    assert!(out.starts_with("Hi.\n$0.0"), "{out}");
}

#[tokio::test]
async fn chat_prints_every_turn() {
    let Some(home) = home() else { return };
    let prompts = format!("{}\n{}\n", Script::new("One").says("First."), Script::new("Two").says("Second."));
    let out = printed!(async |out: &mut Vec<u8>| chat::run(options(home), prompts.as_bytes(), out).await);
    assert_eq!(out, "First.\nSecond.\n");
}

#[tokio::test]
async fn resume_and_fork_goes_on_in_the_same_session_and_in_another() {
    let Some(home) = Home::new() else { return };
    let prompts = ["7", "10", "21"].map(|text| Script::new("Go on").says(text).to_string());
    let prompts = prompts.each_ref().map(String::as_str);
    let out = printed!(async |out: &mut Vec<u8>| resume_and_fork::run(options(&home), prompts, out).await);
    assert_eq!(out, "7\n10\n21\nthe same session: true\nanother session: true\n");
}

#[tokio::test]
async fn approvals_asks_and_tells_what_was_denied() {
    let Some(home) = home() else { return };
    let (yes, no) = (bash("touch approved"), bash("touch refused"));
    let prompt = Script::new("Tidy up").calls("Bash", yes).calls("Bash", no).says("Done.").to_string();
    let ask = |request: &rethread_claude::PermissionRequest| request.input.to_string().contains("approved");
    let out = printed!(async |out: &mut Vec<u8>| approvals::run(options(home), &prompt, ask, out).await);
    assert!(
        out.starts_with("denied: Bash") && out.contains("touch refused") && out.lines().count() == 1,
        "{out}"
    );
    assert!(home.project().join("approved").try_exists().unwrap());
}

#[tokio::test]
async fn hooks_keeps_the_agent_from_the_network() {
    let Some(home) = home() else { return };
    let (echo, curl) = (bash("echo hi"), bash("curl http://127.0.0.1:9"));
    let prompt = Script::new("Look").calls("Bash", echo).calls("Bash", curl).says("I saw.").to_string();
    let out = printed!(async |out: &mut Vec<u8>| hooks::run(options(home), &prompt, out).await);
    assert!(out.ends_with("I saw.\n1 tool calls went through\n"), "{out}");
}

#[tokio::test]
async fn in_process_tool_is_called_by_the_model() {
    let Some(home) = home() else { return };
    let folder = home.path().join("counted");
    std::fs::create_dir_all(folder.join("a")).unwrap();
    std::fs::create_dir_all(folder.join("b")).unwrap();
    let prompt =
        Script::new("Count").calls("mcp__counter__count", json!({ "path": folder })).says("Two.").to_string();
    let out = printed!(async |out: &mut Vec<u8>| in_process_tool::run(options(home), &prompt, out).await);
    assert!(out.contains("\"2\"") && out.ends_with("Two.\n"), "{out}");
}

#[tokio::test]
async fn rewind_undoes_what_the_agent_did() {
    let Some(home) = home() else { return };
    let file = home.project().join("poem-of-the-example.txt");
    let prompt =
        Script::new("Write").calls("Write", json!({ "file_path": file, "content": "Roses" })).to_string();
    let out = printed!(async |out: &mut Vec<u8>| rewind::run(options(home), &prompt, out).await);
    assert!(out.ends_with("everything is as it was before the prompt\n"), "{out}");
    assert!(!file.try_exists().unwrap());
}

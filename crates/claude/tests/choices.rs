//! What each choice of an option does to the real CLI.

use std::fs;
use std::sync::{Arc, Mutex};

use rethread_claude::{
    ClaudeAgentOptionsBuilder, Error, HookEvent, HookOutput, McpServer, Message, PermissionMode,
    PermissionRequest, PermissionResult, SystemMessage, SystemPrompt, Thinking, Tools,
};
use rethread_testkit::{Home, Prompt as Script, not_in_this_version};
use serde_json::{Value, json};

use crate::kit::{Heard, ask, connect, connect_with_servers, options, own_home};

/// Asks one thing, and returns what was heard and what the API was asked.
async fn asked(home: &Home, options: ClaudeAgentOptionsBuilder) -> (Heard, Value) {
    let heard = ask(&connect(options).await, Script::new("a certain prompt").says("Hi.")).await;
    let requests = home.api().requests();
    let last = requests.iter().rev().find(|it| it.body["messages"].to_string().contains("a certain prompt"));
    (heard, last.unwrap().body.clone())
}

fn runs(command: &str) -> Script {
    Script::new("Run it").calls("Bash", json!({ "command": command, "description": "d" })).says("over")
}

fn tools(heard: &Heard) -> Vec<String> {
    let init = heard.messages.iter().find_map(|message| match message {
        Message::System(SystemMessage::Init { tools, .. }) => Some(tools.clone()),
        _ => None,
    });
    init.unwrap()
}

#[tokio::test]
async fn a_prompt_comes_from_a_file_or_is_longer_than_any_argument() {
    let Some(home) = own_home() else { return };
    let file = home.path().join("prompt.md");
    fs::write(&file, "You are a poet, says the file.").unwrap();
    let (_, body) = asked(&home, options(&home).system_prompt(SystemPrompt::File(file))).await;
    assert!(body["system"].to_string().contains("says the file"), "{}", body["system"]);
    if !home.program().is_at_least("2.1.200") {
        return not_in_this_version("a system prompt that comes with the first request is passed over");
    }
    let long = format!("{} to the very end.", "Be kind. ".repeat(20_000));
    let (_, body) = asked(&home, options(&home).system_prompt(long.as_str())).await;
    assert!(body["system"].to_string().contains("to the very end."));
    let (_, body) = asked(&home, options(&home).append_system_prompt(long)).await;
    let system = body["system"].to_string();
    assert!(system.contains("to the very end.") && system.contains("Claude Code"));
}

#[tokio::test]
async fn the_model_thinks_as_it_is_told() {
    let Some(home) = own_home() else { return };
    let (_, adaptive) = asked(&home, options(&home).thinking(Thinking::Adaptive)).await;
    // The newest models cannot but think.
    let haiku = || options(&home).model("claude-haiku-4-5");
    let (_, usual) = asked(&home, haiku()).await;
    let (_, disabled) = asked(&home, haiku().thinking(Thinking::Disabled)).await;
    let kinds =
        [&adaptive, &usual, &disabled].map(|body| body["thinking"]["type"].as_str().unwrap_or("disabled"));
    assert_eq!(kinds, ["adaptive", "enabled", "disabled"]);
}

#[tokio::test]
async fn there_are_all_tools_or_none() {
    let Some(home) = own_home() else { return };
    let (heard, _) = asked(&home, options(&home).tools(Tools::All)).await;
    let all = tools(&heard);
    assert!(["Bash", "Write", "Read"].iter().all(|tool| all.iter().any(|it| it == tool)), "{all:?}");
    let (heard, _) = asked(&home, options(&home).tools(Tools::None)).await;
    let none = tools(&heard);
    assert!(!none.iter().any(|tool| ["Bash", "Write", "Read"].contains(&tool.as_str())), "{none:?}");
}

/// A server of tools that is a script for the shell.
pub(crate) const SERVER: &str = r#"
while read -r line; do
  id=${line##*\"id\":}
  id=${id%%[!0-9]*}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"ping","description":"Answers","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) result="{\"content\":[{\"type\":\"text\",\"text\":\"pong $GREETING\"}]}" ;;
    *'"id"'*) result='{}' ;;
    *) continue ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done
"#;

fn script() -> McpServer {
    let env = [("GREETING".to_owned(), "from the script".to_owned())].into();
    McpServer::Stdio { command: "sh".into(), args: vec!["-c".into(), SERVER.into()], env }
}

#[tokio::test]
async fn a_server_that_is_a_program_is_called_switched_off_and_on_again() {
    let Some(home) = own_home() else { return };
    let client =
        connect_with_servers(options(&home).mcp_server("near", script()).allowed_tools(["mcp__near"])).await;
    let call = || Script::new("Call it").calls("mcp__near__ping", json!({})).says("over");
    let heard = ask(&client, call()).await;
    assert!(heard.tool_results().contains("pong from the script"), "{heard:?}");
    if !home.program().is_at_least("2.1.300") {
        return not_in_this_version("servers are switched in another way");
    }
    client.toggle_mcp_server("near", false).await.unwrap();
    let heard = ask(&client, call()).await;
    assert!(!heard.tool_results().contains("pong from the script"), "{heard:?}");
    client.toggle_mcp_server("near", true).await.unwrap();
    client.reconnect_mcp_server("near").await.unwrap();
    let heard = ask(&client, call()).await;
    assert!(heard.tool_results().contains("pong from the script"), "{heard:?}");
}

#[tokio::test]
async fn servers_that_are_configured_elsewhere_can_be_ignored() {
    let Some(home) = own_home() else { return };
    let elsewhere =
        json!({ "mcpServers": { "elsewhere": { "type": "stdio", "command": "/no/program", "args": [] } } });
    fs::create_dir_all(home.config()).unwrap();
    fs::write(home.config().join(".claude.json"), elsewhere.to_string()).unwrap();
    let mut known = Vec::new();
    for strict in [false, true] {
        let client = connect(options(&home).mcp_server("near", script()).strict_mcp_config(strict)).await;
        known.push(client.mcp_status().await.unwrap().to_string().contains("elsewhere"));
    }
    assert_eq!(known, [true, false]);
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_is_to_be_asked() {
    let Some(home) = own_home() else { return };
    let is_asked = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&is_asked);
    let silent =
        options(&home).permission_mode(PermissionMode::DontAsk).can_use_tool(move |_: PermissionRequest| {
            *seen.lock().unwrap() = true;
            std::future::ready(PermissionResult::allow())
        });
    let file = home.project().join("unasked");
    let heard = ask(&connect(silent).await, runs(&format!("echo made > {}", file.display()))).await;
    assert_eq!((file.try_exists().unwrap(), *is_asked.lock().unwrap()), (false, false), "{heard:?}");
}

#[tokio::test]
async fn what_hooks_do_is_told_if_asked_for() {
    let Some(home) = own_home() else { return };
    let hook = json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": "echo hooked" }] });
    let settings = json!({ "hooks": { "PreToolUse": [hook] } }).to_string();
    let mut told = Vec::new();
    for include in [false, true] {
        let all =
            options(&home).permission_mode(PermissionMode::BypassPermissions).settings(settings.as_str());
        let heard = ask(&connect(all.include_hook_events(include)).await, runs("echo hi")).await;
        told.push(heard.messages.iter().any(|message| match message {
            Message::System(message) => message.other_subtype().is_some_and(|it| it.starts_with("hook_")),
            _ => false,
        }));
    }
    assert_eq!(told, [false, true]);
}

#[tokio::test]
async fn a_hook_asks_blocks_stops_and_tells() {
    let Some(home) = own_home() else { return };
    let is_asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&is_asked);
    let all = options(&home)
        .allowed_tools(["Bash"])
        .can_use_tool(move |request: PermissionRequest| {
            seen.lock().unwrap().push(request.input["command"].clone());
            std::future::ready(PermissionResult::deny("said no"))
        })
        .hook(HookEvent::PreToolUse, "Bash", async |input: rethread_claude::HookInput| {
            match input.tool_input["command"].as_str() {
                Some("echo asked") => HookOutput::ask("to be sure"),
                _ => HookOutput::proceed(),
            }
        })
        .hook(HookEvent::PostToolUse, "Bash", async |input: rethread_claude::HookInput| {
            match input.tool_input["command"].as_str() {
                Some("echo stopped") => HookOutput::stop("enough for today"),
                _ => HookOutput::proceed().system_message("a word to the person"),
            }
        })
        .hook(HookEvent::UserPromptSubmit, "", async |input: rethread_claude::HookInput| {
            match input.prompt.is_some_and(|prompt| prompt.contains("unwelcome")) {
                true => HookOutput::block("not that"),
                false => HookOutput::proceed(),
            }
        });
    let client = connect(all).await;
    let asked = ask(&client, runs("echo asked")).await;
    assert!(asked.tool_results().contains("said no"), "{asked:?}");
    assert_eq!(*is_asked.lock().unwrap(), [json!("echo asked")]);
    let told = ask(&client, runs("echo told")).await;
    let is_told = format!("{told:?}").contains("a word to the person");
    assert!(is_told || !home.program().is_at_least("2.1.300"), "{told:?}");
    let stopped = ask(&client, runs("echo stopped")).await;
    assert!(stopped.tool_results().contains("stopped"), "{stopped:?}");
    assert!(!format!("{:?}", stopped.result()).contains("over"), "{stopped:?}");
    ask(&client, Script::new("something unwelcome").says("answered")).await;
    let sent = home.api().requests().iter().any(|it| it.body.to_string().contains("unwelcome"));
    assert!(!sent, "a prompt that is blocked reaches no model");
}

#[tokio::test]
async fn every_complaint_is_told_to_who_wants_to_know() {
    let Some(home) = own_home() else { return };
    let told = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&told);
    let lost = options(&home)
        .resume("0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22")
        .stderr(move |line| kept.lock().unwrap().push_str(line));
    let mut client = rethread_claude::ClaudeClient::new(lost.build()).unwrap();
    let failed = client.connect().await.unwrap_err();
    assert!(matches!(failed, Error::Ended { .. }), "{failed}");
    if home.program().is_at_least("2.1.200") {
        assert!(told.lock().unwrap().contains("No conversation found"), "{told:?}");
    }
}

#[tokio::test]
async fn how_much_the_model_may_think_can_change_between_turns() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home).model("claude-haiku-4-5")).await;
    client.set_max_thinking_tokens(Some(3000)).await.unwrap();
    ask(&client, Script::new("think about it").says("Hi.")).await;
    let requests = home.api().requests();
    let last = requests.iter().rev().find(|it| it.body["messages"].to_string().contains("think about it"));
    assert_eq!(last.unwrap().body["thinking"]["budget_tokens"], 3000);
}

/// Waits until something is as it should be.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{what} is not so");
}

#[tokio::test]
async fn a_task_in_the_background_is_stopped() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home).permission_mode(PermissionMode::BypassPermissions)).await;
    let (file, moved) = (home.path().join("written"), home.path().join("pid"));
    // A file that is moved is there as a whole.
    let command = format!("echo $$ > {0}; mv {0} {1}; exec sleep 600", file.display(), moved.display());
    let input = json!({ "command": command, "description": "d", "run_in_background": true });
    let heard = ask(&client, Script::new("Wait").calls("Bash", input).says("over")).await;
    let task = heard.messages.iter().find_map(|message| match message {
        Message::System(SystemMessage::TaskStarted(task)) => Some(task.task_id.clone()),
        _ => None,
    });
    let Some(task) = task.filter(|_| home.program().is_at_least("2.1.300")) else {
        return not_in_this_version("tasks are not told of");
    };
    until("that the task runs", || moved.is_file()).await;
    let process = std::path::Path::new("/proc").join(fs::read_to_string(&moved).unwrap().trim());
    // One that has ended is gone, or a zombie without a command line.
    let runs = || fs::read(process.join("cmdline")).is_ok_and(|words| words.starts_with(b"sleep"));
    until("that it sleeps", runs).await;
    client.stop_task(&task).await.unwrap();
    until("that the task ended", || !runs()).await;
}

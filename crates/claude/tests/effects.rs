//! Options that change what the real CLI does.

use std::fs;

use rethread_claude::{
    AgentDefinition, Effort, ErrorSubtype, McpServer, Message, PermissionMode, ResultMessage, SettingSource,
    SystemMessage, Thinking,
};
use rethread_testkit::{Home, Prompt as Script, Reply};
use serde_json::{Value, json};

use crate::kit::{Heard, ask, connect, connect_with_servers, home, options, own_home};

/// Returns what the API was last asked that holds a text.
fn asked(home: &Home, text: &str) -> Value {
    let found = home
        .api()
        .requests()
        .into_iter()
        .rev()
        .find(|request| request.body["messages"].to_string().contains(text));
    found.unwrap_or_else(|| panic!("nobody asked {text}")).body
}

/// Returns the tools, the agents and the commands of a session.
fn offered(heard: &Heard) -> (Vec<String>, Vec<String>, Vec<String>) {
    let init = heard.messages.iter().find_map(|message| match message {
        Message::System(SystemMessage::Init { tools, agents, slash_commands, .. }) => {
            Some((tools.clone(), agents.clone(), slash_commands.clone()))
        }
        _ => None,
    });
    init.unwrap()
}

#[tokio::test]
async fn the_model_its_prompt_its_tools_and_its_subagents_are_as_asked() {
    let Some(home) = own_home() else { return };
    let reviewer = AgentDefinition::new("Reviews code", "You review code.").tools(["Read"]);
    let client = connect(
        options(&home)
            .model("claude-haiku-4-5")
            .thinking(Thinking::Tokens(2000))
            .system_prompt("You are a poet.")
            .tools(["Read", "Bash", "Agent"])
            .subagent("reviewer", reviewer)
            .replay_user_messages(true)
            .session_mirror(true)
            .include_hook_events(true),
    )
    .await;
    let heard = ask(&client, Script::new("a certain prompt").says("Hi.")).await;
    let body = asked(&home, "a certain prompt");
    assert!(body["model"].to_string().contains("haiku"), "{}", body["model"]);
    assert!(body["system"].to_string().contains("You are a poet."), "{}", body["system"]);
    assert_eq!(body["thinking"]["budget_tokens"], 2000, "{}", body["thinking"]);
    let (tools, agents, _) = offered(&heard);
    assert!(tools.contains(&"Read".into()) && !tools.contains(&"Write".into()), "{tools:?}");
    assert!(agents.contains(&"reviewer".into()), "{agents:?}");
    let replays =
        heard.messages.iter().any(|message| matches!(message, Message::User(user) if user.is_replay));
    assert!(replays, "the prompt comes back");
    let mirrors = heard.messages.iter().any(|message| match message {
        Message::TranscriptMirror(mirror) => !mirror.entries.is_empty(),
        _ => false,
    });
    assert!(mirrors, "the transcript is mirrored");
}

#[tokio::test]
async fn effort_and_what_is_added_to_the_prompt_reach_the_model() {
    let Some(home) = own_home() else { return };
    let options = options(&home).append_system_prompt("Speak in riddles.").disallowed_tools(["Bash"]);
    let client = connect(options.effort(Effort::Low)).await;
    let heard = ask(&client, Script::new("another prompt").says("Hi.")).await;
    let body = asked(&home, "another prompt");
    assert!(body["system"].to_string().contains("Speak in riddles."));
    assert!(body.to_string().contains(r#""effort":"low""#), "{}", body["output_config"]);
    assert!(!offered(&heard).0.contains(&"Bash".into()));
}

#[tokio::test]
async fn an_answer_that_has_to_fit_a_schema_does() {
    let Some(home) = home() else { return };
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let client = connect(options(home).output_schema(schema)).await;
    let script = Script::new("Who?").calls("StructuredOutput", json!({ "name": "Ada" })).says("done");
    let heard = ask(&client, script).await;
    assert_eq!(heard.result().details().structured_output, Some(json!({ "name": "Ada" })), "{heard:?}");
}

#[tokio::test]
async fn a_session_ends_when_its_money_does() {
    let Some(home) = home() else { return };
    let rich = options(home).max_budget_usd(0.0001).permission_mode(PermissionMode::BypassPermissions);
    let echo = json!({ "command": "echo hi", "description": "d" });
    let heard = ask(&connect(rich).await, Script::new("Spend").calls("Bash", echo).says("over")).await;
    assert!(
        matches!(heard.result(), ResultMessage::Error { subtype: ErrorSubtype::MaxBudget, .. }),
        "{heard:?}"
    );
}

#[tokio::test]
async fn settings_directories_plugins_and_servers_are_taken_up() {
    let Some(home) = own_home() else { return };
    let plugin = home.path().join("plugin");
    fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
    fs::create_dir_all(plugin.join("commands")).unwrap();
    fs::write(plugin.join(".claude-plugin/plugin.json"), r#"{"name":"plug","version":"1.0.0"}"#).unwrap();
    fs::write(plugin.join("commands/hello.md"), "---\ndescription: Says hello\n---\nSay hello.\n").unwrap();
    fs::create_dir_all(home.project().join(".claude")).unwrap();
    let denies = |tool: &str| json!({ "permissions": { "deny": [tool] } }).to_string();
    fs::write(home.project().join(".claude/settings.json"), denies("WebSearch")).unwrap();
    let options = options(&home)
        .settings(denies("Bash"))
        .setting_sources([SettingSource::User])
        .plugins([&plugin])
        .add_dirs([home.path().join("tmp")])
        .mcp_server("absent", McpServer::stdio("/no/such/program", ["--x"]));
    let client = connect_with_servers(options).await;
    let heard = ask(&client, Script::new("Hello").says("Hi.")).await;
    let (tools, _, commands) = offered(&heard);
    assert!(!tools.contains(&"Bash".into()), "settings given by the host count: {tools:?}");
    assert!(tools.contains(&"WebSearch".into()), "settings of the project do not: {tools:?}");
    assert!(commands.iter().any(|command| command.contains("hello")), "{commands:?}");
    let status = client.mcp_status().await.unwrap().to_string();
    assert!(status.contains("absent") && status.contains("failed"), "{status}");
}

#[tokio::test]
async fn a_subagent_in_the_foreground_is_heard_with_its_parent() {
    let Some(home) = home() else { return };
    let client = connect(options(home).forward_subagent_text(true)).await;
    let errand = Script::new("look").says("found it").to_string();
    let input = json!({ "description": "d", "prompt": errand, "subagent_type": "general-purpose", "run_in_background": false });
    let heard = ask(&client, Script::new("Send").calls("Agent", input).says("over")).await;
    let of_subagent = heard.messages.iter().any(|message| match message {
        Message::Assistant(message) => message.parent_tool_use_id.is_some() && message.text() == "found it",
        _ => false,
    });
    if home.program().is_at_least("2.1.200") {
        assert!(of_subagent, "{heard:?}");
    }
    assert_eq!(heard.text(), "over");
}

#[tokio::test]
async fn an_answer_that_the_api_cuts_off_is_tried_again_and_told() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    let heard = ask(&client, Script::new("Cut").reply(Reply::text("hal").cut())).await;
    let retries = heard
        .messages
        .iter()
        .any(|message| matches!(message, Message::System(SystemMessage::ApiRetry { .. })));
    let old = !home.program().is_at_least("2.1.300");
    assert!(heard.result().is_error() || retries || old, "{heard:?}");
    assert_eq!(ask(&client, Script::new("Again").says("whole")).await.text(), "whole");
}

#[tokio::test]
async fn another_model_answers_when_the_first_is_overloaded() {
    let Some(home) = own_home() else { return };
    // It gives up on the first one only after some tries.
    let patient = options(&home).env("CLAUDE_CODE_MAX_RETRIES", "5");
    let client = connect(patient.model("claude-opus-4-1").fallback_model("claude-haiku-4-5")).await;
    let script = Script::new("Please").reply(Reply::status(529).of_model("opus").says("from the other"));
    let heard = ask(&client, script).await;
    assert_eq!(heard.text(), "from the other", "{heard:?}");
    let models: Vec<String> =
        home.api().requests().iter().map(|request| request.body["model"].to_string()).collect();
    assert!(
        models.first().unwrap().contains("opus") && models.last().unwrap().contains("haiku"),
        "{models:?}"
    );
}

#[tokio::test]
async fn betas_and_the_budget_of_a_task_reach_the_api() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home).betas(["context-1m-2025-08-07"]).task_budget(20_000)).await;
    ask(&client, Script::new("with betas").says("Hi.")).await;
    let requests = home.api().requests();
    let asked = requests.iter().find(|it| it.body["messages"].to_string().contains("with betas")).unwrap();
    assert!(asked.headers["anthropic-beta"].contains("context-1m-2025-08-07"), "{:?}", asked.headers);
    assert!(asked.body.to_string().contains("20000"), "{}", asked.body["output_config"]);
}

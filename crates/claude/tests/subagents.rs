//! What the definition of a subagent does to the real CLI.

use std::collections::BTreeMap;
use std::fs;

use rethread_claude::{
    AgentDefinition, ClaudeAgentOptionsBuilder, Effort, PermissionMode, SettingSource, ToolServer,
};
use rethread_testkit::{Home, Prompt as Script, not_in_this_version};
use serde_json::{Value, json};

use crate::choices::SERVER;
use crate::kit::{Heard, ask, connect, connect_with_servers, options, own_home};

/// What the subagent is asked, to be told apart from what everybody else is.
const ERRAND: &str = "a certain errand";

fn helper() -> AgentDefinition {
    AgentDefinition::new("Helps", "You are a helper of a certain kind.")
}

/// Sends a subagent on an errand, and returns what was heard and what the API was asked for it, request after request.
async fn sent(
    home: &Home,
    options: ClaudeAgentOptionsBuilder,
    agent: AgentDefinition,
    errand: Script,
) -> (Heard, Vec<Value>) {
    let client = connect_with_servers(options.subagent("helper", agent)).await;
    let input = json!({ "description": "d", "prompt": errand.to_string(), "subagent_type": "helper", "run_in_background": false });
    let heard = ask(&client, Script::new("Send it").calls("Agent", input).says("over")).await;
    let of_subagent = |body: &Value| {
        let first = body["messages"][0].to_string();
        first.contains(ERRAND) && !first.contains("Send it")
    };
    let requests = home.api().requests().into_iter().map(|request| request.body);
    (heard, requests.filter(of_subagent).collect())
}

fn errand() -> Script {
    Script::new(ERRAND).says("found")
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[tokio::test]
async fn a_subagent_has_the_prompt_the_model_and_the_tools_of_its_own() {
    let Some(home) = own_home() else { return };
    let agent =
        helper().tools(["Read", "Bash", "Write"]).disallowed_tools(["Write"]).model("claude-haiku-4-5");
    let (_, requests) = sent(&home, options(&home), agent, errand()).await;
    let [body] = &requests[..] else { panic!("{} requests", requests.len()) };
    assert!(body["system"].to_string().contains("You are a helper of a certain kind."), "{}", body["system"]);
    assert_eq!(body["model"], "claude-haiku-4-5");
    let mut tools = tools(body);
    tools.sort_unstable();
    assert_eq!(tools, ["Bash", "Read"]);
    let (_, requests) = sent(&home, options(&home), helper(), errand()).await;
    let usual = requests.last().unwrap();
    assert_ne!(usual["model"], "claude-haiku-4-5");
    assert!(self::tools(usual).contains(&"Write"), "{:?}", self::tools(usual));
}

#[tokio::test]
async fn a_subagent_is_asked_no_more_often_than_it_may() {
    let Some(home) = own_home() else { return };
    let works = || {
        let echo = json!({ "command": "echo hi", "description": "d" });
        Script::new(ERRAND).calls("Bash", echo.clone()).calls("Bash", echo).says("found")
    };
    let bypass = || options(&home).permission_mode(PermissionMode::BypassPermissions);
    let (_, requests) = sent(&home, bypass(), helper(), works()).await;
    assert_eq!(requests.len(), 3);
    let (_, requests) = sent(&home, bypass(), helper().max_turns(1), works()).await;
    assert_eq!(requests.len(), 3 + 1);
}

#[tokio::test]
async fn a_subagent_tries_as_hard_as_it_is_told() {
    let Some(home) = own_home() else { return };
    let agent = helper().effort(&Effort::Low);
    let (_, requests) = sent(&home, options(&home).effort(Effort::High), agent, errand()).await;
    assert_eq!(requests.last().unwrap()["output_config"]["effort"], "low");
}

#[tokio::test]
async fn a_subagent_is_allowed_what_its_own_mode_allows() {
    let Some(home) = own_home() else { return };
    for (name, agent) in
        [("asked", helper()), ("accepted", helper().permission_mode(PermissionMode::AcceptEdits))]
    {
        let file = home.project().join(name);
        let writes =
            Script::new(ERRAND).calls("Write", json!({ "file_path": file, "content": "x" })).says("found");
        sent(&home, options(&home), agent, writes).await;
    }
    let exists = |name: &str| home.project().join(name).try_exists().unwrap();
    assert_eq!((exists("asked"), exists("accepted")), (false, true));
}

/// Servers that the session has are the subagent's, too, named or not; one that is described is its own.
#[tokio::test]
async fn a_subagent_has_a_server_and_knows_a_skill_of_its_own() {
    let Some(home) = own_home() else { return };
    let folder = home.config().join("skills/certain-skill");
    fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: certain-skill\ndescription: Knows\n---\nBe skilful in a certain way.\n";
    fs::write(folder.join("SKILL.md"), text).unwrap();
    let server = || ToolServer::new("near").tool("ping", "Answers", ping);
    let offering = || options(&home).mcp_server("near", server());
    let own = json!({ "type": "stdio", "command": "sh", "args": ["-c", SERVER] });
    let agent = helper().skills(["certain-skill"]).mcp_servers(["near"]);
    let (_, requests) = sent(&home, offering(), helper(), errand()).await;
    let usual = requests.last().unwrap().to_string();
    let (_, requests) = sent(&home, offering(), agent, errand()).await;
    let named = requests.last().unwrap().to_string();
    let described = helper().with("mcpServers", json!(["near", { "own": own }]));
    let (_, requests) = sent(&home, offering(), described, errand()).await;
    let described = requests.last().unwrap().to_string();
    let holds = |text: &str| [&usual, &named, &described].map(|body| body.contains(text));
    assert_eq!(holds("mcp__near"), [true, true, true]);
    assert_eq!(holds("mcp__own"), [false, false, true]);
    assert_eq!(holds("Be skilful in a certain way."), [false, true, false]);
}

async fn ping(_: BTreeMap<String, Value>) -> Result<&'static str, String> {
    Ok("pong")
}

#[tokio::test]
async fn a_subagent_in_the_background_is_not_waited_for() {
    let Some(home) = own_home() else { return };
    let (heard, _) = sent(&home, options(&home), helper(), errand()).await;
    assert!(heard.tool_results().contains("found"), "{heard:?}");
    let (heard, _) = sent(&home, options(&home), helper().background(), errand()).await;
    assert!(heard.tool_results().contains("Async agent launched"), "{heard:?}");
}

#[tokio::test]
async fn a_subagent_has_a_memory_of_its_own() {
    let Some(home) = own_home() else { return };
    let agent = helper().memory(SettingSource::Project);
    let (_, requests) = sent(&home, options(&home), agent, errand()).await;
    let folder = home.project().join(".claude/agent-memory/helper");
    assert!(requests[0]["system"].to_string().contains(folder.to_str().unwrap()));
}

/// The result of the agent's own prompt ended the turn of the host's.
#[tokio::test]
async fn a_session_that_is_an_agent_begins_with_the_agents_prompt() {
    let Some(home) = own_home() else { return };
    let agent = helper().initial_prompt(Script::new("first of all").says("begun").to_string());
    let client = connect(options(&home).subagent("helper", agent).agent("helper")).await;
    let heard = ask(&client, Script::new("then").says("gone on")).await;
    assert!(home.api().requests()[0].body["messages"].to_string().contains("first of all"));
    match home.program().is_at_least("2.1.300") {
        true => assert_eq!(heard.text(), "gone on"),
        false => not_in_this_version("results do not say which prompt they answer"),
    }
}

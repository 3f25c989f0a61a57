//! Tools of the host's own.

use std::collections::BTreeMap;
use std::time::Duration;

use rethread_claude::{ClaudeAgentOptionsBuilder, McpServer, ToolOutput, ToolServer, schemars};
use rethread_testkit::Prompt as Script;
use serde_json::{Value, json};

use crate::kit::{Heard, ask, connect_with_servers, home, options};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

fn calculator() -> ToolServer {
    ToolServer::new("calculator")
        .tool("add", "Adds two numbers", async |input: Add| Ok::<_, String>((input.a + input.b).to_string()))
        .tool("fail", "Fails", async |_: BTreeMap<String, Value>| Err::<ToolOutput, _>("out of numbers"))
        .tool("panic", "Panics", async |_: BTreeMap<String, Value>| -> Result<String, String> {
            panic!("as planned")
        })
        .tool("hang", "Hangs", |_: BTreeMap<String, Value>| std::future::pending::<Result<String, String>>())
        .timeout(Duration::from_millis(200))
}

fn offering(options: ClaudeAgentOptionsBuilder) -> ClaudeAgentOptionsBuilder {
    options.mcp_server("calculator", calculator()).allowed_tools(["mcp__calculator"])
}

async fn call(client: &rethread_claude::ClaudeClient, tool: &str, input: Value) -> Heard {
    let tool = format!("mcp__calculator__{tool}");
    ask(client, Script::new("Call it").calls(&tool, input).says("over")).await
}

#[tokio::test]
async fn a_function_of_the_hosts_is_a_tool_of_the_model() {
    let Some(home) = home() else { return };
    let client = connect_with_servers(offering(options(home))).await;
    let heard = call(&client, "add", json!({ "a": 17, "b": 25 })).await;
    assert!(heard.tool_results().contains("42"), "{heard:?}");
    let status = client.mcp_status().await.unwrap().to_string();
    assert!(status.contains("calculator") && status.contains("connected"), "{status}");
}

#[tokio::test]
async fn a_tool_that_fails_panics_or_hangs_is_an_error_to_the_model() {
    let Some(home) = home() else { return };
    let client = connect_with_servers(offering(options(home))).await;
    for (tool, input, told) in [
        ("add", json!({ "a": 1 }), "b"),
        ("fail", json!({}), "out of numbers"),
        ("panic", json!({}), "the tool panicked"),
        ("hang", json!({}), "did not answer"),
    ] {
        let heard = call(&client, tool, input).await;
        let results = heard.tool_results();
        assert!(results.contains(told) && results.contains("is_error: Some(true)"), "{tool}: {results}");
        assert_eq!(heard.text(), "over");
    }
}

#[tokio::test]
async fn a_server_can_be_added_while_the_session_runs() {
    let Some(home) = home() else { return };
    let client = connect_with_servers(options(home).allowed_tools(["mcp__calculator"])).await;
    client.set_mcp_servers([("calculator", McpServer::from(calculator()))]).await.unwrap();
    let heard = call(&client, "add", json!({ "a": 1, "b": 2 })).await;
    assert!(heard.tool_results().contains('3'), "{heard:?}");
}

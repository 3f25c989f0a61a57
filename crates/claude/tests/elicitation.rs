//! What servers of tools say of their own accord: what they want to know from the person, and that they have changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rethread_claude::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rethread_claude::rmcp::service::RequestContext;
use rethread_claude::rmcp::{ErrorData, RoleServer, ServerHandler};
use rethread_claude::{
    ClaudeAgentOptionsBuilder, ElicitationRequest, ElicitationResult, InProcessServer, McpServer,
};
use rethread_testkit::{Home, Prompt as Script, not_in_this_version};
use serde_json::{Value, json};

use crate::kit::{ask, connect_with_servers, home, options, own_home};

/// A server of tools that is a script for the shell: its tool has the person asked for a name, and tells what came of it.
const SCRIPT: &str = r#"
while read -r line; do
  id=${line##*\"id\":}
  id=${id%%[!0-9]*}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"greet","description":"Greets","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
      echo '{"jsonrpc":"2.0","id":"form","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}'
      read -r answer
      text=$(printf %s "$answer" | tr -d '"\\')
      result="{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}" ;;
    *'"id"'*) result='{}' ;;
    *) continue ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done
"#;

fn form() -> Value {
    json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] })
}

/// Has the tool of a server called, and returns what it said.
async fn greeted(options: ClaudeAgentOptionsBuilder, server: McpServer) -> String {
    let client = connect_with_servers(options.mcp_server("near", server).allowed_tools(["mcp__near"])).await;
    let call = Script::new("Call it").calls("mcp__near__greet", json!({})).says("over");
    ask(&client, call).await.tool_results()
}

fn script() -> McpServer {
    McpServer::stdio("sh", ["-c", SCRIPT])
}

#[tokio::test]
async fn what_a_server_wants_to_know_is_answered_by_the_host() {
    let Some(home) = home() else { return };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let answering = options(home).on_elicitation(move |request: ElicitationRequest| {
        seen.lock().unwrap().push((request.server_name, request.message, request.requested_schema));
        std::future::ready(ElicitationResult::accept(json!({ "name": "Ada" })))
    });
    let greeting = greeted(answering, script()).await;
    assert!(greeting.contains("action:accept") && greeting.contains("name:Ada"), "{greeting}");
    assert_eq!(*asked.lock().unwrap(), [("near".into(), "Who are you?".into(), form())]);
}

#[tokio::test]
async fn what_nobody_answers_is_declined_and_what_a_callback_fails_at_is_cancelled() {
    let Some(home) = home() else { return };
    let greeting = greeted(options(home), script()).await;
    assert!(greeting.contains("action:decline"), "{greeting}");
    let declining = options(home).on_elicitation(async |_| ElicitationResult::Decline);
    assert!(greeted(declining, script()).await.contains("action:decline"));
    let panicking = options(home).on_elicitation(async |_| panic!("as planned"));
    let greeting = greeted(panicking, script()).await;
    assert!(greeting.contains("action:cancel"), "{greeting}");
}

/// A server in this process that asks the CLI, and learns a tool when it is told to.
#[derive(Clone, Default)]
struct Curious {
    has_learnt: Arc<AtomicBool>,
}

impl ServerHandler for Curious {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        ServerConfig::new(capabilities.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = ["greet", "learn", "sing"];
        let known = if self.has_learnt.load(Ordering::Relaxed) { 3 } else { 2 };
        let tool = |name: &&'static str| {
            let Value::Object(schema) = json!({ "type": "object" }) else { return Tool::default() };
            Tool::new(*name, "A tool", JsonObject::from(schema))
        };
        Ok(ListToolsResult::with_all_items(names[..known].iter().map(tool).collect()))
    }

    #[expect(deprecated, reason = "it is what every client is asked the same way")]
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let told = match &*request.name {
            "greet" => format!("{:?}", context.peer.list_roots().await),
            _ => {
                self.has_learnt.store(true, Ordering::Relaxed);
                format!("{:?}", context.peer.notify_tool_list_changed().await)
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(told)]).into())
    }
}

fn curious() -> McpServer {
    McpServer::InProcess(InProcessServer::new(Curious::default()))
}

/// The CLI answers nothing that a server of the host's asks, a form neither; the host can ask the person by itself.
#[tokio::test]
async fn a_server_in_this_process_that_asks_the_cli_is_told_so() {
    let Some(home) = home() else { return };
    let greeting = greeted(options(home), curious()).await;
    assert!(greeting.contains("Method not found"), "{greeting}");
}

/// Returns all that the model was told with a prompt.
fn told(home: &Home, prompt: &str) -> String {
    let requests = home.api().requests();
    let asked = requests.iter().rev().find(|it| it.body["messages"].to_string().contains(prompt));
    asked.unwrap().body.to_string()
}

#[tokio::test]
async fn a_server_in_this_process_may_have_other_tools_later() {
    let Some(home) = own_home() else { return };
    let client =
        connect_with_servers(options(&home).mcp_server("near", curious()).allowed_tools(["mcp__near"])).await;
    ask(&client, Script::new("before it").says("Hi.")).await;
    assert!(!told(&home, "before it").contains("mcp__near__sing"));
    let learns = Script::new("Learn").calls("mcp__near__learn", json!({})).says("over");
    let heard = ask(&client, learns).await;
    assert!(heard.tool_results().contains("Ok"), "{heard:?}");
    if !home.program().is_at_least("2.1.300") {
        return not_in_this_version("tools of a server in this process stay as they are");
    }
    ask(&client, Script::new("after it").says("Hi.")).await;
    assert!(told(&home, "after it").contains("mcp__near__sing"));
}

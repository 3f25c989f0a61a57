//! Servers of tools in this process that misbehave in ways of their own.

use std::time::Duration;

use rethread_claude::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rethread_claude::rmcp::service::RequestContext;
use rethread_claude::rmcp::{ErrorData, RoleServer, ServerHandler};
use rethread_claude::{ClaudeAgentOptions, InProcessServer, McpServer};
use serde_json::{Value, json};

use crate::by_hand::{Hand, connect};

#[derive(Clone)]
struct Odd;

impl ServerHandler for Odd {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    #[expect(deprecated, reason = "servers of older days ask this")]
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "panic" => panic!("as planned"),
            "hang" => std::future::pending().await,
            _ => {
                let asked = context.peer.list_roots().await;
                let told = asked.map_or_else(|error| error.to_string(), |roots| format!("{roots:?}"));
                Ok(CallToolResult::success(vec![ContentBlock::text(told)]).into())
            }
        }
    }
}

async fn sends(hand: &mut Hand, message: Value) -> Value {
    let request = json!({ "subtype": "mcp_message", "server_name": "odd", "message": message });
    hand.asks(request).await["response"]["mcp_response"].clone()
}

async fn calls(hand: &mut Hand, id: u32, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {} });
    sends(hand, json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await
}

/// Connects to the server, which gets some time for each call.
async fn begin(limit: Duration) -> (rethread_claude::ClaudeClient, Hand) {
    let server = McpServer::InProcess(InProcessServer::new(Odd).timeout(limit));
    let (client, mut hand) = connect(ClaudeAgentOptions::builder().mcp_server("odd", server)).await;
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "claude", "version": "2" } });
    sends(&mut hand, json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    sends(&mut hand, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    (client, hand)
}

/// A handler that panicked or hung was never answered for.
#[tokio::test]
async fn a_call_that_panics_or_hangs_is_answered_with_an_error() {
    let (_client, mut hand) = begin(Duration::from_millis(200)).await;
    for (id, tool) in [(1, "panic"), (2, "hang")] {
        let answer = calls(&mut hand, id, tool).await;
        let told = (&answer["id"], &answer["error"]["message"]);
        assert_eq!(told, (&json!(id), &json!("the server did not answer in time")), "{tool}");
    }
}

/// A handler that asked its client something waited for ever: nobody heard it.
#[tokio::test]
async fn what_a_server_asks_is_passed_on_and_a_refusal_is_told_to_it() {
    let (_client, mut hand) = begin(Duration::from_secs(50)).await;
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    for (id, is_granted, told) in [(1, true, "file:///a"), (2, false, "not today")] {
        let params = json!({ "name": "ask", "arguments": {} });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let call = json!({ "subtype": "mcp_message", "server_name": "odd", "message": call });
        hand.says(json!({ "type": "control_request", "request_id": "q", "request": call }).to_string()).await;
        let asked = hand.hears().await;
        let (request, message) = (&asked["request"], &asked["request"]["message"]);
        assert_eq!(
            (&request["subtype"], &request["server_name"], &message["method"]),
            (&json!("mcp_message"), &json!("odd"), &json!("roots/list"))
        );
        if is_granted {
            hand.grants(&asked).await;
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": roots });
            let answer = json!({ "subtype": "mcp_message", "server_name": "odd", "message": answer });
            hand.says(json!({ "type": "control_request", "request_id": "a", "request": answer }).to_string())
                .await;
            assert_eq!(hand.hears().await["response"]["request_id"], "a");
        } else {
            hand.refuses(&asked, told).await;
        }
        let answer = hand.answer().await["response"]["mcp_response"].clone();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(told), "{answer}");
    }
}

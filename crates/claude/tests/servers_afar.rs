//! Servers of tools on the network.

use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use rethread_claude::{ClaudeAgentOptionsBuilder, McpServer, ToolServer};
use rethread_testkit::Prompt as Script;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::kit::{ask, connect_with_servers, options, own_home};

/// Has the tool of a server called, and returns what it said.
async fn called(options: ClaudeAgentOptionsBuilder) -> String {
    let client = connect_with_servers(options.allowed_tools(["mcp__far"])).await;
    let call = Script::new("Call it").calls("mcp__far__ping", json!({})).says("over");
    ask(&client, call).await.tool_results()
}

/// Serves on a free port for those who know the key, and returns the address.
async fn served(router: Router) -> String {
    let guarded = router.layer(from_fn(async |request: Request, next: Next| {
        let is_known = request.headers().get("x-key").is_some_and(|key| key == "known");
        if is_known { next.run(request).await } else { StatusCode::FORBIDDEN.into_response() }
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, guarded).await });
    url
}

// Each in a home of its own: the CLI remembers under its name that a server wanted another key.
#[tokio::test]
async fn a_server_on_the_network_is_called_with_the_headers_it_was_given() {
    let Some(home) = own_home() else { return };
    let tools = || {
        Ok(ToolServer::new("far").tool(
            "ping",
            "Answers",
            async |_: std::collections::BTreeMap<String, Value>| Ok::<_, String>("pong from afar"),
        ))
    };
    let service = StreamableHttpService::new(
        tools,
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    let url = served(Router::new().fallback_service(service)).await;
    let with = |key: &str| McpServer::Http {
        url: url.clone(),
        headers: [("x-key".to_owned(), key.to_owned())].into(),
    };
    let asking = |key| options(&home).mcp_server("far", with(key));
    let said = called(asking("known")).await;
    assert!(said.contains("pong from afar"), "{said}");
    assert!(!called(asking("unknown")).await.contains("pong from afar"));
}

/// Where a server of the older kind answers: on the stream that the client opened first.
type Stream = Arc<Mutex<Option<mpsc::UnboundedSender<Event>>>>;

async fn listen(State(stream): State<Stream>) -> Response {
    let (sender, events) = mpsc::unbounded_channel();
    sender.send(Event::default().event("endpoint").data("/mcp")).unwrap();
    *stream.lock().unwrap() = Some(sender);
    Sse::new(UnboundedReceiverStream::new(events).map(Ok::<_, std::convert::Infallible>)).into_response()
}

async fn take(State(stream): State<Stream>, Json(message): Json<Value>) -> StatusCode {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
            "serverInfo": { "name": "far", "version": "1" } }),
        "tools/list" => json!({ "tools": [{ "name": "ping", "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "pong of old" }] }),
        _ => json!({}),
    };
    if !message["id"].is_null() {
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        stream
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .send(Event::default().event("message").data(answer))
            .unwrap();
    }
    StatusCode::ACCEPTED
}

#[tokio::test]
async fn a_server_of_the_older_kind_is_called_with_the_headers_it_was_given() {
    let Some(home) = own_home() else { return };
    let router = Router::new().route("/mcp", get(listen).post(take)).with_state(Stream::default());
    let url = served(router).await;
    let asking = |key: &str| {
        let headers = [("x-key".to_owned(), key.to_owned())].into();
        options(&home).mcp_server("far", McpServer::Sse { url: url.clone(), headers })
    };
    let said = called(asking("known")).await;
    assert!(said.contains("pong of old"), "{said}");
    assert!(!called(asking("unknown")).await.contains("pong of old"));
}

//! Tools that are functions of the host's.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::InProcessServer;
use crate::aborted::Aborted;
use crate::options::McpServer;

type Answer = Pin<Box<dyn Future<Output = Result<ToolOutput, String>> + Send>>;
type Call = Arc<dyn Fn(Value) -> Answer + Send + Sync>;

/// Tools that are functions of the host's, offered to the model under one name.
///
/// The model knows a tool as `mcp__SERVER__TOOL`, and that is also what rules and callbacks about it see.
///
/// ```
/// use rethread_claude::prelude::*;
/// use rethread_claude::schemars;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: f64,
///     /// The second number.
///     b: f64,
/// }
///
/// let calculator = ToolServer::new("calculator")
///     .tool("add", "Adds two numbers", async |input: Add| Ok::<_, String>((input.a + input.b).to_string()));
/// let options = ClaudeAgentOptions::builder()
///     .mcp_server("calculator", calculator)
///     .allowed_tools(["mcp__calculator__add"]);
/// # drop(options.build());
/// ```
#[derive(Clone)]
pub struct ToolServer {
    name: String,
    tools: BTreeMap<String, (Tool, Call)>,
    timeout: Duration,
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput(Vec<ContentBlock>);

impl ToolOutput {
    /// Returns an answer with an image added, whose bytes are given as base64.
    pub fn image(mut self, media_type: &str, base64: impl Into<String>) -> Self {
        self.0.push(ContentBlock::image(base64, media_type));
        self
    }
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> Self {
        Self(vec![ContentBlock::text(text)])
    }
}

impl ToolServer {
    /// Returns a server without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), tools: BTreeMap::new(), timeout: Duration::from_secs(600) }
    }

    /// Adds a tool: an async function of one argument, whose type tells the model what to call it with.
    ///
    /// An error is told to the model, and so is an argument that does not fit, a panic, or a call that takes too long.
    pub fn tool<T, F, A, O, E>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        call: F,
    ) -> Self
    where
        T: DeserializeOwned + JsonSchema,
        F: Fn(T) -> A + Send + Sync + 'static,
        A: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<ToolOutput>,
        E: fmt::Display,
    {
        let (name, description) = (name.into(), description.into());
        let schema = match schemars::schema_for!(T).to_value() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        let tool = Tool::new(name.clone(), description, schema);
        let call: Call = Arc::new(move |input| match serde_json::from_value(input) {
            Ok(input) => {
                let answer = call(input);
                Box::pin(async move { answer.await.map(Into::into).map_err(|error| error.to_string()) })
            }
            Err(error) => Box::pin(std::future::ready(Err(format!("the input does not fit: {error}")))),
        });
        self.tools.insert(name, (tool, call));
        self
    }

    /// Gives the tools another time than ten minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn run(&self, name: &str, input: Value) -> Result<ToolOutput, String> {
        let (_, call) = self.tools.get(name).ok_or_else(|| format!("there is no tool {name:?}"))?;
        let call = Arc::clone(call);
        // In a task of its own, so that a panic is that task's end and no more.
        let mut task = Aborted(tokio::spawn(async move { call(input).await }));
        match tokio::time::timeout(self.timeout, &mut task.0).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err("the tool panicked".into()),
            Err(_) => Err(format!("the tool did not answer within {:?}", self.timeout)),
        }
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let info = Implementation::new(&self.name, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(info)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.values().map(|(tool, _)| tool.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = self.run(&request.name, Value::Object(request.arguments.unwrap_or_default())).await;
        Ok(match answer {
            Ok(ToolOutput(blocks)) => CallToolResult::success(blocks).into(),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]).into(),
        })
    }
}

impl From<ToolServer> for McpServer {
    fn from(server: ToolServer) -> Self {
        // Tools that take too long are told so by their own server, which knows more.
        let longer = server.timeout.saturating_add(Duration::from_secs(5));
        Self::InProcess(InProcessServer::new(server).timeout(longer))
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("name", &self.name).field("tools", &self.tools.keys()).finish()
    }
}

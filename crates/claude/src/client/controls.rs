//! What can be asked of a running session.

use serde::Deserialize;
use serde_json::{Value, json};

use super::ClaudeClient;
use crate::error::{Error, Result};
use crate::options::{McpServer, PermissionMode};

/// How the CLI says that there is nothing to go back to.
const NO_CHECKPOINT: &str = "No file checkpoint found";

/// What an interruption left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Interrupted {
    /// The prompts that still wait for their turn.
    pub still_queued: Vec<String>,
}

/// What a rewind of files did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct RewindResult {
    /// Whether it can be done.
    pub can_rewind: bool,
    /// Why not.
    pub error: Option<String>,
    /// The files that would change; only a dry run says so.
    pub files_changed: Vec<String>,
    /// The lines that would be added.
    pub insertions: u64,
    /// The lines that would go.
    pub deletions: u64,
}

/// What fills the model's context.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextUsage {
    /// How much is in it.
    pub total_tokens: u64,
    /// How much fits.
    pub max_tokens: u64,
    /// The share of it that is taken, in percent.
    pub percentage: f64,
    /// The model.
    pub model: Option<String>,
    /// What takes how much.
    pub categories: Vec<Value>,
}

/// Requests to a running session. Each fails with [`Error::Refused`](crate::Error::Refused) if the CLI says no, or is too
/// old to know it.
impl ClaudeClient {
    /// Ends the turn that is being answered. Prompts that wait still get theirs.
    pub async fn interrupt(&self) -> Result<Interrupted> {
        // Older versions answer with nothing.
        let answer = self.control("interrupt", json!({})).await?;
        Ok(serde_json::from_value(answer).unwrap_or_default())
    }

    /// Changes the model; to the default if there is none.
    pub async fn set_model(&self, model: Option<&str>) -> Result<()> {
        self.control("set_model", json!({ "model": model })).await.map(drop)
    }

    /// Changes what is allowed without asking.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<()> {
        self.control("set_permission_mode", json!({ "mode": mode })).await.map(drop)
    }

    /// Changes how much the model may think; as much as it sees fit if there is no limit.
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u32>) -> Result<()> {
        self.control("set_max_thinking_tokens", json!({ "max_thinking_tokens": tokens })).await.map(drop)
    }

    /// Puts the files that the agent edited back to what they were before a prompt, by the prompt's UUID.
    ///
    /// Needs [`enable_file_checkpointing`](crate::ClaudeAgentOptions::enable_file_checkpointing). A prompt without a
    /// checkpoint is no failure: the result says that it cannot be done. What others changed meanwhile is overwritten.
    pub async fn rewind_files(&self, prompt_uuid: &str) -> Result<RewindResult> {
        match self.ask("rewind_files", json!({ "user_message_id": prompt_uuid })).await {
            // A dry run answers this, a real one refuses; it is the same to who asks.
            Err(Error::Refused { message, .. }) if message.starts_with(NO_CHECKPOINT) => {
                Ok(RewindResult { error: Some(message), ..RewindResult::default() })
            }
            answer => answer,
        }
    }

    /// Returns what [`rewind_files`](Self::rewind_files) would do, and changes nothing.
    pub async fn rewind_files_dry_run(&self, prompt_uuid: &str) -> Result<RewindResult> {
        self.ask("rewind_files", json!({ "user_message_id": prompt_uuid, "dry_run": true })).await
    }

    /// Names the session.
    pub async fn rename(&self, title: &str) -> Result<()> {
        self.control("rename_session", json!({ "title": title })).await.map(drop)
    }

    /// Has a model name the session after a description, and keeps the name.
    pub async fn generate_title(&self, description: &str) -> Result<Value> {
        self.control("generate_session_title", json!({ "description": description, "persist": true })).await
    }

    /// Takes back a prompt that still waits for its turn, and returns whether that was possible.
    pub async fn cancel_message(&self, prompt_uuid: &str) -> Result<bool> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            cancelled: bool,
        }
        if self.live()?.board.cancel_held(prompt_uuid) {
            return Ok(true);
        }
        let Answer { cancelled } =
            self.ask("cancel_async_message", json!({ "message_uuid": prompt_uuid })).await?;
        let live = self.live()?;
        if cancelled && let Some(next) = live.board.cancel(prompt_uuid) {
            // Without anybody to take it, the CLI has ended, which the prompt's turn will be told.
            drop(live.outbox.answer(&next));
        }
        Ok(cancelled)
    }

    /// Returns what fills the model's context.
    pub async fn context_usage(&self) -> Result<ContextUsage> {
        self.ask("get_context_usage", json!({})).await
    }

    /// Returns what the session has cost, as text for people.
    pub async fn session_cost(&self) -> Result<Value> {
        self.control("get_session_cost", json!({})).await
    }

    /// Returns what the session and the account have used.
    pub async fn usage(&self) -> Result<Value> {
        self.control("get_usage", json!({})).await
    }

    /// Returns the settings in effect, and where they are from.
    pub async fn settings(&self) -> Result<Value> {
        self.control("get_settings", json!({})).await
    }

    /// Returns the models that can be chosen.
    pub async fn models(&self) -> Result<Value> {
        self.control("list_models", json!({})).await
    }

    /// Returns the version of the program that runs.
    pub async fn binary_version(&self) -> Result<Value> {
        self.control("get_binary_version", json!({})).await
    }

    /// Returns the rules about tools.
    pub async fn permission_rules(&self) -> Result<Value> {
        self.control("list_permission_rules", json!({})).await
    }

    /// Returns the hooks that are configured.
    pub async fn hooks(&self) -> Result<Value> {
        self.control("get_hooks_listing", json!({})).await
    }

    /// Returns files whose names fit a query.
    pub async fn file_suggestions(&self, query: &str) -> Result<Value> {
        self.control("file_suggestions", json!({ "query": query })).await
    }

    /// Moves tasks in the foreground to the background: one tool call, or all.
    pub async fn background_tasks(&self, tool_use_id: Option<&str>) -> Result<Value> {
        self.control("background_tasks", json!({ "tool_use_id": tool_use_id })).await
    }

    /// Stops a task in the background.
    pub async fn stop_task(&self, task_id: &str) -> Result<()> {
        self.control("stop_task", json!({ "task_id": task_id })).await.map(drop)
    }

    /// Returns what a file holds, as the agent would read it.
    pub async fn read_file(&self, path: &str) -> Result<Value> {
        self.control("read_file", json!({ "path": path })).await
    }

    /// Tells the agent that it has read a file as of a time, in milliseconds since 1970, so that it may edit it.
    pub async fn seed_read_state(&self, path: &str, mtime: u64) -> Result<()> {
        self.control("seed_read_state", json!({ "path": path, "mtime": mtime })).await.map(drop)
    }

    /// Returns the servers of tools, and how they are doing.
    pub async fn mcp_status(&self) -> Result<Value> {
        self.control("mcp_status", json!({})).await
    }

    /// Puts other servers of tools in the place of those that were set this way before.
    pub async fn set_mcp_servers(
        &self,
        servers: impl IntoIterator<Item = (impl Into<String>, McpServer)>,
    ) -> Result<Value> {
        let live = self.live()?;
        let tell = |(name, server): (_, McpServer)| {
            let name: String = Into::into(name);
            live.requests.serve(&name, &server);
            let told = server.to_json(&name);
            (name, told)
        };
        let servers: serde_json::Map<String, Value> = servers.into_iter().map(tell).collect();
        self.control("mcp_set_servers", json!({ "servers": servers })).await
    }

    /// Connects a server of tools anew.
    pub async fn reconnect_mcp_server(&self, name: &str) -> Result<()> {
        self.control("mcp_reconnect", json!({ "serverName": name })).await.map(drop)
    }

    /// Switches a server of tools on or off.
    pub async fn toggle_mcp_server(&self, name: &str, enabled: bool) -> Result<()> {
        self.control("mcp_toggle", json!({ "serverName": name, "enabled": enabled })).await.map(drop)
    }

    /// Ends the session.
    pub async fn end_session(&self) -> Result<()> {
        self.control("end_session", json!({})).await?;
        self.close_input()
    }
}

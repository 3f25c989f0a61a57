//! What else the CLI says.

use serde::Deserialize;
use serde_json::Value;

/// What became of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommandLifecycle {
    /// The prompt's UUID.
    pub command_uuid: Option<String>,
    /// `queued`, `started`, `completed` and the like.
    pub state: String,
    /// The session.
    pub session_id: Option<String>,
}

/// Lines of the transcript, as they were written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TranscriptMirror {
    /// The transcript.
    #[serde(rename = "filePath")]
    pub file_path: String,
    /// The lines.
    pub entries: Vec<Value>,
}

/// How long a tool has been running.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolProgress {
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// The tool call that runs the subagent that called it.
    pub parent_tool_use_id: Option<String>,
    /// For how long.
    pub elapsed_time_seconds: f64,
}

/// How much may still be asked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RateLimitEvent {
    /// What is known of it.
    pub rate_limit_info: Value,
    /// The session.
    pub session_id: Option<String>,
}

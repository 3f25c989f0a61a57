//! What a hook is told.

use serde::Deserialize;
use serde_json::Value;

/// What a hook is told.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HookInput {
    /// The event, as Claude Code names it.
    pub hook_event_name: String,
    /// The session.
    pub session_id: String,
    /// Its transcript.
    pub transcript_path: String,
    /// The working directory.
    pub cwd: String,
    /// What is allowed without asking.
    pub permission_mode: Option<String>,
    /// The subagent in which it happens.
    pub agent_id: Option<String>,
    /// The tool, at events of tools.
    pub tool_name: String,
    /// What the tool is called with; `null` at other events.
    pub tool_input: Value,
    /// What the tool answered; `null` before it did.
    pub tool_response: Value,
    /// The call's id.
    pub tool_use_id: Option<String>,
    /// The prompt, when one is submitted.
    pub prompt: Option<String>,
    /// Everything, as it came.
    #[serde(skip)]
    pub raw: Value,
}

impl HookInput {
    pub(crate) fn parse(raw: Value) -> Self {
        let typed = serde_json::from_value(raw.clone()).unwrap_or_default();
        Self { raw, ..typed }
    }
}

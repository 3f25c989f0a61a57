//! What a hook is told.

use serde::Deserialize;
use serde_json::Value;

use super::HookEvent;
use crate::lenient;

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
    /// Reads what a hook of an event is told; `None` if it is about a tool and does not say which.
    pub(crate) fn parse(raw: Value, event: &HookEvent) -> Option<Self> {
        let mut read: Self = lenient::from_value(&raw)?;
        if read.hook_event_name.is_empty() {
            event.as_str().clone_into(&mut read.hook_event_name);
        }
        let is_readable = !event.is_about_a_tool() || !read.tool_name.is_empty();
        is_readable.then_some(Self { raw, ..read })
    }
}

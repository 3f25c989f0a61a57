//! The moments at which hooks are called.

/// A moment of the agent's life.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookEvent {
    /// Before a tool is run, and before anybody is asked about it.
    PreToolUse,
    /// After a tool was run.
    PostToolUse,
    /// After a tool failed.
    PostToolUseFailure,
    /// When somebody is about to be asked about a tool.
    PermissionRequest,
    /// When a prompt is taken up.
    UserPromptSubmit,
    /// When the agent is done with a turn.
    Stop,
    /// When a subagent begins.
    SubagentStart,
    /// When a subagent is done.
    SubagentStop,
    /// Before the conversation is compacted.
    PreCompact,
    /// When there is something to tell the person.
    Notification,
    /// When a session begins. The CLI does not call hooks of a host at this moment; one from its settings it does.
    SessionStart,
    /// When a session ends. The CLI does not call hooks of a host at this moment; one from its settings it does.
    SessionEnd,
    /// One that this crate does not know.
    Other(String),
}

impl HookEvent {
    /// Returns whether it is always about a tool.
    pub(super) fn is_about_a_tool(&self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure | Self::PermissionRequest
        )
    }

    /// Returns the event as Claude Code names it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Other(name) => name,
        }
    }
}

//! What the CLI says about the session.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::frame::Frame;
use crate::options::PermissionMode;

/// Something about the session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SystemMessage {
    /// A turn begins; this comes with every turn.
    Init {
        /// The session.
        session_id: String,
        /// The working directory.
        cwd: String,
        /// The model.
        model: String,
        /// The tools.
        tools: Vec<String>,
        /// The servers of tools.
        mcp_servers: Vec<McpServerState>,
        /// What is allowed without asking.
        permission_mode: Option<PermissionMode>,
        /// The commands that a prompt may begin with.
        slash_commands: Vec<String>,
        /// The subagents.
        agents: Vec<String>,
        /// The version of Claude Code.
        claude_code_version: Option<String>,
    },
    /// What the agent is at: `requesting`, `compacting`, or nothing.
    Status {
        /// What it is at.
        status: Option<String>,
        /// What is allowed without asking, if that changed.
        permission_mode: Option<PermissionMode>,
    },
    /// What came before was replaced by a summary.
    CompactBoundary {
        /// How and why.
        compact_metadata: Value,
    },
    /// The API failed, and is asked again.
    ApiRetry {
        /// How often by now.
        attempt: u32,
        /// How often at most.
        max_retries: u32,
        /// After how long.
        retry_delay_ms: u64,
        /// The status with which it failed.
        error_status: Option<u16>,
    },
    /// A task in the background, such as a subagent, began.
    TaskStarted(TaskFrame),
    /// It went on.
    TaskProgress(TaskFrame),
    /// It changed.
    TaskUpdated(TaskFrame),
    /// It ended.
    TaskNotification(TaskFrame),
    /// A tool call was denied without asking.
    PermissionDenied {
        /// The tool.
        tool_name: String,
        /// The call.
        tool_use_id: String,
        /// What the model was told.
        message: String,
    },
    /// The session is `running`, `requires_action` or `idle`.
    SessionStateChanged {
        /// What it is.
        state: String,
    },
    /// The session has another title.
    SessionTitleChanged {
        /// The title.
        title: Option<String>,
    },
    /// Something to show to the person.
    Informational {
        /// What.
        content: String,
    },
    /// Anything else.
    Other {
        /// What it is.
        subtype: String,
        /// What it says.
        frame: Frame,
    },
}

/// A server of tools, and how it is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct McpServerState {
    /// Its name.
    pub name: String,
    /// `connected`, `failed`, `pending` and the like.
    pub status: String,
}

/// A task in the background.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskFrame {
    /// The task.
    pub task_id: String,
    /// The tool call that began it.
    pub tool_use_id: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What became of it: `completed`, `failed` or `stopped`.
    pub status: Option<String>,
    /// What it found.
    pub summary: Option<String>,
    /// Where its output is.
    pub output_file: Option<String>,
    /// What kind of subagent it is.
    pub subagent_type: Option<String>,
}

/// Everything that a known subtype may hold.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    session_id: String,
    cwd: String,
    model: String,
    tools: Vec<String>,
    mcp_servers: Vec<McpServerState>,
    #[serde(rename = "permissionMode")]
    permission_mode: Option<PermissionMode>,
    slash_commands: Vec<String>,
    agents: Vec<String>,
    claude_code_version: Option<String>,
    status: Option<String>,
    compact_metadata: Value,
    attempt: u32,
    max_retries: u32,
    retry_delay_ms: f64,
    error_status: Option<u16>,
    tool_name: String,
    tool_use_id: String,
    message: String,
    state: String,
    title: Option<String>,
    content: String,
}

impl SystemMessage {
    pub(super) fn of(frame: &Frame) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, default)]
            subtype: Cow<'a, str>,
        }
        let subtype = frame.read::<Head<'_>>().ok()?.subtype;
        let known = match &*subtype {
            "task_started" => frame.read_leniently().ok().map(Self::TaskStarted),
            "task_progress" => frame.read_leniently().ok().map(Self::TaskProgress),
            "task_updated" => frame.read_leniently().ok().map(Self::TaskUpdated),
            "task_notification" => frame.read_leniently().ok().map(Self::TaskNotification),
            "init"
            | "status"
            | "compact_boundary"
            | "api_retry"
            | "permission_denied"
            | "session_state_changed"
            | "session_title_changed"
            | "informational" => frame.read_leniently().ok().and_then(|fields| Self::known(&subtype, fields)),
            _ => None,
        };
        Some(known.unwrap_or_else(|| Self::Other { subtype: subtype.into_owned(), frame: frame.clone() }))
    }

    fn known(subtype: &str, fields: Fields) -> Option<Self> {
        let Fields { session_id, cwd, model, tools, mcp_servers, permission_mode, .. } = fields;
        let Fields { slash_commands, agents, claude_code_version, tool_name, tool_use_id, message, .. } =
            fields;
        Some(match subtype {
            "init" => Self::Init {
                session_id,
                cwd,
                model,
                tools,
                mcp_servers,
                permission_mode,
                slash_commands,
                agents,
                claude_code_version,
            },
            "status" => Self::Status { status: fields.status, permission_mode },
            "compact_boundary" => Self::CompactBoundary { compact_metadata: fields.compact_metadata },
            "api_retry" => Self::ApiRetry {
                attempt: fields.attempt,
                max_retries: fields.max_retries,
                retry_delay_ms: fields.retry_delay_ms as u64,
                error_status: fields.error_status,
            },
            "permission_denied" => Self::PermissionDenied { tool_name, tool_use_id, message },
            "session_state_changed" => Self::SessionStateChanged { state: fields.state },
            "session_title_changed" => Self::SessionTitleChanged { title: fields.title },
            "informational" => Self::Informational { content: fields.content },
            _ => return None,
        })
    }

    /// Returns what it is, as the CLI names it, if this crate has no name of its own for it.
    pub fn other_subtype(&self) -> Option<&str> {
        match self {
            Self::Other { subtype, .. } => Some(subtype),
            _ => None,
        }
    }
}

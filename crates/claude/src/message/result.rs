//! How a turn ended.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Usage;
use crate::frame::Frame;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResultMessage {
    /// The agent came to an end by itself. `is_error` says that the end was a failure of the API.
    Success {
        /// The session.
        session_id: Option<String>,
        /// The last text; what went wrong, if `is_error`.
        result: String,
        /// Whether the API failed.
        is_error: bool,
        /// Everything else.
        details: Box<ResultDetails>,
    },
    /// The turn was cut short.
    Error {
        /// The session.
        session_id: Option<String>,
        /// By what.
        subtype: ErrorSubtype,
        /// What went wrong.
        errors: Vec<String>,
        /// Everything else.
        details: Box<ResultDetails>,
    },
}

/// What cut a turn short.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorSubtype {
    /// An interruption, or a failure.
    DuringExecution,
    /// [`max_turns`](crate::ClaudeAgentOptions::max_turns).
    MaxTurns,
    /// [`max_budget_usd`](crate::ClaudeAgentOptions::max_budget_usd).
    MaxBudget,
    /// The answer never fitted the [`output_schema`](crate::ClaudeAgentOptions::output_schema).
    MaxStructuredOutputRetries,
    /// Something that this crate does not know.
    Other(String),
}

/// What is known of a turn that ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ResultDetails {
    /// How long it took.
    pub duration_ms: u64,
    /// How long the API took.
    pub duration_api_ms: u64,
    /// How many times the model was asked.
    pub num_turns: u32,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// Why the turn ended: `completed`, `aborted_streaming`, `max_turns` and the like.
    pub terminal_reason: Option<String>,
    /// What the session has cost so far.
    pub total_cost_usd: f64,
    /// What the turn took.
    pub usage: Usage,
    /// What the session took so far, by model.
    #[serde(rename = "modelUsage")]
    pub model_usage: BTreeMap<String, Value>,
    /// Tool calls that were denied.
    pub permission_denials: Vec<PermissionDenial>,
    /// The answer that fits the [`output_schema`](crate::ClaudeAgentOptions::output_schema).
    pub structured_output: Option<Value>,
    /// The status with which the API failed.
    pub api_error_status: Option<u16>,
    /// The prompts that this turn answered.
    pub user_message_uuids: Vec<String>,
    /// The prompt that this turn answered.
    pub user_message_uuid: Option<String>,
    /// Where the turn came from, if not from a prompt: `{"kind": "task-notification"}`.
    pub origin: Option<Value>,
    /// The result's own UUID.
    pub uuid: Option<String>,
}

/// A tool call that was denied.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PermissionDenial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// What it was to be called with.
    pub tool_input: Value,
}

impl ResultMessage {
    /// Returns whether the turn failed, in whatever way.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error { .. } | Self::Success { is_error: true, .. })
    }

    /// Returns the session.
    pub fn session_id(&self) -> Option<&str> {
        let (Self::Success { session_id, .. } | Self::Error { session_id, .. }) = self;
        session_id.as_deref()
    }

    /// Returns everything else that is known.
    pub fn details(&self) -> &ResultDetails {
        let (Self::Success { details, .. } | Self::Error { details, .. }) = self;
        details
    }

    pub(super) fn of(frame: &Frame) -> Option<Self> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Head {
            subtype: String,
            session_id: Option<String>,
            result: String,
            is_error: bool,
            errors: Vec<String>,
        }
        let head: Head = frame.read_leniently().ok()?;
        let details = Box::new(frame.read_leniently().ok()?);
        let subtype = match head.subtype.as_str() {
            "success" => {
                let Head { session_id, result, is_error, .. } = head;
                return Some(Self::Success { session_id, result, is_error, details });
            }
            "error_during_execution" => ErrorSubtype::DuringExecution,
            "error_max_turns" => ErrorSubtype::MaxTurns,
            "error_max_budget_usd" => ErrorSubtype::MaxBudget,
            "error_max_structured_output_retries" => ErrorSubtype::MaxStructuredOutputRetries,
            other => ErrorSubtype::Other(other.to_owned()),
        };
        Some(Self::Error { session_id: head.session_id, subtype, errors: head.errors, details })
    }
}

//! Decisions about tool calls.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::lenient;
use crate::options::PermissionMode;

/// A tool call that waits for a decision.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The tool.
    pub tool_name: String,
    /// What it is to be called with.
    pub input: Value,
    /// The call's id, the same as in the assistant's message.
    pub tool_use_id: String,
    /// What people call the tool.
    pub display_name: Option<String>,
    /// One line that asks for the decision.
    pub title: Option<String>,
    /// What the call is for, in the model's words.
    pub description: Option<String>,
    /// Rules that would make the same question unnecessary.
    pub permission_suggestions: Vec<PermissionUpdate>,
    /// The path outside the allowed directories, if that is why it is asked.
    pub blocked_path: Option<String>,
    /// Why it is asked.
    pub decision_reason: Option<String>,
    /// The kind of reason.
    pub decision_reason_type: Option<String>,
    /// The subagent that calls.
    pub agent_id: Option<String>,
    /// Whether only a person can answer, as with a question of the model.
    pub requires_user_interaction: bool,
}

impl PermissionRequest {
    /// Reads a request; `None` if it does not say which tool is to be called with what, so that nobody decides about
    /// something else than what would be run.
    pub(crate) fn parse(request: &Value) -> Option<Self> {
        let read: Self = lenient::from_value(request)?;
        (!read.tool_name.is_empty() && read.input.is_object()).then_some(read)
    }
}

/// The decision.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PermissionResult {
    /// The tool is run.
    Allow {
        /// What it is run with instead of its own input.
        updated_input: Option<Value>,
        /// Rules that hold from now on.
        updated_permissions: Vec<PermissionUpdate>,
    },
    /// The tool is not run.
    Deny {
        /// What the model is told.
        message: String,
        /// Whether the turn ends, too.
        interrupt: bool,
    },
}

impl PermissionResult {
    /// Runs the tool as it was called.
    pub fn allow() -> Self {
        Self::Allow { updated_input: None, updated_permissions: Vec::new() }
    }

    /// Runs the tool with another input. Answers to a question go here, too: `{"questions": …, "answers": {question: label}}`.
    pub fn allow_with(input: Value) -> Self {
        Self::Allow { updated_input: Some(input), updated_permissions: Vec::new() }
    }

    /// Runs the tool, and has rules hold from now on.
    pub fn allow_and(rules: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        Self::Allow { updated_input: None, updated_permissions: rules.into_iter().collect() }
    }

    /// Does not run the tool, and tells the model why.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: false }
    }

    /// Does not run the tool, and ends the turn.
    pub fn deny_and_interrupt(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: true }
    }

    /// Returns the decision as the CLI reads it. Older ones insist on an input.
    pub(crate) fn to_json(&self, asked: &Value) -> Value {
        match self {
            Self::Allow { updated_input, updated_permissions } => {
                let mut answer = Map::new();
                answer.insert("behavior".into(), json!("allow"));
                answer.insert("updatedInput".into(), updated_input.as_ref().unwrap_or(asked).clone());
                if !updated_permissions.is_empty() {
                    answer.insert("updatedPermissions".into(), json!(updated_permissions));
                }
                Value::Object(answer)
            }
            Self::Deny { message, interrupt } => {
                json!({ "behavior": "deny", "message": message, "interrupt": interrupt })
            }
        }
    }
}

/// A change of what is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionUpdate {
    /// Adds rules.
    AddRules {
        /// The rules.
        rules: Vec<PermissionRule>,
        /// What they do: `allow`, `deny` or `ask`.
        behavior: String,
        /// Where they are kept: `session`, `localSettings`, `projectSettings` or `userSettings`.
        destination: String,
    },
    /// Puts rules in the place of all others of their kind.
    ReplaceRules {
        /// The rules.
        rules: Vec<PermissionRule>,
        /// What they do.
        behavior: String,
        /// Where they are kept.
        destination: String,
    },
    /// Removes rules.
    RemoveRules {
        /// The rules.
        rules: Vec<PermissionRule>,
        /// What they did.
        behavior: String,
        /// Where they were kept.
        destination: String,
    },
    /// Changes the mode.
    SetMode {
        /// The mode.
        mode: PermissionMode,
        /// Where it is kept.
        destination: String,
    },
    /// Lets tools work in further directories.
    AddDirectories {
        /// The directories.
        directories: Vec<String>,
        /// Where that is kept.
        destination: String,
    },
    /// Takes directories back.
    RemoveDirectories {
        /// The directories.
        directories: Vec<String>,
        /// Where that was kept.
        destination: String,
    },
    /// One that this crate does not know.
    #[serde(untagged)]
    Other(Value),
}

impl PermissionUpdate {
    /// Allows a tool for the rest of the session.
    pub fn allow_for_session(tool: impl Into<String>) -> Self {
        let rule = PermissionRule { tool_name: tool.into(), rule_content: None };
        Self::AddRules { rules: vec![rule], behavior: "allow".into(), destination: "session".into() }
    }
}

/// A rule about a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule {
    /// The tool.
    pub tool_name: String,
    /// Which calls of it, for example `git *`; all of them unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

type Decision = Pin<Box<dyn Future<Output = PermissionResult> + Send>>;

/// A function that decides about tool calls.
#[derive(Clone)]
pub struct PermissionCallback(Arc<dyn Fn(PermissionRequest) -> Decision + Send + Sync>);

impl PermissionCallback {
    pub(crate) fn new<F, A>(decide: F) -> Self
    where
        F: Fn(PermissionRequest) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionResult> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(decide(request))))
    }

    pub(crate) fn decide(&self, request: PermissionRequest) -> Decision {
        (self.0)(request)
    }
}

impl fmt::Debug for PermissionCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermissionCallback")
    }
}

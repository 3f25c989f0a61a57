//! What a hook answers.

use serde_json::{Map, Value, json};

/// What a hook answers.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct HookOutput {
    general: Map<String, Value>,
    specific: Map<String, Value>,
}

impl HookOutput {
    /// Has no objection.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Denies the tool call, and tells the model why; at `PreToolUse`.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::decides("deny", reason.into())
    }

    /// Allows the tool call without asking anybody; at `PreToolUse`.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::decides("allow", reason.into())
    }

    /// Has somebody asked about the tool call, even if a rule allows it; at `PreToolUse`.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::decides("ask", reason.into())
    }

    /// Refuses a prompt, or has the agent go on instead of stopping, and tells why.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::default().with("decision", json!("block")).with("reason", json!(reason.into()))
    }

    /// Ends the turn, and tells the person why.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self::default().with("continue", json!(false)).with("stopReason", json!(reason.into()))
    }

    /// Has the tool called with another input; at `PreToolUse`, with [`allow`](Self::allow).
    pub fn updated_input(self, input: Value) -> Self {
        self.with_specific("updatedInput", input)
    }

    /// Tells the model something.
    pub fn additional_context(self, text: impl Into<String>) -> Self {
        self.with_specific("additionalContext", json!(text.into()))
    }

    /// Tells the person something.
    pub fn system_message(self, text: impl Into<String>) -> Self {
        self.with("systemMessage", json!(text.into()))
    }

    /// Answers with a field that this crate does not know.
    pub fn with(mut self, field: impl Into<String>, value: Value) -> Self {
        self.general.insert(field.into(), value);
        self
    }

    /// Answers with a field of this event's that this crate does not know.
    pub fn with_specific(mut self, field: impl Into<String>, value: Value) -> Self {
        self.specific.insert(field.into(), value);
        self
    }

    fn decides(decision: &str, reason: String) -> Self {
        Self::default()
            .with_specific("permissionDecision", json!(decision))
            .with_specific("permissionDecisionReason", json!(reason))
    }

    /// Returns the answer to an event as the CLI reads it.
    pub(crate) fn into_json(mut self, event: &str) -> Value {
        if !self.specific.is_empty() {
            self.specific.insert("hookEventName".into(), json!(event));
            self.general.insert("hookSpecificOutput".into(), Value::Object(self.specific));
        }
        Value::Object(self.general)
    }
}

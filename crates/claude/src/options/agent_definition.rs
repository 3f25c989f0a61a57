//! A subagent, as the model can choose it.

use serde::Serialize;

/// A subagent: what it is for, and what it may do.
///
/// ```
/// use rethread_claude::AgentDefinition;
///
/// let reviewer = AgentDefinition::new("Reviews code", "You review code. Be brief.").tools(["Read", "Grep"]).model("haiku");
/// # drop(reviewer);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentDefinition {
    /// When the model should choose it.
    pub description: String,
    /// What it is told about its task.
    pub prompt: String,
    /// The tools it has; those of the session unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The tools it does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// Its model; the session's unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl AgentDefinition {
    /// Returns a subagent with the session's tools and model.
    pub fn new(description: impl Into<String>, prompt: impl Into<String>) -> Self {
        let (description, prompt) = (description.into(), prompt.into());
        Self { description, prompt, tools: None, disallowed_tools: Vec::new(), model: None }
    }

    /// Returns it with these tools only.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Returns it without these tools.
    pub fn disallowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disallowed_tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Returns it with a model of its own.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }
}

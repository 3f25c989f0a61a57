//! A subagent, as the model can choose it.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Effort, PermissionMode, SettingSource};

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
    /// Everything else, as Claude Code names it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl AgentDefinition {
    /// Returns a subagent with the session's tools and model.
    pub fn new(description: impl Into<String>, prompt: impl Into<String>) -> Self {
        let (description, prompt) = (description.into(), prompt.into());
        Self {
            description,
            prompt,
            tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            other: Map::new(),
        }
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

    /// Returns it with a limit to how many times its model may be asked.
    pub fn max_turns(self, turns: u32) -> Self {
        self.with("maxTurns", json!(turns))
    }

    /// Returns it with what it is allowed without asking.
    pub fn permission_mode(self, mode: PermissionMode) -> Self {
        self.with("permissionMode", json!(mode))
    }

    /// Returns it with skills that it knows from the beginning.
    pub fn skills(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with("skills", names.into_iter().map(|name| Value::String(name.into())).collect())
    }

    /// Returns it with servers of tools, by the names that the session knows them by.
    pub fn mcp_servers(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with("mcpServers", names.into_iter().map(|name| Value::String(name.into())).collect())
    }

    /// Returns it with how hard its model tries.
    pub fn effort(self, effort: &Effort) -> Self {
        self.with("effort", json!(effort.as_str()))
    }

    /// Returns it such that the session does not wait for it.
    pub fn background(self) -> Self {
        self.with("background", json!(true))
    }

    /// Returns it with a memory of its own, kept where settings of that kind are.
    pub fn memory(self, source: SettingSource) -> Self {
        self.with("memory", json!(source.as_str()))
    }

    /// Returns it with a first prompt, for a session that is this agent itself.
    pub fn initial_prompt(self, prompt: impl Into<String>) -> Self {
        self.with("initialPrompt", json!(prompt.into()))
    }

    /// Returns it with a field that this crate has no call for, for example `omitClaudeMd`.
    pub fn with(mut self, field: impl Into<String>, value: Value) -> Self {
        self.other.insert(field.into(), value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_is_told_as_the_official_sdks_tell_it() {
        let agent = AgentDefinition::new("d", "p")
            .max_turns(3)
            .permission_mode(PermissionMode::DontAsk)
            .skills(["s"])
            .mcp_servers(["m"])
            .effort(&Effort::ExtraHigh)
            .background()
            .memory(SettingSource::Project)
            .initial_prompt("i")
            .with("omitClaudeMd", json!(true));
        let told = json!({ "description": "d", "prompt": "p", "maxTurns": 3, "permissionMode": "dontAsk",
            "skills": ["s"], "mcpServers": ["m"], "effort": "xhigh", "background": true, "memory": "project",
            "initialPrompt": "i", "omitClaudeMd": true });
        assert_eq!(json!(agent), told);
    }
}

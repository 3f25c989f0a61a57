//! The first request to the CLI: what does not go onto the command line.

use serde_json::{Map, Value, json};

use super::launch::long;
use super::{ClaudeAgentOptions, SystemPrompt};

/// Returns the `initialize` request.
pub(crate) fn initialize(options: &ClaudeAgentOptions) -> Value {
    let mut request = Map::new();
    request.insert("subtype".into(), json!("initialize"));
    if !options.hooks.is_empty() {
        request.insert("hooks".into(), options.hooks.to_json());
    }
    if !options.agents.is_empty() {
        request.insert("agents".into(), json!(options.agents));
    }
    if let Some(skills) = &options.skills {
        request.insert("skills".into(), json!(skills));
    }
    if options.forward_subagent_text {
        request.insert("forwardSubagentText".into(), json!(true));
    }
    if let Some(SystemPrompt::Text(text)) = &options.system_prompt
        && let Some(text) = long(text)
    {
        request.insert("systemPrompt".into(), json!([text]));
    }
    if let Some(text) = options.append_system_prompt.as_deref().and_then(long) {
        request.insert("appendSystemPrompt".into(), json!(text));
    }
    request.extend(options.extra_initialize.clone());
    Value::Object(request)
}

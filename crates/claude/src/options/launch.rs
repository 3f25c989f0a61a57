//! From options to a command line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{ClaudeAgentOptions, SettingSource, SystemPrompt, Thinking, Tools};

/// Variables of a Claude Code that this process may itself run in; they are not the new one's.
const OF_ANOTHER: &[&str] = &["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];

/// How long an argument may be, in bytes: what Linux takes, without the zero at the end.
pub(super) const LONGEST_ARGUMENT: usize = (128 << 10) - 1;

/// How long a text may be to go into an argument with its flag.
const LONGEST_TEXT: usize = LONGEST_ARGUMENT - 64;

/// How the CLI is started.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Launch {
    /// The program: a path, or a name to look for on `PATH`; nothing if Claude Code is to be looked for.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables that are set, or removed.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    /// Whether those are all variables it gets.
    pub clear_environment: bool,
    /// Where it works; where this process does unless given.
    pub cwd: Option<PathBuf>,
    /// How long the program may take to tell its version first; it is not asked if there is no time.
    pub version_within: Option<Duration>,
}

impl Launch {
    /// Gives a command its environment and working directory.
    pub(crate) fn surroundings(&self, command: &mut Command) {
        if self.clear_environment {
            command.env_clear();
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
    }
}

impl ClaudeAgentOptions {
    /// Returns how a CLI is started with these options. It depends on nothing else.
    ///
    /// Every value is bound to its flag (`--flag=value`), so that none can be taken for a flag itself.
    pub fn launch(&self, program: impl AsRef<Path>) -> Launch {
        Launch {
            program: program.as_ref().to_owned(),
            arguments: self.arguments(),
            environment: self.environment(),
            clear_environment: self.clear_environment,
            cwd: self.cwd.clone(),
            version_within: self.check_version.then_some(self.initialize_timeout),
        }
    }

    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut line = Line::default();
        line.flag("print", true);
        line.value("output-format", Some("stream-json"));
        line.value("input-format", Some("stream-json"));
        line.flag("verbose", true);

        line.value("resume", self.resume.as_ref());
        line.flag("continue", self.continue_conversation);
        line.flag("fork-session", self.fork_session);
        line.value("session-id", self.session_id.as_ref());
        line.value("name", self.session_name.as_ref());
        line.value("resume-session-at", self.resume_session_at.as_ref());
        line.value("resume-drops-turn", self.resume_drops_turn.as_ref());
        line.flag("no-session-persistence", self.no_session_persistence);

        line.value("model", self.model.as_ref());
        line.value("fallback-model", self.fallback_model.as_ref());
        line.value("effort", self.effort.as_ref().map(|effort| effort.as_str()));
        match &self.thinking {
            Some(Thinking::Adaptive) => line.value("thinking", Some("adaptive")),
            Some(Thinking::Disabled) => line.value("thinking", Some("disabled")),
            Some(Thinking::Tokens(tokens)) => line.value("max-thinking-tokens", Some(tokens.to_string())),
            None => {}
        }
        line.list("betas", &self.betas);
        match &self.system_prompt {
            // A long one goes with the first request.
            Some(SystemPrompt::Text(text)) => line.value("system-prompt", short(text)),
            Some(SystemPrompt::File(path)) => line.value("system-prompt-file", Some(path)),
            None => {}
        }
        line.value("append-system-prompt", self.append_system_prompt.as_deref().and_then(short));
        line.value("json-schema", self.output_schema.as_ref().map(Value::to_string));
        line.value("max-turns", self.max_turns.map(|turns| turns.to_string()));
        line.value("max-budget-usd", self.max_budget_usd.map(|dollars| dollars.to_string()));
        line.value("task-budget", self.task_budget.map(|tokens| tokens.to_string()));

        match &self.tools {
            Some(Tools::All) => line.value("tools", Some("default")),
            Some(Tools::None) => line.value("tools", Some("")),
            Some(Tools::Only(names)) => line.value("tools", Some(names.join(","))),
            None => {}
        }
        line.list("allowedTools", &self.allowed_tools);
        line.list("disallowedTools", &self.disallowed_tools);
        line.value("permission-mode", self.permission_mode.as_ref().map(|mode| mode.as_str()));
        line.flag("allow-dangerously-skip-permissions", self.allow_dangerously_skip_permissions);
        line.value("permission-prompt-tool", self.can_use_tool.as_ref().map(|_| "stdio"));

        for directory in &self.add_dirs {
            line.value("add-dir", Some(directory));
        }
        line.value("settings", self.settings.as_ref());
        let names = |sources: &Vec<SettingSource>| {
            sources.iter().map(|source| source.as_str()).collect::<Vec<_>>().join(",")
        };
        line.value("setting-sources", self.setting_sources.as_ref().map(names));
        if !self.mcp_servers.is_empty() {
            let servers: Map<String, Value> =
                self.mcp_servers.iter().map(|(name, server)| (name.clone(), server.to_json(name))).collect();
            line.value("mcp-config", Some(json!({ "mcpServers": servers }).to_string()));
        }
        line.flag("strict-mcp-config", self.strict_mcp_config);
        line.value("agent", self.agent.as_ref());
        for directory in &self.plugins {
            line.value("plugin-dir", Some(directory));
        }

        line.flag("include-partial-messages", self.include_partial_messages);
        line.flag("replay-user-messages", self.replay_user_messages);
        line.flag("include-hook-events", self.include_hook_events);
        line.flag("session-mirror", self.session_mirror);
        for (flag, value) in &self.extra_args {
            match value {
                Some(value) => line.value(flag, Some(value)),
                None => line.flag(flag, true),
            }
        }
        line.arguments
    }

    fn environment(&self) -> BTreeMap<OsString, Option<OsString>> {
        let mut variables: BTreeMap<OsString, Option<OsString>> =
            OF_ANOTHER.iter().map(|name| (OsString::from(name), None)).collect();
        // Frames that only the client sees: they say when nothing is left to do, in the background either.
        variables.insert("CLAUDE_CODE_SDK_READS_SESSION_STATE".into(), Some("1".into()));
        if self.enable_file_checkpointing {
            variables.insert("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING".into(), Some("true".into()));
        }
        variables.extend(self.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
        variables
    }
}

/// Returns a text that an argument has room for.
fn short(text: &str) -> Option<&str> {
    (text.len() <= LONGEST_TEXT).then_some(text)
}

/// Returns a text that no argument has room for.
pub(super) fn long(text: &str) -> Option<&str> {
    (text.len() > LONGEST_TEXT).then_some(text)
}

#[derive(Default)]
struct Line {
    arguments: Vec<OsString>,
}

impl Line {
    fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.arguments.push(format!("--{name}").into());
        }
    }

    fn value(&mut self, name: &str, value: Option<impl AsRef<OsStr>>) {
        if let Some(value) = value {
            let mut argument = OsString::from(format!("--{name}="));
            argument.push(value);
            self.arguments.push(argument);
        }
    }

    fn list(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            self.value(name, Some(values.join(",")));
        }
    }
}

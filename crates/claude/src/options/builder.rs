//! The builder's calls that are more than an assignment.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;

use super::{AgentDefinition, ClaudeAgentOptions, McpServer};
use crate::elicitation::{ElicitationCallback, ElicitationRequest, ElicitationResult};
use crate::error::Result;
use crate::hook::{HookEvent, HookInput, HookMatcher, HookOutput};
use crate::permission::{PermissionCallback, PermissionRequest, PermissionResult};
use crate::stderr_callback::StderrCallback;

/// Builds [`ClaudeAgentOptions`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ClaudeAgentOptionsBuilder {
    pub(super) options: ClaudeAgentOptions,
}

impl ClaudeAgentOptionsBuilder {
    /// Returns the options. Contradictions among them are refused when they are used.
    pub fn build(self) -> ClaudeAgentOptions {
        self.options
    }

    /// Returns the options, unless they contradict each other.
    pub fn try_build(self) -> Result<ClaudeAgentOptions> {
        self.options.check()?;
        Ok(self.options)
    }

    /// Sets a variable of the CLI's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.options.env.insert(name.into(), value.into());
        self
    }

    /// Sets variables of the CLI's environment.
    pub fn envs<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.options.env.extend(variables);
        self
    }

    /// Decides about every tool call that is neither allowed nor denied by a rule or by the mode.
    ///
    /// Questions of the model (`AskUserQuestion`) and plans to approve (`ExitPlanMode`) come the same way. A callback that
    /// panics, or takes longer than [`permission_timeout`](Self::permission_timeout), denies.
    ///
    /// It runs in a task of its own. On a current-thread runtime one that blocks its thread still stops everything, its time
    /// limit too; `tokio::task::spawn_blocking` is for that.
    ///
    /// ```
    /// use rethread_claude::prelude::*;
    ///
    /// let options = ClaudeAgentOptions::builder().can_use_tool(async |request: PermissionRequest| {
    ///     match request.tool_name.as_str() {
    ///         "Read" => PermissionResult::allow(),
    ///         _ => PermissionResult::deny("reading only"),
    ///     }
    /// });
    /// # drop(options.build());
    /// ```
    pub fn can_use_tool<F, A>(mut self, decide: F) -> Self
    where
        F: Fn(PermissionRequest) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionResult> + Send + 'static,
    {
        self.options.can_use_tool = Some(PermissionCallback::new(decide));
        self
    }

    /// Answers what servers of tools want to know from the person. Without it every such request is declined.
    ///
    /// A callback that panics, or takes longer than [`permission_timeout`](Self::permission_timeout), cancels.
    ///
    /// ```
    /// use rethread_claude::prelude::*;
    /// use serde_json::json;
    ///
    /// let options = ClaudeAgentOptions::builder().on_elicitation(async |request: ElicitationRequest| {
    ///     match request.server_name.as_str() {
    ///         "deploy" => ElicitationResult::accept(json!({ "environment": "staging" })),
    ///         _ => ElicitationResult::Decline,
    ///     }
    /// });
    /// # drop(options.build());
    /// ```
    pub fn on_elicitation<F, A>(mut self, answer: F) -> Self
    where
        F: Fn(ElicitationRequest) -> A + Send + Sync + 'static,
        A: Future<Output = ElicitationResult> + Send + 'static,
    {
        self.options.on_elicitation = Some(ElicitationCallback::new(answer));
        self
    }

    /// Has a function called at an event, for the tools that the matcher names, all of them if it is empty.
    ///
    /// A callback that panics, or takes longer than a minute, counts as a failed hook; [`hook_matcher`](Self::hook_matcher)
    /// sets another time.
    ///
    /// ```
    /// use rethread_claude::prelude::*;
    ///
    /// let options = ClaudeAgentOptions::builder().hook(HookEvent::PreToolUse, "Bash", async |input: HookInput| {
    ///     match input.tool_input["command"].as_str() {
    ///         Some(command) if command.contains("rm -rf") => HookOutput::deny("not on my machine"),
    ///         _ => HookOutput::proceed(),
    ///     }
    /// });
    /// # drop(options.build());
    /// ```
    pub fn hook<F, A>(self, event: HookEvent, matcher: &str, call: F) -> Self
    where
        F: Fn(HookInput) -> A + Send + Sync + 'static,
        A: Future<Output = HookOutput> + Send + 'static,
    {
        self.hook_matcher(event, HookMatcher::new(matcher, call))
    }

    /// Adds a hook with settings of its own.
    pub fn hook_matcher(mut self, event: HookEvent, matcher: HookMatcher) -> Self {
        self.options.hooks.add(event, matcher);
        self
    }

    /// Adds a server of tools.
    ///
    /// Claude Code does not wait for it: a prompt that comes at once may be answered before its tools are there.
    /// [`mcp_status`](crate::ClaudeClient::mcp_status) says when they are.
    pub fn mcp_server(mut self, name: impl Into<String>, server: impl Into<McpServer>) -> Self {
        self.options.mcp_servers.insert(name.into(), server.into());
        self
    }

    /// Adds a subagent.
    pub fn subagent(mut self, name: impl Into<String>, agent: AgentDefinition) -> Self {
        self.options.agents.insert(name.into(), agent);
        self
    }

    /// Adds a flag that this crate does not know, without its dashes.
    pub fn extra_flag(mut self, flag: impl Into<String>) -> Self {
        self.options.extra_args.insert(flag.into(), None);
        self
    }

    /// Adds a flag that this crate does not know, without its dashes, and its value.
    pub fn extra_arg(mut self, flag: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.extra_args.insert(flag.into(), Some(value.into()));
        self
    }

    /// Adds a field of the first request to the CLI that this crate does not know, for example `promptSuggestions`.
    pub fn extra_initialize(mut self, field: impl Into<String>, value: Value) -> Self {
        self.options.extra_initialize.insert(field.into(), value);
        self
    }

    /// Has a function called with every line that the CLI complains about.
    pub fn stderr(mut self, line: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.options.stderr = Some(StderrCallback::new(line));
        self
    }

    /// Sets every limit of time on the CLI at once: for it to start, to answer and to end.
    pub fn patience(mut self, limit: Duration) -> Self {
        self.options.initialize_timeout = limit;
        self.options.control_timeout = limit;
        self.options.close_timeout = limit;
        self
    }
}

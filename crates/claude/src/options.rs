//! How a session is to be driven: one value, built once, turned into a command line by one pure function.

mod agent_definition;
mod builder;
mod choices;
mod conflicts;
mod initialize;
mod launch;
mod mcp_server;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::elicitation::ElicitationCallback;
use crate::hook::Hooks;
use crate::permission::PermissionCallback;
use crate::stderr_callback::StderrCallback;

pub use agent_definition::AgentDefinition;
pub use builder::ClaudeAgentOptionsBuilder;
pub use choices::{Effort, PermissionMode, SettingSource, SystemPrompt, Thinking, Tools};
pub use launch::Launch;
pub use mcp_server::McpServer;

pub(crate) use initialize::initialize;

/// Generates the options, and the builder with one call for each.
macro_rules! options {
    ($($(#[doc = $doc:literal])+ $kind:tt $name:ident: $type:ty = $default:expr,)+) => {
        /// How a session is to be driven.
        ///
        /// ```
        /// use rethread_claude::prelude::*;
        ///
        /// let options = ClaudeAgentOptions::builder()
        ///     .resume("0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22")
        ///     .fork_session(true)
        ///     .permission_mode(PermissionMode::AcceptEdits)
        ///     .build();
        /// assert_eq!(options.resume.as_deref(), Some("0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22"));
        /// ```
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct ClaudeAgentOptions {
            $($(#[doc = $doc])+ pub $name: options!(@type $kind $type),)+
        }

        impl Default for ClaudeAgentOptions {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// One call for each option; what is not called keeps Claude Code's own default.
        impl ClaudeAgentOptionsBuilder {
            $(options!(@setter $kind $($doc)+, $name: $type);)+
        }
    };
    (@type optional $type:ty) => { Option<$type> };
    (@type exact $type:ty) => { Option<$type> };
    (@type list $type:ty) => { Vec<$type> };
    (@type $kind:tt $type:ty) => { $type };
    (@setter optional $($doc:literal)+, $name:ident: $type:ty) => {
        $(#[doc = $doc])+
        pub fn $name(mut self, $name: impl Into<$type>) -> Self {
            self.options.$name = Some($name.into());
            self
        }
    };
    (@setter exact $($doc:literal)+, $name:ident: $type:ty) => {
        $(#[doc = $doc])+
        pub fn $name(mut self, $name: $type) -> Self {
            self.options.$name = Some($name);
            self
        }
    };
    (@setter plain $($doc:literal)+, $name:ident: $type:ty) => {
        $(#[doc = $doc])+
        pub fn $name(mut self, $name: $type) -> Self {
            self.options.$name = $name;
            self
        }
    };
    (@setter list $($doc:literal)+, $name:ident: $type:ty) => {
        $(#[doc = $doc])+
        pub fn $name(mut self, $name: impl IntoIterator<Item = impl Into<$type>>) -> Self {
            self.options.$name = $name.into_iter().map(Into::into).collect();
            self
        }
    };
    // The builder has a call of its own for it.
    (@setter by_hand $($doc:literal)+, $name:ident: $type:ty) => {};
}

options! {
    /// Resumes a session, by its id or its name.
    optional resume: String = None,
    /// Continues the newest session of the working directory.
    plain continue_conversation: bool = false,
    /// Goes on in a new session that begins as a copy; with `resume` or `continue_conversation`.
    plain fork_session: bool = false,
    /// The UUID that the new session gets.
    optional session_id: String = None,
    /// A name for people, shown wherever sessions are listed.
    optional session_name: String = None,
    /// Resumes at this message, by its UUID, and leaves what came after it behind; with `resume`.
    optional resume_session_at: String = None,
    /// Refuses to leave behind anything but the turn of this user message; with `resume_session_at`.
    optional resume_drops_turn: String = None,
    /// Keeps the session only in memory: it can never be resumed.
    plain no_session_persistence: bool = false,
    /// Has Claude Code keep copies of the files that it edits, for [`rewind_files`](crate::ClaudeClient::rewind_files).
    plain enable_file_checkpointing: bool = false,

    /// The model, by alias or full name.
    optional model: String = None,
    /// The model to use when the first one is overloaded.
    optional fallback_model: String = None,
    /// How hard the model tries.
    exact effort: Effort = None,
    /// How the model thinks before it answers.
    exact thinking: Thinking = None,
    /// Beta features of the API.
    list betas: String = Vec::new(),
    /// What the model is told about its task; Claude Code's own prompt unless given.
    optional system_prompt: SystemPrompt = None,
    /// What is added to Claude Code's own prompt.
    optional append_system_prompt: String = None,
    /// The schema that the answer has to fit, as JSON Schema.
    optional output_schema: Value = None,
    /// How many times the model may be asked before the turn ends.
    exact max_turns: u32 = None,
    /// What the session may cost, in US dollars.
    exact max_budget_usd: f64 = None,
    /// How many tokens a task may take, as far as the model is told.
    exact task_budget: u64 = None,

    /// The tools that there are at all.
    optional tools: Tools = None,
    /// The tools that need no permission, for example `Bash(git *)`.
    list allowed_tools: String = Vec::new(),
    /// The tools that are always refused.
    list disallowed_tools: String = Vec::new(),
    /// What is allowed without asking.
    exact permission_mode: PermissionMode = None,
    /// Lets `bypassPermissions` be switched on later.
    plain allow_dangerously_skip_permissions: bool = false,
    /// Decides about tool calls.
    by_hand can_use_tool: Option<PermissionCallback> = None,
    /// Answers what servers of tools want to know from the person.
    by_hand on_elicitation: Option<ElicitationCallback> = None,
    /// How long a decision may take before it counts as a denial, and an answer to a server before there is none.
    plain permission_timeout: Duration = Duration::from_secs(24 * 60 * 60),
    /// Called at moments of the agent's life.
    by_hand hooks: Hooks = Hooks::default(),

    /// The working directory.
    optional cwd: PathBuf = None,
    /// Further directories that tools may work in.
    list add_dirs: PathBuf = Vec::new(),
    /// Variables of the CLI's environment. The rest is this process's own.
    by_hand env: BTreeMap<OsString, OsString> = BTreeMap::new(),
    /// Gives the CLI only the variables that are set here.
    plain clear_environment: bool = false,
    /// Further settings: a file, or JSON.
    optional settings: String = None,
    /// The settings files that are read; all of them unless given.
    optional setting_sources: Vec<SettingSource> = None,

    /// Servers of tools, by name.
    by_hand mcp_servers: BTreeMap<String, McpServer> = BTreeMap::new(),
    /// Ignores servers of tools that are configured elsewhere.
    plain strict_mcp_config: bool = false,
    /// Subagents, by name.
    by_hand agents: BTreeMap<String, AgentDefinition> = BTreeMap::new(),
    /// The agent that the session itself is.
    optional agent: String = None,
    /// Directories of plugins.
    list plugins: PathBuf = Vec::new(),
    /// The skills that are offered; all of them unless given.
    optional skills: Vec<String> = None,

    /// Sends messages piece by piece as well, as [`Message::StreamEvent`](crate::Message::StreamEvent).
    plain include_partial_messages: bool = false,
    /// Sends user messages back when they are taken up.
    plain replay_user_messages: bool = false,
    /// Sends what hooks do.
    plain include_hook_events: bool = false,
    /// Sends the texts and thoughts of subagents too.
    plain forward_subagent_text: bool = false,
    /// Sends every line that is written to the transcript, as [`Message::TranscriptMirror`](crate::Message::TranscriptMirror).
    plain session_mirror: bool = false,

    /// Flags that this crate does not know, without their dashes, with or without a value.
    by_hand extra_args: BTreeMap<String, Option<String>> = BTreeMap::new(),
    /// Fields of the first request to the CLI that this crate does not know, for example `promptSuggestions`.
    by_hand extra_initialize: Map<String, Value> = Map::new(),
    /// Called with every line that the CLI complains about.
    by_hand stderr: Option<StderrCallback> = None,
    /// The CLI to run: a path of this process's, or a name that is looked for on `PATH`. Claude Code is looked for unless given.
    optional cli_path: PathBuf = None,
    /// Whether the CLI is asked for its version first, once per program.
    plain check_version: bool = true,
    /// How long the CLI may take to start.
    plain initialize_timeout: Duration = Duration::from_secs(60),
    /// How long it may take to answer a control request.
    plain control_timeout: Duration = Duration::from_secs(60),
    /// How long it may take to end when it is told that no more will come, before it is made to.
    plain close_timeout: Duration = Duration::from_secs(10),
    /// How long a line of the CLI's may be. A longer one is left out and reported.
    plain max_frame_bytes: usize = 32 << 20,
    /// How many bytes of messages may wait to be read before the CLI has to wait as well.
    plain max_waiting_bytes: usize = 4 << 20,
}

impl ClaudeAgentOptions {
    /// Begins to build options.
    pub fn builder() -> ClaudeAgentOptionsBuilder {
        ClaudeAgentOptionsBuilder::default()
    }
}

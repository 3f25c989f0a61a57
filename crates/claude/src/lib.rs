//! Drives the Claude Code CLI: start, resume, fork and steer its sessions, answer its permission requests, hook into its
//! tools.
//!
//! ```no_run
//! use rethread_claude::prelude::*;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut answer = query("What does this project do?", ClaudeAgentOptions::default()).await?;
//!     while let Some(message) = answer.next_message().await {
//!         if let Message::Assistant(message) = message? {
//!             println!("{}", message.text());
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [`query`] asks one thing. A [`ClaudeClient`] holds a conversation: [`send_message`](ClaudeClient::send_message) returns
//! the answer to a prompt as a stream, and meanwhile the turn can be [interrupted](ClaudeClient::interrupt), the model
//! changed, files [rewound](ClaudeClient::rewind_files). [`ClaudeAgentOptions`] say how: which session, which tools, who
//! decides about them.
//!
//! Nothing here prints, and only [`find_cli`] reads the environment. The CLI runs under a [`guard`] and never outlives its
//! host.
#![warn(missing_docs)]

mod aborted;
mod client;
mod elicitation;
mod error;
mod frame;
pub mod guard;
mod hook;
mod in_process;
mod lenient;
mod lines;
mod locate;
mod mend;
mod message;
mod options;
mod permission;
pub mod prelude;
mod prompt;
mod query;
#[cfg(feature = "sessions")]
pub mod sessions;
mod stderr_callback;
pub mod transport;
mod version;

pub use client::{ClaudeClient, ContextUsage, Interrupted, MessageStream, ResponseStream, RewindResult};
pub use elicitation::{ElicitationCallback, ElicitationRequest, ElicitationResult};
pub use error::{Error, Result};
pub use frame::{Frame, FrameKind};
pub use hook::{HookEvent, HookInput, HookMatcher, HookOutput, Hooks};
pub use in_process::{InProcessServer, ToolOutput, ToolServer};
pub use locate::find_cli;
pub use message::{
    ApiMessage, AssistantMessage, CommandLifecycle, ContentBlock, ErrorSubtype, McpServerState, Message,
    PermissionDenial, RateLimitEvent, ResultDetails, ResultMessage, StreamEvent, SystemMessage, TaskFrame,
    ToolProgress, ToolResultContent, TranscriptMirror, Usage, UserContent, UserMessage,
};
pub use options::{
    AgentDefinition, ClaudeAgentOptions, ClaudeAgentOptionsBuilder, Effort, Launch, McpServer,
    PermissionMode, SettingSource, SystemPrompt, Thinking, Tools,
};
pub use permission::{
    PermissionCallback, PermissionRequest, PermissionResult, PermissionRule, PermissionUpdate,
};
pub use prompt::Prompt;
pub use query::{QueryStream, query, query_with};
pub use stderr_callback::StderrCallback;

// Their types are in this crate's own: a server of the one, what a tool takes of the other.
pub use {rmcp, schemars};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/sdk.md")]
struct DrivingClaudeCode;

//! What a program that drives sessions uses: `use rethread_claude::prelude::*;`.

pub use crate::client::{ClaudeClient, MessageStream, ResponseStream, RewindResult};
pub use crate::elicitation::{ElicitationRequest, ElicitationResult};
pub use crate::error::Error;
pub use crate::hook::{HookEvent, HookInput, HookMatcher, HookOutput};
pub use crate::in_process::{ToolOutput, ToolServer};
pub use crate::message::{
    AssistantMessage, ContentBlock, ErrorSubtype, Message, ResultMessage, StreamEvent, SystemMessage,
    UserMessage,
};
pub use crate::options::{
    AgentDefinition, ClaudeAgentOptions, Effort, McpServer, PermissionMode, SettingSource, Thinking, Tools,
};
pub use crate::permission::{PermissionRequest, PermissionResult, PermissionUpdate};
pub use crate::prompt::Prompt;
pub use crate::query::{QueryStream, query, query_with};

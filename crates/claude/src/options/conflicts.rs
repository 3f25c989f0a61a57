//! Options that contradict each other.

use super::launch::LONGEST_ARGUMENT;
use super::{ClaudeAgentOptions, PermissionMode};
use crate::error::{Error, Result};

impl ClaudeAgentOptions {
    /// Refuses options that contradict each other, or that the CLI would not take.
    pub(crate) fn check(&self) -> Result<()> {
        let resumes = self.resume.is_some() || self.continue_conversation;
        let is_empty = |text: &Option<String>| text.as_ref().is_some_and(String::is_empty);
        let wrong: &[(bool, &'static str, &'static str)] = &[
            (self.fork_session && !resumes, "fork_session", "needs `resume` or `continue_conversation`"),
            (
                self.resume.is_some() && self.continue_conversation,
                "resume",
                "contradicts `continue_conversation`",
            ),
            (is_empty(&self.resume), "resume", "is empty"),
            (is_empty(&self.session_name), "session_name", "is empty"),
            (
                self.session_id.is_some() && resumes && !self.fork_session,
                "session_id",
                "needs `fork_session` when a session is resumed",
            ),
            (
                self.session_id.as_ref().is_some_and(|id| uuid::Uuid::try_parse(id).is_err()),
                "session_id",
                "is no UUID",
            ),
            (
                self.resume_session_at.is_some() && self.resume.is_none(),
                "resume_session_at",
                "needs `resume`",
            ),
            (
                self.resume_drops_turn.is_some() && self.resume_session_at.is_none(),
                "resume_drops_turn",
                "needs `resume_session_at`",
            ),
            (
                self.no_session_persistence && self.enable_file_checkpointing,
                "enable_file_checkpointing",
                "contradicts `no_session_persistence`",
            ),
            (
                self.fallback_model.is_some() && self.fallback_model == self.model,
                "fallback_model",
                "is the model itself",
            ),
            (
                self.system_prompt.is_some() && self.append_system_prompt.is_some(),
                "append_system_prompt",
                "contradicts `system_prompt`",
            ),
            (
                self.permission_mode == Some(PermissionMode::BypassPermissions)
                    && self.can_use_tool.is_some(),
                "can_use_tool",
                "is never asked with `bypassPermissions`",
            ),
            (self.max_turns == Some(0), "max_turns", "is zero"),
            (self.max_frame_bytes == 0, "max_frame_bytes", "is zero"),
            (self.max_waiting_bytes == 0, "max_waiting_bytes", "is zero"),
            (self.extra_args.keys().any(|flag| !is_flag(flag)), "extra_args", "holds what is no flag"),
        ];
        if let Some(&(_, option, problem)) = wrong.iter().find(|(holds, ..)| *holds) {
            return Err(Error::Contradiction { option, problem });
        }
        let arguments = self.arguments();
        match arguments.iter().find(|argument| argument.len() > LONGEST_ARGUMENT) {
            Some(argument) => {
                let argument = argument.to_string_lossy();
                let flag = argument.split('=').next().unwrap_or_default().to_owned();
                Err(Error::ArgumentTooLong { flag, limit: LONGEST_ARGUMENT })
            }
            None => Ok(()),
        }
    }
}

/// Whether a text is a flag's name without its dashes, and nothing that could carry a second flag.
fn is_flag(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_part)
}

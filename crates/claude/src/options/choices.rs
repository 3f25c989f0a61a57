//! Options that are a choice among a few.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is allowed without asking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum PermissionMode {
    /// Asks about everything that is not harmless.
    Default,
    /// Edits files without asking.
    AcceptEdits,
    /// Only reads, and ends in a plan.
    Plan,
    /// Asks nobody about anything.
    BypassPermissions,
    /// Denies whatever would be asked about.
    DontAsk,
    /// Has a model decide.
    Auto,
    /// One that this crate does not know.
    Other(String),
}

impl PermissionMode {
    /// Returns the mode as Claude Code names it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
            Self::DontAsk => "dontAsk",
            Self::Auto => "auto",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for PermissionMode {
    fn from(name: String) -> Self {
        match name.as_str() {
            "default" => Self::Default,
            "acceptEdits" => Self::AcceptEdits,
            "plan" => Self::Plan,
            "bypassPermissions" => Self::BypassPermissions,
            "dontAsk" => Self::DontAsk,
            "auto" => Self::Auto,
            _ => Self::Other(name),
        }
    }
}

impl From<PermissionMode> for String {
    fn from(mode: PermissionMode) -> Self {
        mode.as_str().to_owned()
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How hard the model tries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// Quick and cheap.
    Low,
    /// In between.
    Medium,
    /// Thorough.
    High,
    /// More than thorough.
    ExtraHigh,
    /// All it can do.
    Max,
    /// One that this crate does not know.
    Other(String),
}

impl Effort {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::ExtraHigh => "xhigh",
            Self::Max => "max",
            Self::Other(name) => name,
        }
    }
}

/// How the model thinks before it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thinking {
    /// As much as it sees fit.
    Adaptive,
    /// Up to that many tokens.
    Tokens(u32),
    /// Not at all.
    Disabled,
}

/// A settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingSource {
    /// The person's own.
    User,
    /// The project's, shared by all who work on it.
    Project,
    /// The person's own for this project.
    Local,
}

impl SettingSource {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// What the model is told about its task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// This text, and nothing else.
    Text(String),
    /// What a file says, and nothing else.
    File(std::path::PathBuf),
}

impl<T: Into<String>> From<T> for SystemPrompt {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// The tools that there are at all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tools {
    /// All of Claude Code's own.
    All,
    /// None of Claude Code's own; those of servers stay.
    None,
    /// These of Claude Code's own.
    Only(Vec<String>),
}

impl<T: Into<String>, const N: usize> From<[T; N]> for Tools {
    fn from(names: [T; N]) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

//! The moments at which hooks are called.

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A moment of the agent's life. Not every version of Claude Code has all of them.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum HookEvent {
            $($(#[doc = $doc])+ $name,)+
            /// One that this crate does not know.
            Other(String),
        }

        impl HookEvent {
            /// Returns the event as Claude Code names it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Other(name) => name,
                }
            }
        }

        impl From<&str> for HookEvent {
            fn from(name: &str) -> Self {
                match name {
                    $(stringify!($name) => Self::$name,)+
                    _ => Self::Other(name.to_owned()),
                }
            }
        }
    };
}

events! {
    /// Before a tool is run, and before anybody is asked about it.
    PreToolUse,
    /// After a tool was run.
    PostToolUse,
    /// After a tool failed.
    PostToolUseFailure,
    /// After all the tools of one message were run.
    PostToolBatch,
    /// When somebody is about to be asked about a tool.
    PermissionRequest,
    /// When a model has denied a tool, in the mode in which one decides.
    PermissionDenied,
    /// When a prompt is taken up.
    UserPromptSubmit,
    /// When a command in a prompt is replaced by what it stands for.
    UserPromptExpansion,
    /// When the agent is done with a turn.
    Stop,
    /// When a turn ends because the API failed.
    StopFailure,
    /// When a subagent begins.
    SubagentStart,
    /// When a subagent is done.
    SubagentStop,
    /// Before the conversation is compacted.
    PreCompact,
    /// After the conversation was compacted.
    PostCompact,
    /// Before another model answers.
    PreModelSwitch,
    /// After another model was chosen.
    PostModelSwitch,
    /// When there is something to tell the person.
    Notification,
    /// When a text is about to be shown.
    MessageDisplay,
    /// When a session begins. The CLI calls hooks of a host only when one begins anew after it was compacted, and those from
    /// its settings always.
    SessionStart,
    /// When a session ends. The CLI does not call hooks of a host at this moment; those from its settings it does.
    SessionEnd,
    /// When a project is set up.
    Setup,
    /// When a task is written down.
    TaskCreated,
    /// When a task is ticked off.
    TaskCompleted,
    /// When another agent of a team has nothing to do.
    TeammateIdle,
    /// When a server of tools wants to know something from the person.
    Elicitation,
    /// When the person has answered a server of tools.
    ElicitationResult,
    /// When settings change.
    ConfigChange,
    /// When instructions of a project are read.
    InstructionsLoaded,
    /// When a worktree is made.
    WorktreeCreate,
    /// When a worktree is removed.
    WorktreeRemove,
    /// When the working directory changes.
    CwdChanged,
    /// When a file changes.
    FileChanged,
    /// When tools may work in a further directory.
    DirectoryAdded,
}

impl HookEvent {
    /// Returns whether it is always about a tool.
    pub(super) fn is_about_a_tool(&self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure | Self::PermissionRequest
        )
    }
}

//! A loop's tools that change files, and who captures what the files were.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::Recorder;
use crate::id::EntryId;

/// A tool call that may change files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// The call's own id.
    pub id: String,
    /// The user message in whose turn it runs.
    pub message: Option<EntryId>,
    /// The paths that it names; none for a shell, which may change anything.
    pub paths: Vec<PathBuf>,
}

impl Tool {
    /// Returns a call that names no path.
    pub fn call(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Says in which turn it runs.
    pub fn of(mut self, message: EntryId) -> Self {
        self.message = Some(message);
        self
    }

    /// Adds a path that it is about to change.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }
}

/// Captures files around a loop's tools. `rethread-checkpoint` has one.
#[async_trait]
pub trait CaptureFiles: fmt::Debug + Send + Sync {
    /// Records what files are, before the tool runs. What it records is durable when it returns.
    async fn before(&self, tool: &Tool) -> Result<EntryId, CaptureError>;

    /// Records what the tool left behind.
    async fn after(&self, tool: &Tool) -> Result<EntryId, CaptureError>;
}

/// Why files could not be captured.
pub type CaptureError = Box<dyn std::error::Error + Send + Sync>;

/// What became of a capture. The loop goes on in any case.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Captured {
    /// The checkpoint, by which files can be rewound.
    pub checkpoint: Option<EntryId>,
    /// Why there is none, though there should be one.
    pub problem: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Recorder {
    /// Captures files around the loop's tools from now on.
    pub fn with_checkpoints(mut self, capture: Arc<dyn CaptureFiles>) -> Self {
        self.capture = Some(capture);
        self
    }

    /// Records what files are before a tool changes them; the tool may run when this returns. Does nothing if the
    /// recorder has no [checkpoints](Recorder::with_checkpoints).
    pub async fn before_tool(&self, tool: &Tool) -> Captured {
        match &self.capture {
            Some(capture) => Captured::of(capture.before(tool).await),
            None => Captured::default(),
        }
    }

    /// Records what a tool left behind, so that later edits by others are told apart.
    pub async fn after_tool(&self, tool: &Tool) -> Captured {
        match &self.capture {
            Some(capture) => Captured::of(capture.after(tool).await),
            None => Captured::default(),
        }
    }
}

impl Captured {
    fn of(captured: Result<EntryId, CaptureError>) -> Self {
        match captured {
            Ok(checkpoint) => Self { checkpoint: Some(checkpoint), problem: None },
            Err(error) => Self { checkpoint: None, problem: Some(error.into()) },
        }
    }
}

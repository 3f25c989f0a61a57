//! Checkpoints around the tool calls of a driven session, so that what a shell did can be taken back too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rethread_checkpoint::{Checkpoint, Checkpointer, Moment, Window};
use rethread_store::{EntryId, Session};
use serde_json::Value;
use tracing::Instrument as _;

use crate::TRACES;
use crate::defect::Defect;
use crate::keeper::Keeper;

/// Tools that change no file; all others may.
const HARMLESS: [&str; 17] = [
    "Read",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    "WebSearch",
    "TodoWrite",
    "TodoRead",
    "AskUserQuestion",
    "ExitPlanMode",
    "EnterPlanMode",
    "ToolSearch",
    "BashOutput",
    "TaskList",
    "TaskGet",
    "Skill",
    "NotebookRead",
];

/// The checkpoints of one driven session.
#[derive(Debug)]
pub(crate) struct Captures {
    checkpointer: Arc<Checkpointer>,
    keeper: std::sync::Weak<Keeper>,
    session: String,
    /// Calls that run, be it in the background.
    open: Mutex<HashMap<String, Call>>,
    /// Calls that are over, and what they left behind is not recorded yet.
    over: Mutex<Vec<(String, Call)>>,
    /// Held while that is recorded.
    recording: tokio::sync::Mutex<()>,
}

/// A call that runs.
#[derive(Clone, Debug)]
struct Call {
    /// What it names.
    path: Option<PathBuf>,
    /// The prompt that it was made for.
    message: Option<String>,
    /// The end of a turn is not its end: it is a subagent's, or goes on in the background.
    outlives_turns: bool,
}

/// When a capture is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Before,
    After,
}

impl Captures {
    /// Opens a session's checkpoints beneath its working directory.
    pub(crate) async fn open(
        keeper: &Arc<Keeper>,
        companion: &Session,
        root: &Path,
    ) -> rethread_checkpoint::Result<Self> {
        let mut settings = rethread_checkpoint::Settings::default();
        settings.cache = Some(keeper.settings.cache.join("trees"));
        settings.never = [Some(keeper.settings.home.clone()), keeper.settings.claude_folder.clone()]
            .into_iter()
            .flatten()
            .collect();
        settings.formerly = rethread_checkpoint::noted_folders(&companion.metadata().await?);
        let (companion, root) = (companion.clone(), root.to_owned());
        let opened = blocking(async move { Checkpointer::open(&companion, &root, settings).await }).await?;
        let session = opened_session(&opened);
        Ok(Self {
            checkpointer: Arc::new(opened),
            keeper: Arc::downgrade(keeper),
            session,
            open: Mutex::default(),
            over: Mutex::default(),
            recording: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn checkpointer(&self) -> &Arc<Checkpointer> {
        &self.checkpointer
    }

    /// Records what is there before a tool runs, or just before it is allowed to.
    pub(crate) async fn before(
        &self,
        message: Option<&str>,
        agent: Option<&str>,
        tool: &str,
        call: &str,
        input: &Value,
    ) {
        if HARMLESS.contains(&tool) {
            return;
        }
        // What they did is not the doing of somebody else, however soon the next call comes.
        self.after_those_over().await;
        let path = named(tool, input);
        let is_alone = {
            let mut open = self.calls();
            let (message, outlives_turns) = (message.map(str::to_owned), agent.is_some());
            open.insert(call.to_owned(), Call { path: path.clone(), message, outlives_turns });
            open.len() == 1
        };
        // What others change while this call waits is not its doing, unless another call runs already.
        let window = if is_alone { Window::Idle } else { Window::Tools };
        let span = tracing::info_span!(target: TRACES, "capture_before", session = self.session, tool);
        self.capture(When::Before, message, call, path, window).instrument(span).await;
    }

    /// Records what a tool left behind.
    pub(crate) async fn after(&self, message: Option<&str>, call: &str) {
        let closed = self.calls().remove(call);
        self.left_behind(message, call, closed).await;
    }

    /// Forgets a call that does not run: nobody allowed it, or nobody has yet. What changes meanwhile is not its doing.
    pub(crate) fn forget(&self, call: &str) {
        if !Defect::KeepDeniedCallsOpen.is_on() {
            self.calls().remove(call);
        }
    }

    /// Records what a tool left behind so far. Its window stays open: what changes until its end is its doing.
    pub(crate) async fn during(&self, message: Option<&str>, call: &str) {
        let open = self.calls().get_mut(call).map(|open| {
            open.outlives_turns = true;
            open.clone()
        });
        self.left_behind(message, call, open).await;
    }

    /// Ends the calls that are over with their turn, though nobody said so: a rule denied them, or they were interrupted.
    /// Returns whether there are any that left something to be recorded.
    pub(crate) fn end_with_turn(&self) -> bool {
        if Defect::KeepDeniedCallsOpen.is_on() {
            return false;
        }
        let mut over = self.over();
        over.extend(self.calls().extract_if(|_, call| !call.outlives_turns));
        !over.is_empty()
    }

    /// Records what calls left behind that are over.
    pub(crate) async fn after_those_over(&self) {
        let _recording = self.recording.lock().await;
        let over = std::mem::take(&mut *self.over());
        for (call, closed) in over {
            self.left_behind(None, &call, Some(closed)).await;
        }
    }

    /// Records what all tools left behind that still ran, in the background or not.
    pub(crate) async fn after_all(&self, message: Option<&str>) {
        let all = std::mem::take(&mut *self.calls());
        for (call, closed) in all {
            self.left_behind(message, &call, Some(closed)).await;
        }
    }

    /// What comes between turns belongs to the prompt that the call was made for.
    async fn left_behind(&self, message: Option<&str>, call: &str, made: Option<Call>) {
        let Some(Call { path, message: made_for, .. }) = made else { return };
        let message = message.or(made_for.as_deref());
        let span = tracing::info_span!(target: TRACES, "capture_after", session = self.session);
        self.capture(When::After, message, call, path, Window::Tools).instrument(span).await;
    }

    fn over(&self) -> MutexGuard<'_, Vec<(String, Call)>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Call>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn capture(
        &self,
        when: When,
        message: Option<&str>,
        call: &str,
        path: Option<PathBuf>,
        window: Window,
    ) {
        let moment = || Moment {
            id: None,
            message: message.and_then(|it| it.parse().ok()),
            tool_use: vec![call.to_owned()],
        };
        let (own, first, second) = (Arc::clone(&self.checkpointer), moment(), moment());
        let work = async move {
            let named = match (&path, when) {
                (Some(path), When::After) => Some(own.after(first, &[path]).await?),
                _ => None,
            };
            // Before a call that runs alone, whatever changed since the last one was somebody else's doing.
            let idle = Moment { tool_use: Vec::new(), ..second.clone() };
            let tree = own.tree(if window == Window::Idle { idle } else { second.clone() }, window).await?;
            let named = match (path, when) {
                (Some(path), When::Before) => Some(own.before(second, &[path]).await?),
                _ => named,
            };
            Ok::<_, rethread_checkpoint::Error>((tree, named))
        };
        match blocking(work).await {
            Ok((tree, named)) => [Some(tree), named].into_iter().flatten().for_each(|it| self.tell(&it)),
            // Unknown, not unchanged: every plan across it says that it may not be complete.
            Err(error) => {
                tracing::warn!(%error, session = self.session, "a capture failed");
                let (own, at, why) = (Arc::clone(&self.checkpointer), moment(), error.to_string());
                let missed = blocking(async move { own.missed(at, why).await }).await;
                if let Err(error) = missed {
                    tracing::error!(%error, session = self.session, "that a capture failed cannot be written down");
                }
            }
        }
    }

    fn tell(&self, checkpoint: &Checkpoint) {
        if checkpoint.changes.is_empty() {
            return;
        }
        let Some(keeper) = self.keeper.upgrade() else { return };
        let data = serde_json::json!({
            "id": checkpoint.id, "message": checkpoint.message, "tool_use": checkpoint.tool_use,
            "files": checkpoint.changes.len(), "created_at": checkpoint.created_at,
        });
        keeper.hub.publish(&self.session, "checkpoint.created", data);
    }
}

fn opened_session(checkpointer: &Checkpointer) -> String {
    checkpointer.session_id().to_string()
}

/// Returns the path that a tool names.
fn named(tool: &str, input: &Value) -> Option<PathBuf> {
    let is_edit = matches!(tool, "Write" | "Edit" | "MultiEdit" | "NotebookEdit");
    let path = input["file_path"].as_str().or_else(|| input["notebook_path"].as_str());
    path.filter(|_| is_edit).map(PathBuf::from)
}

/// Runs what does its work on the calling thread where that holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let handle = tokio::runtime::Handle::current();
    match tokio::task::spawn_blocking(move || handle.block_on(work)).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Reads an id that a client named.
pub(crate) fn entry_id(text: &str) -> Option<EntryId> {
    text.parse().ok()
}

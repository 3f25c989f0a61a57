//! A session in small: what hangs on its thread, and how many lines its edits added and removed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use memchr::memmem::Finder;
use rethread_transcripts::{Entry, Role, Session, Transcript};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many marks a sketch has at most: more are no sketch.
const MARKS: usize = 16;
/// How many sketches are kept.
const KEPT: usize = 20_000;

/// A session in small.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Sketch {
    /// What hangs on the thread, the oldest first; of long ones every so many.
    pub(crate) marks: Vec<Mark>,
    /// How many messages its conversation has.
    pub(crate) messages: u64,
    /// How many prompts it has.
    pub(crate) prompts: u64,
    /// After how many of them files were edited.
    pub(crate) changes: u64,
    /// How many lines its edits added.
    pub(crate) insertions: u64,
    /// How many lines its edits removed.
    pub(crate) deletions: u64,
}

/// Something on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mark {
    /// A prompt.
    Prompt,
    /// Files were edited in its turn.
    Change,
}

/// What an edit did, as Claude Code writes it beside the tool's result.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow)]
    tool_use_result: Option<Edit<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Edit<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    content: Option<serde_json::Value>,
    structured_patch: Vec<Hunk>,
    original_file: IgnoredAny,
}

#[derive(Deserialize)]
struct Hunk {
    lines: Vec<String>,
}

static PATCH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"structuredPatch\""));
static INTERRUPTED: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("\"[Request interrupted by user"));

impl Sketch {
    /// Draws the conversation that would be resumed.
    pub(crate) fn of(transcript: &Transcript) -> rethread_transcripts::Result<Self> {
        let (mut sketch, active) = (Self::default(), transcript.active());
        let mut reader = transcript.read(&active);
        while let Some(entry) = reader.next() {
            sketch.take(&entry?);
        }
        (sketch.marks, sketch.messages) = (thinned(&sketch.marks), active.message_count());
        Ok(sketch)
    }

    fn take(&mut self, entry: &Entry<'_>) {
        if !entry.is_message() || entry.is_synthetic() || entry.is_summary() || entry.role() != Role::User {
            return;
        }
        if entry.is_tool_result() {
            self.take_edit(entry.raw());
        } else if INTERRUPTED.find(entry.raw()).is_none() {
            self.prompts += 1;
            self.marks.push(Mark::Prompt);
        }
    }

    fn take_edit(&mut self, raw: &[u8]) {
        if PATCH.find(raw).is_none() {
            return;
        }
        let line: Line<'_> = serde_json::from_slice(raw).unwrap_or_default();
        let Some(edit) = line.tool_use_result else { return };
        let lines = || edit.structured_patch.iter().flat_map(|hunk| &hunk.lines);
        let begin = |sign: char| lines().filter(|line| line.starts_with(sign)).count() as u64;
        let (mut added, removed) = (begin('+'), begin('-'));
        // A file that was not there before has no patch.
        if let (Some("create"), Some(content)) = (edit.kind, edit.content.as_ref().and_then(|it| it.as_str()))
        {
            added += content.lines().count() as u64;
        }
        if added + removed == 0 {
            return;
        }
        self.insertions += added;
        self.deletions += removed;
        if self.marks.last() != Some(&Mark::Change) {
            self.changes += 1;
            self.marks.push(Mark::Change);
        }
    }
}

/// Keeps the first and the last, and as many between them as there is room for.
fn thinned(marks: &[Mark]) -> Vec<Mark> {
    if marks.len() <= MARKS {
        return marks.to_vec();
    }
    (0..MARKS).map(|at| marks[at * (marks.len() - 1) / (MARKS - 1)]).collect()
}

/// Sketches that were drawn, by their files.
#[derive(Debug, Default)]
pub(crate) struct Sketches {
    drawn: Mutex<HashMap<PathBuf, Drawn>>,
    /// One is drawn at a time: a list asks for many, and nobody waits for them.
    drawing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Drawn {
    /// What the file was like.
    size: u64,
    updated_at: Timestamp,
    sketch: Arc<Sketch>,
}

impl Sketches {
    /// Returns a session's sketch, drawn anew if its file has changed; `None` if it cannot be read.
    pub(crate) async fn get(
        &self,
        session: &Arc<Session>,
        open: impl FnOnce() -> Option<Transcript> + Send + 'static,
    ) -> Option<Arc<Sketch>> {
        if let Some(sketch) = self.known(session) {
            return Some(sketch);
        }
        let _one = self.drawing.lock().await;
        if let Some(sketch) = self.known(session) {
            return Some(sketch);
        }
        let drawn = tokio::task::spawn_blocking(move || Sketch::of(&open()?).ok());
        let sketch = Arc::new(drawn.await.ok()??);
        let mut kept = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        let (size, updated_at) = (session.size, session.updated_at);
        kept.insert(session.path.clone(), Drawn { size, updated_at, sketch: Arc::clone(&sketch) });
        Some(sketch)
    }

    fn known(&self, session: &Session) -> Option<Arc<Sketch>> {
        let kept = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = kept.get(&session.path)?;
        let fits = (drawn.size, drawn.updated_at) == (session.size, session.updated_at);
        fits.then(|| Arc::clone(&drawn.sketch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_thread_keeps_its_ends() {
        let mut marks = vec![Mark::Prompt; 99];
        marks.push(Mark::Change);
        let thinned = thinned(&marks);
        assert_eq!((thinned.len(), thinned[0], thinned[MARKS - 1]), (MARKS, Mark::Prompt, Mark::Change));
        assert_eq!(super::thinned(&marks[..3]), marks[..3]);
    }
}

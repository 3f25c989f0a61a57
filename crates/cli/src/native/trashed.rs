//! Claude Code's own sessions in the trash, as a listing shows them.

use std::path::Path;

use rethread_transcripts::{ClaudeFolder, Transcript, Trashed};
use serde::Serialize;

use crate::text::one_line;

/// How long a title is kept.
const TITLE: usize = 200;

/// A session in the trash.
#[derive(Debug, Serialize)]
pub(crate) struct TrashedSession {
    #[serde(flatten)]
    pub(crate) trashed: Trashed,
    /// What it began with.
    pub(crate) first_prompt: Option<String>,
}

impl TrashedSession {
    /// Returns everything in a trash, the newest first.
    pub(crate) fn all(trash: &Path) -> Vec<Self> {
        let of = |trashed: Trashed| {
            let transcript = Transcript::open(&trashed.transcript);
            // Its first entry may be something that the program put in.
            let first = transcript.and_then(|it| it.messages(&it.active().messages().first(1)));
            let first_prompt = first.ok().and_then(|it| it.first().map(|said| one_line(&said.text(), TITLE)));
            Self { trashed, first_prompt }
        };
        ClaudeFolder::trashed(trash).into_iter().map(of).collect()
    }

    /// Returns whether a text, in small letters, is in what is known of it.
    pub(crate) fn says(&self, text: &str) -> bool {
        let prompt = self.first_prompt.as_deref().unwrap_or_default();
        prompt.to_lowercase().contains(text) || self.trashed.session_id.contains(text)
    }
}

//! What Claude Code itself kept of files before each prompt: shown, and never touched.
//!
//! A transcript can name any path at all. So what is read lies beneath the session's own directory, or in the folder that
//! Claude Code keeps for this session, and no link leads away from either.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rethread_checkpoint::{File, Present, State, unified_diff};
use rethread_store::BlobId;
use rethread_transcripts::{KeptFile, NativeCheckpoint};
use serde::Serialize;
use utoipa::ToSchema;

use super::diff::{DiffPage, FileDiff, KeptBy, Room};
use crate::catalogue::Known;
use crate::claude_files::open_within;
use crate::keeper::Keeper;
use crate::problem::Problem;

/// Larger files are not compared.
const LARGE: u64 = 8 << 20;

/// What Claude Code kept before one prompt. It can be looked at; only Claude Code's own `/rewind` takes files back to it.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClaudeCheckpoint {
    /// The user message that it was kept before.
    message: String,
    created_at: Option<String>,
    /// What was changed before the next prompt, or by now, relative to the session's directory.
    files: Vec<ClaudeFile>,
}

/// A file that Claude Code kept.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClaudeFile {
    path: String,
    /// Whether there was such a file.
    existed: bool,
}

/// Which part of a session is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// From a prompt to the next one, or to now.
    Turn,
    /// From a prompt to now.
    Since,
}

/// The file history of one session.
pub(super) struct FileHistory {
    /// The session's directory.
    root: PathBuf,
    /// Claude Code's folder, and the one in it that holds what was kept of this session.
    claude: PathBuf,
    kept: PathBuf,
    checkpoints: Vec<NativeCheckpoint>,
}

impl FileHistory {
    /// Reads what Claude Code says that it kept; nothing of a session that is not its own.
    pub(super) async fn of(keeper: &Arc<Keeper>, known: &Known) -> Result<Option<Self>, Problem> {
        let Some((session, root)) = known.native.clone().zip(known.card.cwd.clone()) else { return Ok(None) };
        let own = Arc::clone(keeper);
        let read = tokio::task::spawn_blocking(move || {
            let Some(native) = &own.native else { return Ok(None) };
            let id = &session.session_id;
            own.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
            // A copy in another folder is another session of the same name.
            if native.folder.find(id)? != session.path {
                return Ok(None);
            }
            let claude = native.folder.path().to_owned();
            let kept = claude.join("file-history").join(id);
            let mut checkpoints = native.folder.checkpoints(id)?;
            checkpoints.retain(|checkpoint| !checkpoint.files.is_empty());
            Ok(Some(Self { root: root.into(), claude, kept, checkpoints }))
        });
        read.await.map_err(|error| Problem::failed(&error))?
    }

    /// Returns what there is to look at, the oldest first.
    pub(super) fn list(&self) -> Vec<ClaudeCheckpoint> {
        let all = self.checkpoints.iter().enumerate().map(|(at, checkpoint)| {
            let file = |file: &KeptFile| {
                let path = self.within(&file.path)?;
                self.became(&path, file, self.checkpoints.get(at + 1))?;
                Some(ClaudeFile { path, existed: file.backup.is_some() })
            };
            ClaudeCheckpoint {
                message: checkpoint.message_uuid.clone(),
                created_at: checkpoint.timestamp.clone(),
                files: checkpoint.files.iter().filter_map(file).collect(),
            }
        });
        all.filter(|checkpoint| !checkpoint.files.is_empty()).collect()
    }

    /// Compares what was kept before a prompt with what was found later; `None` if nothing was kept before it.
    pub(super) fn diff(&self, part: Part, message: &str, room: &mut Room<'_>) -> Option<DiffPage> {
        let at = self.checkpoints.iter().position(|it| it.message_uuid == message)?;
        let (kept, next) = match part {
            Part::Turn => (&self.checkpoints[at..=at], self.checkpoints.get(at + 1)),
            Part::Since => (&self.checkpoints[at..], None),
        };
        let (mut files, mut outside) = (BTreeMap::new(), BTreeSet::new());
        for file in kept.iter().flat_map(|checkpoint| &checkpoint.files) {
            match self.within(&file.path) {
                // The first state that is known is the one before the prompt.
                Some(path) => drop(files.entry(path).or_insert(file)),
                None => drop(outside.insert(&file.path)),
            }
        }
        let mut page = DiffPage::kept_by(KeptBy::ClaudeCode, &self.root);
        page.incomplete.push("Claude Code keeps what its own tools edit, not what a shell changes".into());
        if !outside.is_empty() {
            page.incomplete
                .push(format!("paths outside of the session's directory are left out: {}", outside.len()));
        }
        for (path, file) in files {
            if !room.wants(&path) {
                continue;
            }
            let Some((before, after)) = self.became(&path, file, next) else { continue };
            let Some(is_shown) = room.take(&mut page) else { break };
            let is_known = is_shown && before.state.is_certain() && after.state.is_certain();
            let text = is_known.then(|| unified_diff(&path, before.bytes.as_deref(), after.bytes.as_deref()));
            page.items.push(FileDiff::of_claude(path, &before.state, &after.state, room.fit(text.flatten())));
        }
        Some(page)
    }

    /// Returns what a file was and what it was at the next prompt, or is now; `None` if that is the same.
    fn became(
        &self,
        path: &str,
        file: &KeptFile,
        next: Option<&NativeCheckpoint>,
    ) -> Option<(Content, Content)> {
        let next = next.and_then(|next| next.files.iter().find(|it| it.path == file.path));
        if next.is_some_and(|next| next.backup == file.backup) {
            return None;
        }
        let before = self.kept(file);
        let after = next.map_or_else(|| self.there(path), |next| self.kept(next));
        (!before.state.same(&after.state)).then_some((before, after))
    }

    /// Returns a path as it is called within the session's directory; `None` for any other.
    fn within(&self, path: &Path) -> Option<String> {
        let within = path.strip_prefix(&self.root).ok()?;
        let is_plain = within.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let text = within.to_str().filter(|text| is_plain && !text.is_empty())?;
        Some(text.to_owned())
    }

    fn kept(&self, file: &KeptFile) -> Content {
        match &file.backup {
            None => Content::of(Err(io::ErrorKind::NotFound.into())),
            Some(backup) if backup.parent() == Some(&self.kept) => match open_within(&self.claude, backup) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Content::unknown("Claude Code no longer has it")
                }
                opened => Content::of(opened),
            },
            Some(_) => Content::unknown("it is not where Claude Code keeps files"),
        }
    }

    fn there(&self, path: &str) -> Content {
        Content::of(open_within(&self.root, &self.root.join(path)))
    }
}

/// What a path was, and the content that goes with it.
struct Content {
    state: State,
    bytes: Option<Vec<u8>>,
}

impl Content {
    fn of(opened: io::Result<std::fs::File>) -> Self {
        match opened.and_then(Self::read) {
            Ok(content) => content,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Self { state: State::Absent, bytes: None }
            }
            Err(error) => Self::unknown(error.to_string()),
        }
    }

    fn read(file: std::fs::File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Self::unknown("it is no file"));
        }
        let mut bytes = Vec::new();
        file.take(LARGE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGE {
            return Ok(Self::unknown("it is too large to compare"));
        }
        let (hash, size) = (BlobId::of(&bytes), bytes.len() as u64);
        let state = State::Present(Present::File(File { hash, size, mode: None, names: 1, place: None }));
        Ok(Self { state, bytes: Some(bytes) })
    }

    fn unknown(why: impl Into<String>) -> Self {
        Self { state: State::Unknown { why: why.into() }, bytes: None }
    }
}

//! What a turn, a tool call or a checkpoint did to files.

use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_checkpoint::{Changed, Checkpointer, Span, State as Was};
use rethread_store::EntryId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::checkpoints::{has, open, point, refuse};
use super::file_history::{FileHistory, Part};
use super::sessions::find_fresh;
use crate::capture::{blocking, entry_id};
use crate::extract::{Asked, SessionName};
use crate::keeper::Keeper;
use crate::problem::Problem;

/// How much of one answer may be diffs, and how much of it one file.
const WHOLE: usize = 4 << 20;
const FILE: usize = 1 << 20;
/// How many paths one answer has at most.
const PATHS: usize = 2000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// The user message whose turn it is.
    turn: Option<String>,
    /// A tool call.
    tool: Option<String>,
    /// A checkpoint, by itself.
    checkpoint: Option<String>,
    /// A checkpoint or a user message: everything since then, up to what is on disk now.
    since: Option<String>,
    /// Only this path, relative to the session's directory, and what is in it.
    path: Option<String>,
}

/// What changed.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct DiffPage {
    /// The directory that all paths are relative to; null if nothing was ever captured.
    root: Option<String>,
    /// Who kept what files were; null if nobody did.
    kept_by: Option<KeptBy>,
    pub(super) items: Vec<FileDiff>,
    /// Why this may not be all of it, in words.
    pub(super) incomplete: Vec<String>,
}

/// Who kept what files were.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptBy {
    /// This keeper or another one: files can be taken back.
    Rethread,
    /// Claude Code, for its own `/rewind`: it can be looked at.
    ClaudeCode,
}

/// What happened to one path.
#[derive(Serialize, ToSchema)]
pub(crate) struct FileDiff {
    path: String,
    action: DiffAction,
    /// What it was: kind, size, permissions, hash.
    #[schema(value_type = Object)]
    before: Value,
    /// What it became.
    #[schema(value_type = Object)]
    after: Value,
    /// `named`, `window`, `outside` or `rewind`: who changed it, as far as that can be told. `claude_code`: a tool of
    /// Claude Code's that named it, and whoever changed it since.
    #[schema(value_type = String)]
    source: Value,
    /// Nobody looked right after the change: this is what was found there later.
    assumed: bool,
    insertions: Option<u64>,
    deletions: Option<u64>,
    /// A unified diff; null for what has no lines, or too many to show.
    diff: Option<String>,
}

/// What happened to a path, in one word.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiffAction {
    Created,
    Changed,
    Removed,
    Unknown,
}

/// What a turn, a tool call or a checkpoint changed
#[utoipa::path(get, path = "/sessions/{id}/diff", operation_id = "diff", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71"), DiffQuery), responses((status = 200, body = DiffPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn diff(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
    Asked(query): Asked<DiffQuery>,
) -> Result<Json<DiffPage>, Problem> {
    let mut span = span(&query)?;
    let known = find_fresh(&keeper, &name).await?;
    let checkpointer = open(&keeper, &known).await?;
    let asked = match &span {
        Span::Turn(message) => Some((Part::Turn, message.clone())),
        Span::Since(message) => Some((Part::Since, message.clone())),
        _ => None,
    };
    // What was kept here is more, and tells who did it.
    if let Some((part, message)) = asked
        && !has(checkpointer.as_ref(), &message).await?
        && let Some(history) = FileHistory::of(&keeper, &known).await?
    {
        let path = query.path.clone();
        let compared = tokio::task::spawn_blocking(move || {
            history.diff(part, message.as_str(), &mut Room::new(path.as_deref()))
        });
        if let Some(page) = compared.await.map_err(|error| Problem::failed(&error))? {
            return Ok(Json(page));
        }
    }
    let Some(checkpointer) = checkpointer else { return Ok(Json(DiffPage::default())) };
    if let Span::Since(since) = &mut span {
        *since = point(&keeper, &known, &checkpointer, since.as_str()).await?;
    }
    let page = blocking(async move { page(&checkpointer, &span, query.path.as_deref()).await });
    page.await.map(Json).map_err(refuse)
}

fn span(query: &DiffQuery) -> Result<Span, Problem> {
    let DiffQuery { turn, tool, checkpoint, since, .. } = query;
    let id = |text: &str| entry_id(text).ok_or_else(|| Problem::not_found("checkpoint"));
    let of = |make: fn(EntryId) -> Span, text: &str| id(text).map(make);
    match (turn, tool, checkpoint, since) {
        (Some(turn), None, None, None) => of(Span::Turn, turn),
        (None, Some(tool), None, None) => Ok(Span::Tool(tool.clone())),
        (None, None, Some(checkpoint), None) => of(Span::Checkpoint, checkpoint),
        (None, None, None, Some(since)) => of(Span::Since, since),
        _ => Err(Problem::bad_request("name exactly one of `turn`, `tool`, `checkpoint` and `since`")),
    }
}

async fn page(
    checkpointer: &Checkpointer,
    span: &Span,
    path: Option<&str>,
) -> rethread_checkpoint::Result<DiffPage> {
    let changes = checkpointer.changes(span).await?;
    let mut room = Room::new(path);
    let mut page = DiffPage::kept_by(KeptBy::Rethread, checkpointer.root_path());
    page.incomplete = changes.incomplete;
    for changed in &changes.paths {
        if !room.wants(&changed.path.to_string()) {
            continue;
        }
        let Some(is_shown) = room.take(&mut page) else { break };
        let text = if is_shown { checkpointer.diff_of(changed).await? } else { None };
        page.items.push(FileDiff::of(changed, room.fit(text)));
    }
    Ok(page)
}

impl DiffPage {
    /// Returns a page on which nothing is shown yet.
    pub(super) fn kept_by(whom: KeptBy, root: &Path) -> Self {
        Self { root: Some(root.display().to_string()), kept_by: Some(whom), ..Self::default() }
    }
}

/// What is left of an answer for diffs, and which paths they are wanted of.
pub(super) struct Room<'a> {
    path: Option<&'a str>,
    left: usize,
}

impl<'a> Room<'a> {
    pub(super) fn new(path: Option<&'a str>) -> Self {
        Self { path, left: WHOLE }
    }

    /// Returns whether a path was asked for.
    pub(super) fn wants(&self, own: &str) -> bool {
        self.path.is_none_or(|path| {
            own.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Makes room for one more path; returns whether its diff may be shown too. There is none once the page is full.
    pub(super) fn take(&self, page: &mut DiffPage) -> Option<bool> {
        if page.items.len() == PATHS {
            page.incomplete.push(format!("only the first {PATHS} paths are shown"));
            return None;
        }
        Some(self.left > 0)
    }

    /// Counts what a diff adds and removes, and leaves it out if it is too long.
    pub(super) fn fit(&mut self, text: Option<String>) -> Fitted {
        let counted = text.as_deref().map(count);
        let diff = text.filter(|text| text.len() <= FILE.min(self.left));
        self.left -= diff.as_ref().map_or(0, String::len);
        Fitted { counted, diff }
    }
}

/// A diff as far as there is room for it.
pub(super) struct Fitted {
    counted: Option<(u64, u64)>,
    diff: Option<String>,
}

impl FileDiff {
    fn of(changed: &Changed, fitted: Fitted) -> Self {
        let Changed { path, before, after, source, assumed, .. } = changed;
        let source = serde_json::to_value(source).unwrap_or_default();
        Self { source, assumed: *assumed, ..Self::of_claude(path.to_string(), before, after, fitted) }
    }

    /// Returns what became of a path that Claude Code kept: nobody looked right after it was changed.
    pub(super) fn of_claude(path: String, before: &Was, after: &Was, fitted: Fitted) -> Self {
        let action = match (before, after) {
            (Was::Absent, Was::Present(_)) => DiffAction::Created,
            (Was::Present(_), Was::Absent) => DiffAction::Removed,
            (Was::Present(_), Was::Present(_)) => DiffAction::Changed,
            _ => DiffAction::Unknown,
        };
        let json = |state: &Was| serde_json::to_value(state).unwrap_or_default();
        let (insertions, deletions) = fitted.counted.unzip();
        Self {
            path,
            action,
            before: json(before),
            after: json(after),
            source: "claude_code".into(),
            assumed: true,
            insertions,
            deletions,
            diff: fitted.diff,
        }
    }
}

/// Counts what a diff adds and removes. Its first two lines are names.
fn count(diff: &str) -> (u64, u64) {
    let lines = |sign: char| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count() as u64;
    (lines('+'), lines('-'))
}

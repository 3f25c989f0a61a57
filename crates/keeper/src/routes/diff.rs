//! What a turn, a tool call or a checkpoint did to files.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_checkpoint::{Changed, Checkpointer, Span};
use rethread_store::EntryId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::checkpoints::{open, point, refuse};
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
    items: Vec<FileDiff>,
    /// Why this may not be all of it, in words.
    incomplete: Vec<String>,
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
    /// `named`, `window`, `outside` or `rewind`: who changed it, as far as that can be told.
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
    let Some(checkpointer) = open(&keeper, &known).await? else { return Ok(Json(DiffPage::default())) };
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
    let is_wanted = |changed: &&Changed| {
        let own = changed.path.to_string();
        path.is_none_or(|path| {
            own.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let (mut items, mut incomplete, mut left) = (Vec::new(), changes.incomplete, WHOLE);
    for changed in changes.paths.iter().filter(is_wanted) {
        if items.len() == PATHS {
            incomplete.push(format!("only the first {PATHS} paths are shown"));
            break;
        }
        let text = if left > 0 { checkpointer.diff_of(changed).await? } else { None };
        let counted = text.as_deref().map(count);
        let diff = text.filter(|text| text.len() <= FILE.min(left));
        left -= diff.as_ref().map_or(0, String::len);
        items.push(file(changed, counted, diff));
    }
    Ok(DiffPage { root: Some(checkpointer.root_path().display().to_string()), items, incomplete })
}

fn file(changed: &Changed, counted: Option<(u64, u64)>, diff: Option<String>) -> FileDiff {
    use rethread_checkpoint::State as Was;
    let action = match (&changed.before, &changed.after) {
        (Was::Absent, Was::Present(_)) => DiffAction::Created,
        (Was::Present(_), Was::Absent) => DiffAction::Removed,
        (Was::Present(_), Was::Present(_)) => DiffAction::Changed,
        _ => DiffAction::Unknown,
    };
    let json = |state: &Was| serde_json::to_value(state).unwrap_or_default();
    let (insertions, deletions) = counted.unzip();
    FileDiff {
        path: changed.path.to_string(),
        action,
        before: json(&changed.before),
        after: json(&changed.after),
        source: serde_json::to_value(changed.source).unwrap_or_default(),
        assumed: changed.assumed,
        insertions,
        deletions,
        diff,
    }
}

/// Counts what a diff adds and removes. Its first two lines are names.
fn count(diff: &str) -> (u64, u64) {
    let lines = |sign: char| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count() as u64;
    (lines('+'), lines('-'))
}

//! What files were, and the way back.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_checkpoint::{Checkpointer, Choices, Plan, Point, Rewound, TreePath};
use rethread_store::EntryId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::drive::fork_of;
use super::file_history::{ClaudeCheckpoint, FileHistory};
use super::sessions::find_fresh;
use super::transcript::{later_than, parent_of};
use crate::capture::{blocking, entry_id};
use crate::catalogue::Known;
use crate::extract::{Asked, Body, Part, SessionName};
use crate::gate::Caller;
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope::Scope;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CheckpointsQuery {
    /// How many at most; all of them if it is not said.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// Where the page before ended: the id of its last checkpoint.
    cursor: Option<String>,
}

/// Checkpoints, the oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct CheckpointPage {
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
    /// Where the next page begins; null on the last one.
    next: Option<String>,
    /// What Claude Code itself kept before prompts, the oldest first: to look at, with `diff?turn=` and `diff?since=`. All
    /// of it is on the first page.
    claude_code: Vec<ClaudeCheckpoint>,
}

/// The checkpoints of a session
#[utoipa::path(get, path = "/sessions/{id}/checkpoints", operation_id = "list_checkpoints", params(CheckpointsQuery, ("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = CheckpointPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
    Asked(query): Asked<CheckpointsQuery>,
) -> Result<Json<CheckpointPage>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let history = match query.cursor {
        None => FileHistory::of(&keeper, &known).await?,
        Some(_) => None,
    };
    let listed = tokio::task::spawn_blocking(|| history.map(|history| history.list()).unwrap_or_default());
    let claude_code = listed.await.map_err(|error| Problem::failed(&error))?;
    let Some(checkpointer) = open(&keeper, &known).await? else {
        return Ok(Json(CheckpointPage { items: Vec::new(), next: None, claude_code }));
    };
    let all = blocking(async move { checkpointer.checkpoints().await }).await.map_err(refuse)?;
    // In the order in which they were made, whatever clocks said.
    let begin = match &query.cursor {
        None => 0,
        Some(cursor) => all
            .iter()
            .position(|it| it.id.as_str() == cursor)
            .map(|at| at + 1)
            .ok_or_else(|| Problem::bad_request("no checkpoint is called so (any more); begin anew"))?,
    };
    let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let shown = &all[begin..all.len().min(begin.saturating_add(limit))];
    let is_more = begin + shown.len() < all.len();
    let next = shown.last().filter(|_| is_more).map(|last| last.id.to_string());
    let items = shown.iter().filter_map(|checkpoint| serde_json::to_value(checkpoint).ok()).collect();
    Ok(Json(CheckpointPage { items, next, claude_code }))
}

/// Returns whether anything was recorded in the turn of a message.
pub(super) async fn has(
    checkpointer: Option<&Arc<Checkpointer>>,
    message: &EntryId,
) -> Result<bool, Problem> {
    let Some(own) = checkpointer.map(Arc::clone) else { return Ok(false) };
    let points = blocking(async move { own.points().await }).await.map_err(refuse)?;
    Ok(points.contains(message))
}

/// Opens a session's checkpoints; none if it never had any.
pub(super) async fn open(keeper: &Arc<Keeper>, known: &Known) -> Result<Option<Arc<Checkpointer>>, Problem> {
    if let Some(driver) = keeper.drivers.get(&known.card.session_id)
        && let Some(checkpointer) = driver.checkpointer()
    {
        return Ok(Some(checkpointer));
    }
    let Some(session) = keeper.store().load(&known.card.session_id.parse()?).await? else { return Ok(None) };
    let cwd = known.card.cwd.clone().map(PathBuf::from).filter(|cwd| cwd.is_dir());
    let cwd = cwd.ok_or_else(|| Problem::conflict("directory-gone", "the session's directory is gone"))?;
    let mut settings = rethread_checkpoint::Settings::default();
    settings.cache = Some(keeper.settings.cache.join("trees"));
    settings.formerly = rethread_checkpoint::noted_folders(&session.metadata().await?);
    let opened = blocking(async move { Checkpointer::open(&session, &cwd, settings).await }).await;
    Ok(Some(Arc::new(opened.map_err(refuse)?)))
}

pub(super) fn refuse(error: rethread_checkpoint::Error) -> Problem {
    use rethread_checkpoint::Error;
    match &error {
        Error::NoSuchPoint { .. } => Problem::not_found("checkpoint"),
        Error::NoSuchReceipt { .. } => Problem::not_found("receipt"),
        Error::Changed { .. } => {
            Problem::conflict("changed", error.to_string()).hint("look at the plan again").retryable()
        }
        Error::InTheWay { .. } => Problem::conflict("in-the-way", error.to_string()),
        Error::Off => Problem::conflict("off", error.to_string()),
        Error::BadPath { .. } | Error::NotInPlan(_) => Problem::bad_request(error.to_string()),
        _ => Problem::failed(&error),
    }
}

/// Where to go back to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewindRequest {
    /// A checkpoint, or the message before whose turn files are to be as they were.
    to: String,
    /// Only say what would be done.
    #[serde(default)]
    dry_run: bool,
    /// The digest of the plan that was looked at; needed to do it.
    expect_digest: Option<String>,
    /// Paths to overwrite though somebody else changed them. What is there is saved first.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    force: Vec<PathBuf>,
    /// Paths to leave alone.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    leave: Vec<PathBuf>,
    /// Also fork the conversation before the same message, so that files and words go together.
    #[serde(default)]
    fork: bool,
}

/// What a rewind would do, or did.
#[derive(Serialize, ToSchema)]
pub(crate) struct RewindAnswer {
    /// What to send as `expect_digest`.
    digest: String,
    /// Each path, and what happens to it.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Value>,
    /// The result, in the shape of the agent SDK.
    #[schema(value_type = Object)]
    result: Value,
    /// What to `POST` to undo it.
    undo: Option<String>,
    /// The session that goes on from there.
    fork: Option<String>,
}

/// Takes files back
#[utoipa::path(post, path = "/sessions/{id}/rewind", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), request_body = RewindRequest, responses((status = 200, body = RewindAnswer), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn rewind(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
    Body(request): Body<RewindRequest>,
) -> Result<Json<RewindAnswer>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let id = known.card.session_id.clone();
    if keeper.drivers.get(&id).is_some_and(|driver| driver.is_busy()) && !request.dry_run {
        return Err(Problem::conflict("busy", "a turn runs").hint("interrupt it first").retryable());
    }
    let checkpointer = open(&keeper, &known).await?.ok_or_else(|| Problem::not_found("checkpoint"))?;
    let point = Point::At(point(&keeper, &known, &checkpointer, &request.to).await?);
    let beneath = |paths: &[PathBuf]| {
        let full = paths.iter().map(|path| checkpointer.root_path().join(path));
        full.map(|path| TreePath::beneath(checkpointer.root_path(), &path))
            .collect::<Result<_, _>>()
            .map_err(refuse)
    };
    let mut choices = Choices::default();
    (choices.force, choices.leave) = (beneath(&request.force)?, beneath(&request.leave)?);
    let own = Arc::clone(&checkpointer);
    let plan = blocking(async move { own.plan(&point, &choices).await }).await.map_err(refuse)?;
    if request.dry_run || !plan.is_ready() {
        return Ok(Json(answer(&plan, &Rewound::of(&plan, None), None, None)));
    }
    if request.expect_digest.as_deref() != Some(&plan.digest.to_string()) {
        return Err(Problem::conflict("changed", "this is not the plan that was looked at")
            .hint("ask with `dry_run` first, and send its digest")
            .with("digest", plan.digest.to_string()));
    }
    // Whether there is anything to fork is known before a file is touched.
    let before = match request.fork {
        true => Some(before(&keeper, &known, &request.to).await?),
        false => None,
    };
    let own = Arc::clone(&checkpointer);
    let (plan, rewound) = blocking(async move {
        let rewound = own.apply(&plan).await;
        (plan, rewound)
    })
    .await;
    let rewound = rewound.map_err(refuse)?;
    let undo = rewound.receipt.as_ref().map(|receipt| format!("/api/v1/rewinds/{id}.{receipt}/undo"));
    keeper.door.audit.write(
        "rewind",
        &caller.name(),
        json!({ "session": id, "to": request.to, "receipt": rewound.receipt }),
    );
    let fork = match before {
        Some(before) => Some(fork_of(&keeper, &known, Some(before), None).await),
        None => None,
    };
    let fork_id = fork.as_ref().and_then(|fork| fork.as_ref().ok()).map(|fork| fork.id.clone());
    let data = json!({ "to": request.to, "receipt": rewound.receipt, "files": rewound.files_changed.len(), "fork": fork_id });
    keeper.hub.publish(&id, "rewind.applied", data);
    if let Some(Err(problem)) = fork {
        // The files are as they were by now, and whoever asked must be able to take that back.
        return Err(problem.with("undo", undo));
    }
    Ok(Json(answer(&plan, &rewound, undo, fork_id)))
}

fn answer(plan: &Plan, rewound: &Rewound, undo: Option<String>, fork: Option<String>) -> RewindAnswer {
    let steps = plan.steps.iter().map(|step| {
        json!({
            "path": step.path, "action": step.action, "assumed": step.assumed, "forced": step.forced,
            "insertions": step.insertions, "deletions": step.deletions,
        })
    });
    let result = serde_json::to_value(rewound).unwrap_or_default();
    RewindAnswer { digest: plan.digest.to_string(), steps: steps.collect(), result, undo, fork }
}

/// Returns what stands before a message, to fork after.
async fn before(keeper: &Arc<Keeper>, known: &Known, message: &str) -> Result<String, Problem> {
    parent_of(keeper, known, message).await?.ok_or_else(|| {
        Problem::conflict("nothing-before", "the conversation begins with that message")
            .hint("rewind without `fork`, and begin a new session")
    })
}

/// Returns what files can be taken back to: a checkpoint, a message, or the next message after it whose turn changed
/// something.
pub(super) async fn point(
    keeper: &Arc<Keeper>,
    known: &Known,
    checkpointer: &Arc<Checkpointer>,
    to: &str,
) -> Result<EntryId, Problem> {
    let id = entry_id(to).ok_or_else(|| Problem::not_found("checkpoint"))?;
    let own = Arc::clone(checkpointer);
    let points = blocking(async move { own.points().await }).await.map_err(refuse)?;
    if known.native.is_none() || points.contains(&id) {
        return Ok(id);
    }
    let later = later_than(keeper, known, to).await?.into_iter().filter_map(|message| entry_id(&message));
    let next = later.into_iter().find(|message| points.contains(message));
    next.ok_or_else(|| Problem::not_found("checkpoint"))
}

/// Undoes a rewind
#[utoipa::path(post, path = "/rewinds/{id}/undo", operation_id = "undo_rewind", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = RewindAnswer), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn undo(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    scope: Scope,
    Part(id): Part,
) -> Result<Json<RewindAnswer>, Problem> {
    // The session, a dot, and the receipt.
    let (session, receipt) = id.rsplit_once('.').ok_or_else(|| Problem::not_found("receipt"))?;
    let name = SessionName::parse(session, scope).ok_or_else(|| Problem::not_found("receipt"))?;
    let known = find_fresh(&keeper, &name).await?;
    if keeper.drivers.get(session).is_some_and(|driver| driver.is_busy()) {
        return Err(Problem::conflict("busy", "a turn runs").hint("interrupt it first").retryable());
    }
    let checkpointer = open(&keeper, &known).await?.ok_or_else(|| Problem::not_found("receipt"))?;
    let point = Point::Undo(entry_id(receipt).ok_or_else(|| Problem::not_found("receipt"))?);
    let own = Arc::clone(&checkpointer);
    let done = blocking(async move {
        let plan = own.plan(&point, &Choices::default()).await?;
        let rewound = if plan.is_ready() { own.apply(&plan).await? } else { Rewound::of(&plan, None) };
        Ok::<_, rethread_checkpoint::Error>((plan, rewound))
    });
    let (plan, rewound) = done.await.map_err(refuse)?;
    // Nothing was undone where somebody's own changes were in the way.
    if rewound.receipt.is_some() {
        keeper.door.audit.write("undo", &caller.name(), json!({ "session": session, "receipt": receipt }));
        keeper.hub.publish(session, "rewind.undone", json!({ "receipt": receipt, "again": rewound.receipt }));
    }
    let again = rewound.receipt.as_ref().map(|receipt| format!("/api/v1/rewinds/{session}.{receipt}/undo"));
    Ok(Json(answer(&plan, &rewound, again, None)))
}

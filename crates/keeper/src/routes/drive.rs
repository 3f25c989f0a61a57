//! Beginning sessions and driving them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rethread_store::Claim;
use rethread_transcripts::NativeFork;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::sessions::{find, find_fresh};
use crate::Bypass;
use crate::card::{Home, SessionCard};
use crate::catalogue::Known;
use crate::drive::{Begin, Driver, Ending, Mode, Part, Turn};
use crate::extract::{Body, SessionName};
use crate::gate::Caller;
use crate::keeper::Keeper;
use crate::new_ids::NewIds;
use crate::problem::Problem;
use crate::scope::Scope;

/// A session to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// Where it works.
    cwd: PathBufText,
    /// What is said first.
    prompt: Option<String>,
    name: Option<String>,
    /// `default`, `acceptEdits`, `plan`, `dontAsk`, or `bypassPermissions` where that is allowed.
    permission_mode: Option<String>,
    model: Option<String>,
}

/// A path, as text.
#[derive(Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub(crate) struct PathBufText(PathBuf);

/// Begins a session; its id is chosen here and now
#[utoipa::path(post, path = "/sessions", request_body = NewSession, params(("idempotency-key" = Option<String>, Header)), responses((status = 201, body = SessionCard), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    scope: Scope,
    headers: HeaderMap,
    Body(new): Body<NewSession>,
) -> Result<Response, Problem> {
    keeper.agent()?;
    check_mode(&keeper, new.permission_mode.as_deref())
        .inspect_err(|problem| keeper.door.refuse(&caller.name(), problem, json!({})))?;
    let PathBufText(cwd) = new.cwd;
    let there = cwd.canonicalize().ok().filter(|cwd| cwd.is_dir());
    // Outside of the allowed roots there is nothing, as everywhere else.
    let may_begin = |cwd: &PathBuf| keeper.admits(Some(cwd)) && scope.admits(cwd.to_str());
    let cwd = there.filter(may_begin).ok_or_else(|| Problem::not_found("directory"))?;
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let ids = key.map_or_else(NewIds::any, |key| keeper.door.credentials.ids_of(key));
    let id = ids.session;
    let name = SessionName { home: Some(Home::Native), id: id.clone(), scope: scope.clone() };
    if keeper.note_begun(&id) {
        let is_there = key.is_some() && find_fresh(&keeper, &name).await.is_ok();
        let driver = match is_there {
            // A keeper that is gone by now began it, and has perhaps not come to say what is said first.
            true => driver(&keeper, &name).await.inspect_err(|_| keeper.forget_begun(&id))?,
            false => {
                let (permission_mode, model) = (new.permission_mode, new.model);
                let begin = Begin { session: id.clone(), cwd, name: new.name, permission_mode, model };
                keeper.pending.add(&begin).map_err(|error| Problem::failed(&error))?;
                keeper.add_pending(&begin);
                keeper.door.audit.write("create", &caller.name(), json!({ "session": id }));
                keeper.drivers.get_or_begin(&id, || Driver::new(begin, Vec::new()))
            }
        };
        if let Some(prompt) = new.prompt.filter(|prompt| !prompt.trim().is_empty()) {
            let turn = Turn { client_message_id: ids.prompt, parts: vec![Part::Text { text: prompt }] };
            if let Err(problem) = driver.send(&keeper, turn, Mode::Start).await {
                if !is_there {
                    keeper.drop_pending(&id);
                }
                keeper.forget_begun(&id);
                return Err(problem);
            }
        }
    }
    let card = find(&keeper, &name)?.card;
    let location = format!("/api/v1/sessions/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(card)).into_response())
}

fn check_mode(keeper: &Keeper, mode: Option<&str>) -> Result<(), Problem> {
    match mode {
        None | Some("default" | "acceptEdits" | "plan" | "dontAsk") => Ok(()),
        Some("bypassPermissions") if keeper.settings.bypass == Bypass::Allowed => Ok(()),
        Some("bypassPermissions") => Err(Problem::new(StatusCode::FORBIDDEN, "bypass-refused")
            .detail("this keeper was not started with `--allow-bypass`")),
        Some(_) => Err(Problem::bad_request("that is no permission mode")),
    }
}

/// Returns the driver of a session, unless somebody else drives it.
async fn driver(keeper: &Arc<Keeper>, name: &SessionName) -> Result<Arc<Driver>, Problem> {
    let known = find_fresh(keeper, name).await?;
    if known.card.home == Home::Stored && !(keeper.shares() && keeper.native.is_some()) {
        return Err(Problem::bad_request("a stored session is driven after it was exported")
            .hint("`rethread export --claude ID` makes it a session of Claude Code's own"));
    }
    let id = known.card.session_id.clone();
    let running = keeper.drivers.get(&id).filter(|driver| driver.is_running());
    // One that runs needs no program any more.
    if running.is_none() {
        keeper.agent()?;
    }
    if let Some(pid) = known.card.driver_pid {
        if let Some(running) = running {
            // It does not know what is said there, and must not go on without.
            running.end_if_idle(keeper, Duration::ZERO).await;
        }
        return Err(Problem::conflict("driven-elsewhere", format!("process {pid} drives this session"))
            .hint("watch it, fork it, or take over")
            .with("pid", pid)
            .with("choices", ["watch", "fork", "take_over"]));
    }
    if let Some(running) = running {
        return Ok(running);
    }
    let mut begin = begin_of(keeper, &known)?;
    if keeper.drivers.get(&id).is_none()
        && let Ok(companion) = keeper.store().metadata(&id.parse()?).await
    {
        // It goes on as it was begun, whichever keeper that was; what is not allowed any more is not.
        begin.recall(&companion);
        check_mode(keeper, begin.permission_mode.as_deref())?;
    }
    if let Some(driver) = keeper.drivers.get(&id) {
        return Ok(driver);
    }
    let left = left_prompts(keeper, &id).await;
    Ok(keeper.drivers.get_or_begin(&id, || Driver::new(begin, left)))
}

fn begin_of(keeper: &Keeper, known: &Known) -> Result<Begin, Problem> {
    let session = known.card.session_id.clone();
    if let Some(driver) = keeper.drivers.get(&session) {
        return Ok(driver.begin());
    }
    let cwd = known.card.cwd.clone().map(PathBuf::from).filter(|cwd| cwd.is_dir());
    let cwd = cwd.ok_or_else(|| {
        Problem::conflict("directory-gone", "the directory that this session worked in is gone")
            .hint("make it again, or fork the session elsewhere; `rethread handoff` and `rethread take --cwd DIR` move a session to another path")
    })?;
    Ok(Begin { session, cwd, name: None, permission_mode: None, model: None })
}

/// A prompt.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTurn {
    /// A UUID of the sender's: the message will have it. The same one twice is one message.
    client_message_id: String,
    parts: Vec<Part>,
    #[serde(default)]
    mode: Mode,
}

/// What became of a prompt.
#[derive(Serialize, ToSchema)]
pub(crate) struct Accepted {
    client_message_id: String,
    /// It waits for the end of another turn.
    queued: bool,
}

/// Says something to a session
#[utoipa::path(post, path = "/sessions/{id}/turns", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), request_body = NewTurn, responses((status = 202, body = Accepted), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn turns(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
    Body(new): Body<NewTurn>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let uuid = uuid::Uuid::try_parse(&new.client_message_id);
    let id = uuid.map_err(|_| Problem::bad_request("`client_message_id` is a UUID"))?.to_string();
    let turn = Turn { client_message_id: id.clone(), parts: new.parts };
    if !turn.says_something() {
        return Err(Problem::bad_request("there is nothing in it"));
    }
    if let Some(flaw) = turn.flaw() {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad-picture").detail(flaw));
    }
    let driver = driver(&keeper, &name).await?;
    driver.send(&keeper, turn, new.mode).await?;
    let queued = driver.queue().0.iter().any(|waiting| waiting.client_message_id == id);
    Ok((StatusCode::ACCEPTED, Json(Accepted { client_message_id: id, queued })))
}

/// Prompts that wait.
#[derive(Serialize, ToSchema)]
pub(crate) struct QueuePage {
    items: Vec<Turn>,
    /// They wait until somebody goes on with them: the keeper ended, or somebody else took the session over.
    held: bool,
}

/// The prompts that wait for their turn
#[utoipa::path(get, path = "/sessions/{id}/queue", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = QueuePage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn queue(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
) -> Result<Json<QueuePage>, Problem> {
    let known = find(&keeper, &name)?;
    let id = &known.card.session_id;
    let (items, held) = match keeper.drivers.get(id) {
        Some(driver) => driver.queue(),
        None => {
            let left = left_prompts(&keeper, id).await;
            (left.iter().map(Turn::listed).collect(), !left.is_empty())
        }
    };
    Ok(Json(QueuePage { items, held }))
}

async fn left_prompts(keeper: &Arc<Keeper>, session: &str) -> Vec<Turn> {
    let (keeper, session) = (Arc::clone(keeper), session.to_owned());
    tokio::task::spawn_blocking(move || keeper.left_prompts(&session)).await.unwrap_or_default()
}

/// Goes on with the prompts that wait, where a keeper's end or somebody who took over stopped them
#[utoipa::path(post, path = "/sessions/{id}/queue/resume", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 202, body = QueuePage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn resume_queue(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
) -> Result<(StatusCode, Json<QueuePage>), Problem> {
    let driver = driver(&keeper, &name).await?;
    keeper.door.audit.write("resume-queue", &caller.name(), json!({ "session": driver.begin().session }));
    driver.resume(&keeper);
    let (items, held) = driver.queue();
    Ok((StatusCode::ACCEPTED, Json(QueuePage { items, held })))
}

/// Takes back a prompt that waits
#[utoipa::path(delete, path = "/sessions/{id}/queue/{uuid}", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71"), ("uuid" = String, Path, example = "u1")), responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn unqueue(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
    crate::extract::Part(message): crate::extract::Part,
) -> Result<StatusCode, Problem> {
    let known = find(&keeper, &name)?;
    // Asking for its driver would ask who else drives it; what waits here is taken back in any case.
    let id = &known.card.session_id;
    let was = match keeper.drivers.get(id) {
        Some(driver) => driver.unqueue(&keeper, &message),
        None => keeper.take_back_left(id, &message),
    };
    if was { Ok(StatusCode::NO_CONTENT) } else { Err(Problem::not_found("prompt")) }
}

/// What an interruption did.
#[derive(Serialize, ToSchema)]
pub(crate) struct Interruption {
    /// A turn ran, and ends.
    interrupted: bool,
}

/// Ends the turn that runs
#[utoipa::path(post, path = "/sessions/{id}/interrupt", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 202, body = Interruption), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn interrupt(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
) -> Result<(StatusCode, Json<Interruption>), Problem> {
    let known = find(&keeper, &name)?;
    let driver = keeper.drivers.get(&known.card.session_id);
    let interrupted = match driver {
        Some(driver) => driver.interrupt().await?,
        None => false,
    };
    keeper.door.audit.write("interrupt", &caller.name(), json!({ "session": known.card.session_id }));
    Ok((StatusCode::ACCEPTED, Json(Interruption { interrupted })))
}

/// How to fork.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The last message to take over; the last one there is if it is missing.
    from_message: Option<String>,
    name: Option<String>,
}

/// Begins a session from a message of another
#[utoipa::path(post, path = "/sessions/{id}/fork", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), request_body = NewFork, responses((status = 201, body = SessionCard), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn fork(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
    Body(new): Body<NewFork>,
) -> Result<Response, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let id = fork_of(&keeper, &known, new.from_message, new.name).await?;
    keeper.door.audit.write(
        "fork",
        &caller.name(),
        json!({ "session": known.card.session_id, "fork": id.id }),
    );
    let card = find(&keeper, &id)?.card;
    let location = format!("/api/v1/sessions/{}", id.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(card)).into_response())
}

/// Forks a session, and returns the new one.
pub(crate) async fn fork_of(
    keeper: &Arc<Keeper>,
    known: &Known,
    from: Option<String>,
    name: Option<String>,
) -> Result<SessionName, Problem> {
    let (Some(session), Some(native)) = (&known.native, &keeper.native) else {
        let session = keeper.store().open(&known.card.session_id.parse()?).await?;
        let mut fork = rethread_store::Fork::default();
        if let Some(from) = from {
            fork = fork.at(from.parse()?);
        }
        if let Some(name) = name {
            fork = fork.name(name);
        }
        let forked = session.fork(fork).await?;
        keeper.forget_stored();
        keeper.list_stored().await.map_err(|error| Problem::failed(&error))?;
        return Ok(SessionName {
            home: Some(Home::Stored),
            id: forked.id().to_string(),
            scope: Scope::default(),
        });
    };
    keeper.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
    let mut fork = NativeFork::default();
    (fork.at, fork.name) = (from, name);
    let (folder, id) = (native.folder.clone(), known.card.session_id.clone());
    let written = tokio::task::spawn_blocking(move || folder.fork(&id, &fork));
    let written = written.await.map_err(|error| Problem::failed(&error))??;
    keeper.look_at(&written.path);
    keeper.note_fork(&known.card.session_id, &written.session_id);
    Ok(SessionName { home: Some(Home::Native), id: written.session_id, scope: Scope::default() })
}

/// What to do about who drives a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseRequest {
    action: LeaseAction,
}

/// What to do about who drives a session.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeaseAction {
    /// Drive it, if nobody does.
    Acquire,
    /// Let others drive it: our agent ends.
    Release,
    /// Drive it, whoever does.
    TakeOver,
}

/// Who drives a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct LeaseState {
    /// This keeper does.
    ours: bool,
    /// Who does, as the store knows it.
    holder: Option<String>,
    /// The process of another program.
    pid: Option<u32>,
}

/// Acquires, releases or takes over a session
#[utoipa::path(post, path = "/sessions/{id}/lease", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), request_body = LeaseRequest, responses((status = 200, body = LeaseState), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn lease(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
    Body(request): Body<LeaseRequest>,
) -> Result<Json<LeaseState>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let id = known.card.session_id.clone();
    match request.action {
        LeaseAction::Release => {
            if let Some(driver) = keeper.drivers.remove(&id) {
                driver.end(&keeper, Ending::ForGood).await;
            }
            keeper.forget_take_over(&id);
            keeper.change(|catalogue| catalogue.set_state(&id, None));
        }
        LeaseAction::Acquire => driver(&keeper, &name).await?.acquire(&keeper, Claim::IfFree).await?,
        LeaseAction::TakeOver => {
            keeper.note_take_over(&id);
            // What the others said meanwhile is read by an agent that begins now.
            if let Some(running) = keeper.drivers.get(&id).filter(|_| known.card.driver_pid.is_some()) {
                running.end_if_idle(&keeper, Duration::ZERO).await;
            }
            driver(&keeper, &name).await?.acquire(&keeper, Claim::TakeOver).await?;
        }
    }
    keeper.door.audit.write("lease", &caller.name(), json!({ "session": id }));
    let holder = match keeper.store().load(&id.parse()?).await {
        Ok(Some(session)) => session.driver().await?.map(|holder| holder.to_string()),
        _ => None,
    };
    let ours = keeper.drivers.get(&id).is_some() && holder.is_some();
    Ok(Json(LeaseState { ours, holder, pid: known.card.driver_pid }))
}

//! What this keeper is, how it is, and what was done with it.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::audit::AuditEntry;
use crate::card::{HealthStatus, SessionCard};
use crate::drive::{IMAGE, IMAGES};
use crate::extract::Asked;
use crate::gate::{BODY, Caller};
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope::Scope;

/// Says that it is alive
#[utoipa::path(get, path = "/healthz", security(()), responses((status = 200, body = String, content_type = "text/plain"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn healthz() -> &'static str {
    "ok"
}

/// What this keeper is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Info {
    version: &'static str,
    /// The version of the API.
    api: u32,
    pid: u32,
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    epoch: String,
    seq: u64,
    /// What it can do: `read`, `stream`, `drive`, `checkpoints`, ….
    features: Vec<&'static str>,
    agent: AgentInfo,
    #[schema(value_type = Vec<String>)]
    allowed_roots: Vec<PathBuf>,
    claude_folder: Option<String>,
    sessions: u64,
    limits: LimitsInfo,
    /// Sessions may run without asking anybody: a page shows this all the time.
    bypass_allowed: bool,
    /// Everything here is a demonstration.
    demo: bool,
}

/// The program that drives sessions.
#[derive(Serialize, ToSchema)]
pub(crate) struct AgentInfo {
    program: Option<String>,
    version: Option<String>,
    /// Why nothing can be sent, and what to do.
    missing: Option<String>,
}

/// How much of what is taken.
#[derive(Serialize, ToSchema)]
pub(crate) struct LimitsInfo {
    body_bytes: u64,
    /// How many pictures a prompt may have, and how large each may be.
    images: u64,
    image_bytes: u64,
    page: u64,
    heartbeat_seconds: f64,
}

/// What this keeper is and can do
#[utoipa::path(get, path = "/info", responses((status = 200, body = Info), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn info(State(keeper): State<Arc<Keeper>>, scope: Scope) -> Json<Info> {
    let settings = &keeper.settings;
    let (program, version, missing) = keeper.agent_info().await;
    let mut features = vec!["read", "search", "stream", "events"];
    if program.is_some() {
        features.extend(["drive", "attention", "checkpoints"]);
    }
    if keeper.shares() {
        features.push("share");
    }
    if settings.demonstration.is_some() && scope.whole().is_ok() {
        features.push("demo");
    }
    let agent = AgentInfo { program, version, missing };
    Json(Info {
        version: env!("CARGO_PKG_VERSION"),
        api: crate::API,
        pid: std::process::id(),
        started_at: keeper.started_at,
        epoch: keeper.hub.epoch().to_owned(),
        seq: keeper.hub.seq(),
        features,
        agent,
        allowed_roots: scope.within(&keeper.roots).map(|roots| roots.list().to_vec()).unwrap_or_default(),
        claude_folder: settings.claude_folder.as_ref().map(|folder| folder.display().to_string()),
        sessions: scope.count(&keeper.catalogue()),
        limits: LimitsInfo {
            body_bytes: BODY,
            images: IMAGES as u64,
            image_bytes: IMAGE,
            page: super::sessions::MOST as u64,
            heartbeat_seconds: settings.heartbeat.as_secs_f64(),
        },
        bypass_allowed: settings.bypass == crate::Bypass::Allowed,
        demo: settings.demo,
    })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<u64>,
}

/// Lines of the audit log.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditPage {
    items: Vec<AuditEntry>,
    /// Where the next page begins; null on the last one.
    next: Option<u64>,
}

/// What was done and refused, the newest first
#[utoipa::path(get, path = "/audit", params(AuditQuery), responses((status = 200, body = AuditPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn audit(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
    Asked(query): Asked<AuditQuery>,
) -> Result<Json<AuditPage>, Problem> {
    scope.whole()?;
    let limit = query.limit.unwrap_or(100).clamp(1, 1000) as usize;
    let newest = keeper.door.audit.newest(limit, query.cursor);
    let (items, next) = newest.map_err(|error| Problem::failed(&error))?;
    Ok(Json(AuditPage { items, next }))
}

/// What is damaged or surprising.
#[derive(Serialize, ToSchema)]
pub(crate) struct Doctor {
    sessions: u64,
    /// Sessions that cannot be read, or not all of them.
    damaged: Vec<Arc<SessionCard>>,
    /// Sessions of which only the ends were looked at so far; all are read in the background.
    unread: u64,
    agent: AgentInfo,
    /// Writes that fail at the moment.
    store: Vec<String>,
}

/// Everything that is damaged or surprising
#[utoipa::path(get, path = "/doctor", responses((status = 200, body = Doctor), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn doctor(State(keeper): State<Arc<Keeper>>, scope: Scope) -> Result<Json<Doctor>, Problem> {
    scope.whole()?;
    let (program, version, missing) = keeper.agent_info().await;
    let health = keeper.store().health();
    let catalogue = keeper.catalogue();
    let damaged =
        catalogue.after(None).map(|(_, card)| card).filter(|card| card.health.status != HealthStatus::Ok);
    Ok(Json(Doctor {
        sessions: catalogue.len() as u64,
        damaged: damaged.cloned().collect(),
        unread: catalogue.natives().filter(|session| session.message_count.is_none()).count() as u64,
        agent: AgentInfo { program, version, missing },
        store: health.failing.iter().map(|trouble| format!("{}: {}", trouble.log, trouble.error)).collect(),
    }))
}

/// Counters in Prometheus' text
#[utoipa::path(get, path = "/metrics", responses((status = 200, body = String, content_type = "text/plain"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn metrics(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
) -> Result<impl IntoResponse, Problem> {
    scope.whole()?;
    let more = [("sessions", "Sessions that are known.", keeper.catalogue().len() as u64)];
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], keeper.door.metrics.text(&more)))
}

/// Ends the keeper
#[utoipa::path(post, path = "/stop", responses((status = 202), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn stop(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    scope: Scope,
) -> Result<StatusCode, Problem> {
    scope.whole()?;
    keeper.door.audit.write("stop", &caller.name(), json!({}));
    keeper.ending.send_replace(true);
    Ok(StatusCode::ACCEPTED)
}

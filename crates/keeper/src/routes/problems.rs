//! What is damaged in a session.

use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use rethread_transcripts::{Damage, Fault, FaultKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::sessions::find_fresh;
use super::transcript::transcript;
use crate::card::SessionHealth;
use crate::excerpt::{Excerpt, excerpts};
use crate::extract::{Asked, SessionName};
use crate::keeper::Keeper;
use crate::problem::Problem;

/// How many bytes of a file are given at once.
const BYTES: u64 = 64 << 10;

/// What is wrong with a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Problems {
    health: SessionHealth,
    /// How many lines the file has; null of a session in a store.
    lines: Option<u64>,
    items: Vec<ProblemItem>,
}

/// Something that is not as it should be.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProblemItem {
    offset: u64,
    length: u64,
    /// A stable name in snake case.
    kind: String,
    /// What it is, in words.
    reason: String,
    /// Something of the conversation cannot be read, or only with luck.
    damage: bool,
    /// What stands there; null if the bytes tell nothing, or if there are too many places.
    excerpt: Option<Excerpt>,
}

impl From<&Fault> for ProblemItem {
    fn from(fault: &Fault) -> Self {
        let kind = match serde_json::to_value(&fault.kind) {
            Ok(serde_json::Value::String(kind)) => kind,
            Ok(serde_json::Value::Object(kind)) => kind.keys().next().cloned().unwrap_or_default(),
            _ => String::new(),
        };
        let (offset, length) = (fault.offset, fault.length);
        Self {
            offset,
            length,
            kind,
            reason: fault.kind.to_string(),
            damage: fault.kind.is_damage(),
            excerpt: None,
        }
    }
}

/// Damaged lines, with their places
#[utoipa::path(get, path = "/sessions/{id}/problems", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = Problems), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn problems(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
) -> Result<Json<Problems>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    if known.native.is_none() {
        let report = keeper.store().verify(&name.id.parse()?).await?;
        let items: Vec<ProblemItem> = report
            .problems
            .iter()
            .map(|problem| ProblemItem {
                offset: 0,
                length: 0,
                kind: "damaged".into(),
                reason: problem.to_string(),
                damage: true,
                excerpt: None,
            })
            .collect();
        let health = match items.first() {
            None => SessionHealth::ok(),
            Some(first) => SessionHealth {
                status: crate::HealthStatus::Degraded,
                bad_lines: Some(items.len() as u64),
                reason: Some(first.reason.clone()),
                ..SessionHealth::ok()
            },
        };
        return Ok(Json(Problems { health, lines: None, items }));
    }
    let (known, transcript) = transcript(&keeper, &name).await?;
    let own = Arc::clone(&keeper);
    let read = tokio::task::spawn_blocking(move || {
        let faults = transcript.faults();
        let file = own.open_native(transcript.path()).map_err(|_| Problem::not_found("session"))?;
        let excerpts =
            excerpts(&file, transcript.length(), &faults).map_err(|error| Problem::failed(&error))?;
        Ok::<_, Problem>((faults, excerpts))
    });
    let (faults, (lines, excerpts)) = read.await.map_err(|error| Problem::failed(&error))??;
    // Whoever is at work on it may be in the middle of a line.
    let is_half = |fault: &&Fault| fault.kind == FaultKind::TornTail && known.card.driver_pid.is_some();
    let damage = Damage::of(faults.iter().filter(|fault| !is_half(fault)));
    let health = SessionHealth::of_damage(damage.as_ref());
    if let Some(session) = &known.native {
        keeper.note_damage(session, damage);
    }
    let item = |(fault, excerpt)| ProblemItem { excerpt, ..ProblemItem::from(fault) };
    let items = faults.iter().zip(excerpts).map(item).collect();
    Ok(Json(Problems { health, lines: Some(lines), items }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct BytesQuery {
    /// Where to begin.
    offset: u64,
    /// How many at most.
    #[param(minimum = 1, maximum = 65536)]
    length: Option<u64>,
}

/// Bytes of a session's file, as they are
#[utoipa::path(get, path = "/sessions/{id}/bytes", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71"), BytesQuery), responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn bytes(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
    Asked(query): Asked<BytesQuery>,
) -> Result<Response, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let session =
        known.native.ok_or_else(|| Problem::bad_request("a stored session has no file of its own"))?;
    let read = tokio::task::spawn_blocking(move || {
        let file = keeper.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
        let length = file.metadata().map_err(|error| Problem::failed(&error))?.len();
        // The system refuses to look beyond all files; there is nothing.
        if query.offset >= length {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; usize::try_from(query.length.unwrap_or(BYTES).clamp(1, BYTES)).unwrap_or(0)];
        let read = file.read_at(&mut bytes, query.offset).map_err(|error| Problem::failed(&error))?;
        bytes.truncate(read);
        Ok::<_, Problem>(bytes)
    });
    let bytes = read.await.map_err(|error| Problem::failed(&error))??;
    // Nothing a browser would render, whatever is in it.
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

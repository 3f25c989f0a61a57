//! What is damaged in a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_transcripts::Fault;
use serde::Serialize;
use utoipa::ToSchema;

use super::sessions::find_fresh;
use super::transcript::transcript;
use crate::card::SessionHealth;
use crate::extract::SessionName;
use crate::keeper::Keeper;
use crate::problem::Problem;

/// What is wrong with a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Problems {
    health: SessionHealth,
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
}

impl From<&Fault> for ProblemItem {
    fn from(fault: &Fault) -> Self {
        let kind = match serde_json::to_value(&fault.kind) {
            Ok(serde_json::Value::String(kind)) => kind,
            Ok(serde_json::Value::Object(kind)) => kind.keys().next().cloned().unwrap_or_default(),
            _ => String::new(),
        };
        let (offset, length) = (fault.offset, fault.length);
        Self { offset, length, kind, reason: fault.kind.to_string(), damage: fault.kind.is_damage() }
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
        return Ok(Json(Problems { health, items }));
    }
    let (known, transcript) = transcript(&keeper, &name).await?;
    let faults = transcript.faults();
    let health = SessionHealth::of_faults(&faults, known.card.driver_pid.is_some());
    keeper.note_health(&known, &health);
    Ok(Json(Problems { health, items: faults.iter().map(ProblemItem::from).collect() }))
}

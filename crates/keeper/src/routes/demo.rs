//! The way to a demonstration, for those who have no sessions yet.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::gate::Caller;
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope::Scope;

/// A demonstration that runs.
#[derive(Serialize, ToSchema)]
pub(crate) struct Demo {
    /// Logs a browser in, once, within a minute.
    url: String,
}

/// Begins a demonstration, or leads to the one that runs
#[utoipa::path(post, path = "/demo", operation_id = "begin_demo", responses((status = 201, body = Demo), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn begin(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    scope: Scope,
) -> Result<(StatusCode, Json<Demo>), Problem> {
    scope.whole()?;
    let Some(demonstration) = &keeper.settings.demonstration else { return Err(Problem::not_found("demo")) };
    let refuse = |why| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-demo").detail(why).retryable();
    let url = demonstration.begin().await.map_err(refuse)?;
    keeper.door.audit.write("demo", &caller.name(), json!({}));
    Ok((StatusCode::CREATED, Json(Demo { url })))
}

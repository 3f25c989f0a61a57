//! Sessions in small, for lists that draw them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_transcripts::Transcript;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::sessions::find;
use crate::extract::{Asked, SessionName};
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope::Scope;
use crate::sketch::Sketch;

/// How many are drawn for one request: as many as a screen shows.
const MOST: usize = 64;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SketchQuery {
    /// Ids of sessions, with commas between them; at most 64.
    #[param(example = "8f529643-98e0-4045-abbb-6f2887e6ce71")]
    sessions: String,
}

/// Sessions in small.
#[derive(Serialize, ToSchema)]
pub(crate) struct SketchPage {
    items: Vec<SketchItem>,
}

/// A session in small.
#[derive(Serialize, ToSchema)]
pub(crate) struct SketchItem {
    /// As it was asked for.
    session: String,
    sketch: Arc<Sketch>,
}

/// Sessions in small: what hangs on their threads, and how many lines their edits changed
///
/// Those that are not there, cannot be read, or are in a store are left out.
#[utoipa::path(get, path = "/sketches", params(SketchQuery), responses((status = 200, body = SketchPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sketches(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
    Asked(query): Asked<SketchQuery>,
) -> Result<Json<SketchPage>, Problem> {
    let asked: Vec<&str> = query.sessions.split(',').filter(|it| !it.is_empty()).collect();
    if asked.len() > MOST {
        return Err(Problem::bad_request(format!("at most {MOST} sessions at once")));
    }
    let mut items = Vec::with_capacity(asked.len());
    for session in asked {
        let Some(name) = SessionName::parse(session, scope.clone()) else { continue };
        let Some(native) = find(&keeper, &name).ok().and_then(|known| known.native) else { continue };
        let (own, path) = (Arc::clone(&keeper), native.path.clone());
        let open = move || Transcript::of(own.open_native(&path).ok()?, path).ok();
        if let Some(sketch) = keeper.sketches.get(&native, open).await {
            items.push(SketchItem { session: session.to_owned(), sketch });
        }
    }
    Ok(Json(SketchPage { items }))
}

//! Looking for a text in all conversations.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::extract::Asked;
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope::Scope;
use crate::search::{Hit, Hunt};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// The text, at least two characters, whatever its case.
    q: String,
    /// Only in sessions of this repository or directory.
    project: Option<String>,
    /// Only in this session, and there everything.
    session: Option<String>,
    /// Only what this role said: `user`, `assistant`.
    role: Option<String>,
    /// Only in calls of this tool.
    tool: Option<String>,
    /// Only what was said after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Timestamp>,
    /// Only what was said before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Timestamp>,
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// What was found, in the newest sessions first.
#[derive(Serialize, ToSchema)]
pub(crate) struct SearchPage {
    items: Vec<Hit>,
    /// There may be more: not all sessions were looked at.
    more: bool,
}

/// Looks for a text in all conversations
#[utoipa::path(get, path = "/search", params(SearchQuery), responses((status = 200, body = SearchPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn search(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
    Asked(query): Asked<SearchQuery>,
) -> Result<Json<SearchPage>, Problem> {
    if query.q.trim().chars().count() < 2 || query.q.len() > 1000 {
        return Err(Problem::bad_request("a text of two to a thousand characters can be looked for"));
    }
    let limit = query.limit.unwrap_or(50).clamp(1, 500) as usize;
    let hunt = Hunt {
        text: query.q,
        project: query.project,
        session: query.session,
        role: query.role,
        tool: query.tool,
        after: query.after,
        before: query.before,
        limit,
        scope,
    };
    let searched = tokio::task::spawn_blocking(move || hunt.run(&keeper));
    let (items, more) = searched.await.map_err(|error| Problem::failed(&error))?;
    Ok(Json(SearchPage { items, more }))
}

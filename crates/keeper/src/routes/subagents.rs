//! The subagents of a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_transcripts::Subagent;
use serde::Serialize;
use utoipa::ToSchema;

use super::sessions::find_fresh;
use crate::extract::SessionName;
use crate::keeper::Keeper;
use crate::problem::Problem;

/// The subagents of a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SubagentPage {
    items: Vec<SubagentItem>,
}

/// A subagent; `messages?agent=ID` reads its transcript.
#[derive(Serialize, ToSchema)]
pub(crate) struct SubagentItem {
    agent_id: String,
    agent_type: Option<String>,
    description: Option<String>,
    /// The call that sent it.
    tool_use_id: Option<String>,
}

/// The subagents of a session
#[utoipa::path(get, path = "/sessions/{id}/subagents", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = SubagentPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn subagents(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
) -> Result<Json<SubagentPage>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let all = known.native.as_ref().map(|session| Subagent::all_of(&session.path)).unwrap_or_default();
    let is_ours = |subagent: &Subagent| keeper.open_native(&subagent.path).is_ok();
    let items = all.into_iter().filter(is_ours).map(|subagent| {
        let Subagent { agent_id, agent_type, description, tool_use_id, .. } = subagent;
        SubagentItem { agent_id, agent_type, description, tool_use_id }
    });
    Ok(Json(SubagentPage { items: items.collect() }))
}

//! The subagents of a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_store::{Filter, Metadata, Session, SessionId, Show};
use rethread_transcripts::Subagent;
use serde::Serialize;
use utoipa::ToSchema;

use super::sessions::find_fresh;
use crate::card::Home;
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
    if known.card.home == Home::Stored {
        return Ok(Json(SubagentPage { items: stored(&keeper, known.card.session_id.parse()?).await? }));
    }
    let all = known.native.as_ref().map(|session| Subagent::all_of(&session.path)).unwrap_or_default();
    let is_ours = |subagent: &Subagent| keeper.open_native(&subagent.path).is_ok();
    let items = all.into_iter().filter(is_ours).map(|subagent| {
        let Subagent { agent_id, agent_type, description, tool_use_id, .. } = subagent;
        SubagentItem { agent_id, agent_type, description, tool_use_id }
    });
    Ok(Json(SubagentPage { items: items.collect() }))
}

/// What the id of a subagent's session begins with, where it came from Claude Code.
const PREFIX: &str = "agent-";

/// Lists the subagents of a stored session: its children.
async fn stored(keeper: &Keeper, session: SessionId) -> Result<Vec<SubagentItem>, Problem> {
    let mut filter = Filter::default();
    (filter.archived, filter.children) = (Show::Also, Show::Only);
    filter.parent = Some(session);
    let listing = keeper.store().list(&filter).await?;
    // The newest comes first in a listing.
    let children = listing.sessions.into_iter().rev().filter(|metadata| metadata.child);
    let item = |Metadata { session_id, agent_name, name, .. }: Metadata| {
        let id = session_id.as_str();
        SubagentItem {
            agent_id: id.strip_prefix(PREFIX).unwrap_or(id).to_owned(),
            agent_type: agent_name,
            description: name,
            tool_use_id: None,
        }
    };
    Ok(children.map(item).collect())
}

/// Opens what a subagent of a stored session said; another session's subagents are not there.
pub(super) async fn stored_subagent(
    keeper: &Keeper,
    session: &SessionId,
    agent: &str,
) -> Result<Session, Problem> {
    for id in [format!("{PREFIX}{agent}"), agent.to_owned()] {
        let Ok(id) = id.parse() else { continue };
        if let Some(child) = keeper.store().load(&id).await? {
            let metadata = child.metadata().await?;
            if metadata.child && metadata.parent_id.as_ref() == Some(session) {
                return Ok(child);
            }
        }
    }
    Err(Problem::not_found("subagent"))
}

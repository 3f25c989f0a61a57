//! What waits for a person, and their decisions.

use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::paging::{newest_first, page};
use crate::attention::{Attention, AttentionState, Undecided, Verdict};
use crate::drive::Doubt;
use crate::extract::{Asked, Body, Part};
use crate::gate::Caller;
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AttentionQuery {
    /// Only those in this state.
    state: Option<AttentionState>,
    /// Only those of this session.
    session: Option<String>,
    /// How many at most; all of them if it is not said.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// Requests, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttentionPage {
    items: Vec<Attention>,
    /// Where the next page begins; null on the last one.
    next: Option<String>,
}

/// What waits for a person, and what did
#[utoipa::path(get, path = "/attention", operation_id = "list_attention", params(AttentionQuery), responses((status = 200, body = AttentionPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(keeper): State<Arc<Keeper>>,
    scope: scope::Scope,
    Asked(query): Asked<AttentionQuery>,
) -> Json<AttentionPage> {
    let mut items = keeper.attention.list(query.state);
    items.extend(
        keeper.others.attention().into_iter().filter(|it| query.state.is_none_or(|state| it.state == state)),
    );
    items.retain(|it| query.session.as_ref().is_none_or(|session| it.shown.session_id == *session));
    // Of sessions that may not be seen, nothing waits here.
    items.retain(|it| is_seen(&keeper, &scope, it));
    let key = |it: &Attention| newest_first(it.requested_at, &it.shown.id);
    items.sort_by_cached_key(key);
    let (items, next) = page(items, key, query.limit, query.cursor.as_deref());
    Json(AttentionPage { items, next })
}

fn is_seen(keeper: &Keeper, scope: &scope::Scope, attention: &Attention) -> bool {
    let cwd = attention.shown.cwd.as_deref();
    keeper.admits(cwd.map(Path::new)) && scope.admits(cwd)
}

/// A decision.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    decision: Choice,
    /// How long an allowance holds.
    #[serde(default)]
    scope: Scope,
    /// What the tool is to be called with instead.
    #[schema(value_type = Option<Object>)]
    updated_input: Option<Value>,
    /// What the model is told.
    message: Option<String>,
    /// The digest of exactly what was shown.
    shown_digest: String,
}

/// Yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Choice {
    /// The tool runs.
    Allow,
    /// It does not.
    Deny,
}

/// How long an allowance holds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// For this call.
    #[default]
    Once,
    /// For the rest of the session.
    Session,
}

/// Decides about a request
#[utoipa::path(post, path = "/attention/{id}/decision", params(("id" = String, Path)), request_body = Decision, responses((status = 200, body = Attention), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn decide(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    seen_by: scope::Scope,
    Part(id): Part,
    Body(decision): Body<Decision>,
) -> Result<Json<Attention>, Problem> {
    let by = caller.name();
    let decided = decide_as(&by, &keeper, seen_by, id.clone(), decision).await;
    // Whoever decides about something else than what was shown, or twice, may be no person.
    decided.map(Json).inspect_err(|problem| keeper.door.refuse(&by, problem, json!({ "request": id })))
}

async fn decide_as(
    by: &str,
    keeper: &Arc<Keeper>,
    seen_by: scope::Scope,
    id: String,
    decision: Decision,
) -> Result<Attention, Problem> {
    let here = keeper.attention.list(None).into_iter().find(|it| it.shown.id == id);
    let elsewhere = if here.is_none() { keeper.others.request(&id) } else { None };
    if !here.as_ref().or(elsewhere.as_ref()).is_some_and(|it| is_seen(keeper, &seen_by, it)) {
        return Err(Problem::not_found("request"));
    }
    let Decision { decision, scope, updated_input, message, shown_digest } = decision;
    if updated_input.as_ref().is_some_and(|input| !input.is_object()) {
        return Err(Problem::bad_request("`updated_input` is an object, as every tool's input is"));
    }
    let verdict = match decision {
        Choice::Allow => Verdict::Allow { updated_input, for_session: scope == Scope::Session },
        Choice::Deny => Verdict::Deny { message },
    };
    if let Some(attention) = elsewhere {
        return keeper.decide_elsewhere(attention, &shown_digest, verdict, by).await.map_err(refused);
    }
    // Somebody who took over while this keeper stood still asks anew; nothing that was asked before is done then.
    let session =
        here.as_ref().filter(|it| it.state == AttentionState::Pending).map(|it| &it.shown.session_id);
    if let (Choice::Allow, Some(driver)) = (decision, session.and_then(|id| keeper.drivers.get(id)))
        && !driver.still_drives(keeper, Doubt::Always).await
    {
        return Err(Problem::conflict(
            "held",
            "somebody else drives the session by now, and nothing was allowed",
        )
        .hint("look at what is asked there"));
    }
    let (own, digest, who) = (Arc::clone(keeper), shown_digest, by.to_owned());
    let decided = tokio::task::spawn_blocking(move || own.attention.decide(&id, &digest, verdict, &who));
    let decided = decided.await.map_err(|error| Problem::failed(&error))?;
    let attention = decided.map_err(refused)?;
    keeper.tell_decision(&attention, by);
    Ok(attention)
}

fn refused(undecided: Undecided) -> Problem {
    match undecided {
        Undecided::Unknown => Problem::not_found("request"),
        Undecided::Failed(error) => Problem::failed(&error),
        Undecided::Changed(attention) => {
            Problem::conflict("not-what-was-shown", "the request is another than the one that was shown")
                .hint("look at it again")
                .with("attention", attention)
        }
        Undecided::Over(attention) => {
            Problem::conflict("already-decided", "the request is over").with("attention", attention)
        }
        Undecided::Unheard => Problem::new(StatusCode::GATEWAY_TIMEOUT, "not-heard")
            .detail("the keeper that drives the session has not heard the decision yet")
            .hint("it will, if it lives; look at the request again")
            .retryable(),
    }
}

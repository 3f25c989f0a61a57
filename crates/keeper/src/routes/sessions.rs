//! Lists of sessions, and what can be done to one without driving it.

use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use rethread_store::Archive;
use rethread_transcripts::Shelf;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::card::{HealthStatus, Home, SessionCard, SessionState};
use crate::catalogue::{Catalogue, Key, Known, Rank};
use crate::drive::Begin;
use crate::extract::{Asked, Body, SessionName};
use crate::gate::Caller;
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope::Scope;

/// The most sessions or messages on one page, and how many there are usually.
pub(crate) const MOST: usize = 500;
pub(crate) const USUAL: usize = 50;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// Only those of this repository or directory.
    project: Option<String>,
    /// Only those in this state.
    state: Option<SessionState>,
    /// Only those of this health.
    health: Option<HealthStatus>,
    /// Only those with this text in their name, first prompt, directory or id.
    q: Option<String>,
    /// Only archived ones, or none; none is usual.
    archived: Option<bool>,
    home: Option<Home>,
    sort: Option<Sort>,
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// In which order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sort {
    /// The one that was written to last first.
    #[default]
    Updated,
    /// The one that began last first.
    Created,
}

/// A page of sessions.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionPage {
    items: Vec<Arc<SessionCard>>,
    /// Where the next page begins; null on the last one.
    next: Option<String>,
}

/// Lists sessions
#[utoipa::path(get, path = "/sessions", operation_id = "list_sessions", params(SessionsQuery), responses((status = 200, body = SessionPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
    Asked(query): Asked<SessionsQuery>,
) -> Result<Json<SessionPage>, Problem> {
    // Who wants only native ones does not wait for a store.
    if query.home != Some(Home::Native) {
        keeper.refresh_stored().await;
    }
    let limit = query.limit.map_or(USUAL, |limit| (limit as usize).clamp(1, MOST));
    let cursor = match &query.cursor {
        Some(cursor) => Some(parse(cursor).ok_or_else(|| Problem::bad_request("that is no cursor"))?),
        None => None,
    };
    let wanted = Wanted::of(&query, &scope);
    let catalogue = keeper.catalogue();
    let ranked = match query.sort.unwrap_or_default() {
        Sort::Updated => page(catalogue.after(cursor.as_ref()), &wanted, limit),
        Sort::Created => {
            let began = |card: &Arc<SessionCard>| card.created_at.unwrap_or(Timestamp::MIN);
            let mut all: Vec<(Rank, &Arc<SessionCard>)> = catalogue
                .after(None)
                .map(|(rank, card)| (Rank::new(began(card), rank.key().clone()), card))
                .filter(|(rank, _)| cursor.as_ref().is_none_or(|cursor| rank > cursor))
                .collect();
            all.sort_by(|one, other| one.0.cmp(&other.0));
            page(all.iter().map(|(rank, card)| (rank, *card)), &wanted, limit)
        }
    };
    Ok(Json(ranked))
}

fn page<'a>(
    sessions: impl Iterator<Item = (&'a Rank, &'a Arc<SessionCard>)>,
    wanted: &Wanted<'_>,
    limit: usize,
) -> SessionPage {
    let mut items = Vec::with_capacity(limit);
    let mut last = None;
    for (rank, card) in sessions.filter(|(_, card)| wanted.admits(card)) {
        if items.len() == limit {
            return SessionPage { items, next: last.map(format) };
        }
        items.push(Arc::clone(card));
        last = Some(rank);
    }
    SessionPage { items, next: None }
}

struct Wanted<'a> {
    query: &'a SessionsQuery,
    scope: &'a Scope,
    text: Option<String>,
}

impl<'a> Wanted<'a> {
    fn of(query: &'a SessionsQuery, scope: &'a Scope) -> Self {
        Self { query, scope, text: query.q.as_ref().map(|text| text.to_lowercase()) }
    }

    fn admits(&self, card: &SessionCard) -> bool {
        let Self { query, scope, text } = self;
        let place =
            |project: &String| [&card.project, &card.cwd].into_iter().flatten().any(|it| it == project);
        let says = |text: &String| {
            let texts = [&card.name, &card.first_prompt, &card.cwd, &card.git_branch];
            let has = |it: &String| it.to_lowercase().contains(text.as_str());
            texts.into_iter().flatten().any(has) || card.session_id.starts_with(text.as_str())
        };
        query.project.as_ref().is_none_or(place)
            && query.state.is_none_or(|state| card.state == state)
            && query.health.is_none_or(|health| card.health.status == health)
            && query.home.is_none_or(|home| card.home == home)
            && card.archived == query.archived.unwrap_or(false)
            && text.as_ref().is_none_or(says)
            && scope.admits(card.cwd.as_deref())
    }
}

fn format(rank: &Rank) -> String {
    let home = if rank.key().home == Home::Native { 'n' } else { 's' };
    format!("{}.{home}.{}", rank.updated_at().as_nanosecond(), rank.key().id)
}

fn parse(cursor: &str) -> Option<Rank> {
    let (at, rest) = cursor.split_once('.')?;
    let (home, id) = rest.split_once('.')?;
    let home = match home {
        "n" => Home::Native,
        "s" => Home::Stored,
        _ => return None,
    };
    let at = Timestamp::from_nanosecond(at.parse().ok()?).ok()?;
    Some(Rank::new(at, Key { home, id: id.to_owned() }))
}

/// Finds a session that may be seen.
pub(crate) fn find(keeper: &Keeper, name: &SessionName) -> Result<Known, Problem> {
    let get = |catalogue: &Catalogue| catalogue.find(name.home, &name.id).cloned();
    let known = get(&keeper.catalogue()).filter(|known| name.scope.admits(known.card.cwd.as_deref()));
    known.ok_or_else(|| Problem::not_found("session"))
}

/// Finds a session, also one that another program has just made.
pub(crate) async fn find_fresh(keeper: &Arc<Keeper>, name: &SessionName) -> Result<Known, Problem> {
    if let Ok(known) = find(keeper, name)
        && let Some(session) = &known.native
    {
        if keeper.look_at(&session.path) {
            return find(keeper, name);
        }
        // Its file is gone, or something else is in its place; there may be a copy in the store.
        keeper.change(|catalogue| catalogue.remove(&known.key()));
    }
    keeper.forget_stored();
    keeper.list_stored().await.map_err(|error| Problem::failed(&error))?;
    find(keeper, name)
}

/// What is known of a session
#[utoipa::path(get, path = "/sessions/{id}", operation_id = "get_session", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = SessionCard), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn get(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
) -> Result<Json<Arc<SessionCard>>, Problem> {
    Ok(Json(find_fresh(&keeper, &name).await?.card))
}

/// What to change; what is not named stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    name: Option<String>,
    /// A native session has one tag at most.
    tags: Option<Vec<String>>,
    archived: Option<bool>,
}

/// Names a session, tags it, or puts it away
#[utoipa::path(patch, path = "/sessions/{id}", operation_id = "change_session", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), request_body = Change, responses((status = 200, body = SessionCard), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn patch(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
    Body(change): Body<Change>,
) -> Result<Json<Arc<SessionCard>>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let id = known.card.session_id.clone();
    match (&known.native, &keeper.native) {
        (Some(session), Some(native)) => {
            // Only a file that may be read is written to.
            keeper.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
            // Before anything is changed: all of it is, or nothing.
            if change.tags.as_ref().is_some_and(|tags| tags.len() > 1) {
                return Err(Problem::bad_request("a session of Claude Code's own has one tag at most"));
            }
            if let Some(name) = &change.name {
                native.folder.rename(&id, name)?;
            }
            if let Some(tags) = &change.tags {
                native.folder.tag(&id, tags.first().map(String::as_str))?;
            }
            if let Some(archived) = change.archived {
                native.folder.archive(&id, if archived { Shelf::Archive } else { Shelf::List })?;
            }
        }
        (None, _) if known.card.state == SessionState::Pending => rename_pending(&keeper, &id, &change)?,
        _ => {
            let session = keeper.store().open(&id.parse()?).await?;
            let (name, tags) = (change.name, change.tags);
            if name.is_some() || tags.is_some() {
                let update = move |metadata: &mut rethread_store::Metadata| {
                    metadata.name = name.clone().or_else(|| metadata.name.take());
                    metadata.tags = tags.clone().unwrap_or_else(|| std::mem::take(&mut metadata.tags));
                };
                session.update(update).await?;
            }
            if let Some(archived) = change.archived {
                session.archive(if archived { Archive::Away } else { Archive::Back }).await?;
            }
        }
    }
    keeper.door.audit.write("change", &caller.name(), json!({ "session": id }));
    get(State(keeper), name).await
}

/// A session that has not begun yet has a name, and nothing else to change.
fn rename_pending(keeper: &Keeper, id: &str, change: &Change) -> Result<(), Problem> {
    let (Some(name), None, None) = (&change.name, &change.tags, change.archived) else {
        return Err(Problem::conflict("pending", "this session has not begun yet: only its name can change"));
    };
    if name.trim().is_empty() {
        return Err(Problem::bad_request("a name must not be blank"));
    }
    let driver = keeper.drivers.get(id).ok_or_else(|| Problem::not_found("session"))?;
    let begin = driver.rename(name);
    keeper.pending.add(&begin).map_err(|error| Problem::failed(&error))?;
    keeper.add_pending(&begin);
    Ok(())
}

/// What became of a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Deleted {
    /// What to `POST` to take it out again.
    undo: String,
}

/// Moves a session to the trash
#[utoipa::path(delete, path = "/sessions/{id}", operation_id = "delete_session", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = Deleted), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
) -> Result<Json<Deleted>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let key = known.key();
    keeper.refuse_while_driven(&key).await?;
    match (&known.native, &keeper.native) {
        (Some(session), Some(native)) => {
            keeper.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
            // Its copy goes with it, or it would be listed in its place.
            let is_twin = keeper.catalogue().is_twin(&key.id);
            if is_twin {
                keeper.store().delete(&key.id.parse()?).await?;
            }
            native.folder.delete(&key.id, &keeper.settings.trash)?;
        }
        _ if keeper.pending.delete(&key.id) => drop(keeper.drivers.remove(&key.id)),
        _ => drop(keeper.store().delete(&key.id.parse()?).await?),
    }
    keeper.door.audit.write("delete", &caller.name(), json!({ "session": key.id, "home": key.home }));
    keeper.change(|catalogue| catalogue.remove(&key));
    let home = if key.home == Home::Native { "native" } else { "stored" };
    Ok(Json(Deleted { undo: format!("/api/v1/sessions/{home}:{}/restore", key.id) }))
}

/// Takes a session out of the trash
#[utoipa::path(post, path = "/sessions/{id}/restore", operation_id = "restore_session", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = SessionCard), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn restore(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    name: SessionName,
) -> Result<Json<Arc<SessionCard>>, Problem> {
    let trash = &keeper.settings.trash;
    let trashed = rethread_transcripts::ClaudeFolder::trashed(trash);
    let admits = |begin: &Begin| name.scope.admits(begin.cwd.to_str());
    if let Some(begin) = keeper.pending.restore(&name.id, admits) {
        keeper.recall(begin);
        keeper.door.audit.write("restore", &caller.name(), json!({ "session": name.id }));
        return get(State(keeper), name).await;
    }
    let is_native = name.home != Some(Home::Stored) && trashed.iter().any(|it| it.session_id == name.id);
    match (&keeper.native, is_native) {
        (Some(native), true) => {
            let path = native.folder.restore(&name.id, trash)?;
            if !keeper.look_at(&path) || find(&keeper, &name).is_err() {
                // Outside of the allowed roots: nobody here may know of it.
                native.folder.delete(&name.id, trash)?;
                let key = Key { home: Home::Native, id: name.id };
                keeper.change(|catalogue| catalogue.remove(&key));
                return Err(Problem::not_found("session"));
            }
            keeper.restore_copy(&name.id).await?;
        }
        _ => {
            let id: rethread_store::SessionId = name.id.parse()?;
            let metadata = keeper.store().metadata(&id).await?;
            let cwd = metadata.cwd.as_deref();
            let is_seen = keeper.admits(cwd.map(Path::new)) && name.scope.admits(cwd);
            if metadata.trashed_at.is_none() || !is_seen {
                return Err(Problem::not_found("session"));
            }
            keeper.store().restore(&id).await?;
        }
    }
    keeper.door.audit.write("restore", &caller.name(), json!({ "session": name.id }));
    get(State(keeper), name).await
}

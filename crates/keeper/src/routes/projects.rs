//! Sessions by the repository they work in.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::paging::{newest_first, page};
use crate::card::{SessionCard, SessionState};
use crate::extract::Asked;
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::scope::Scope;

/// A repository, or a directory.
#[derive(Serialize, ToSchema)]
pub(crate) struct Project {
    /// Its directory; null for sessions that do not say where they work.
    project: Option<String>,
    /// The working directories in it, worktrees included.
    directories: Vec<String>,
    sessions: u64,
    /// How many of them wait for a person.
    waiting: u64,
    running: u64,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProjectsQuery {
    /// How many at most; all of them if it is not said.
    #[param(minimum = 1)]
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// A page of projects.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProjectPage {
    items: Vec<Project>,
    /// Where the next page begins; null on the last one.
    next: Option<String>,
}

/// Lists projects, the one that was used last first
#[utoipa::path(get, path = "/projects", params(ProjectsQuery), responses((status = 200, body = ProjectPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn projects(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
    Asked(query): Asked<ProjectsQuery>,
) -> Result<Json<ProjectPage>, Problem> {
    keeper.refresh_stored().await;
    let catalogue = keeper.catalogue();
    let (mut items, mut known): (Vec<Project>, HashMap<Option<String>, usize>) = Default::default();
    let is_shown = |card: &SessionCard| !card.archived && scope.admits(card.cwd.as_deref());
    for (_, card) in catalogue.after(None).filter(|(_, card)| is_shown(card)) {
        let place = card.project.clone().or_else(|| card.cwd.clone());
        let at = *known.entry(place.clone()).or_insert_with(|| {
            // The first one that comes is the newest.
            let (directories, updated_at) = (Vec::new(), card.updated_at);
            items.push(Project {
                project: place,
                directories,
                sessions: 0,
                waiting: 0,
                running: 0,
                updated_at,
            });
            items.len() - 1
        });
        let project = &mut items[at];
        project.sessions += 1;
        project.waiting += u64::from(card.state == SessionState::Waiting);
        project.running += u64::from(card.state == SessionState::Running);
        if let Some(cwd) = card.cwd.as_ref().filter(|cwd| !project.directories.contains(cwd)) {
            project.directories.push(cwd.clone());
        }
    }
    let key = |it: &Project| newest_first(it.updated_at, it.project.as_deref().unwrap_or_default());
    items.sort_by_cached_key(key);
    let (items, next) = page(items, key, query.limit, query.cursor.as_deref());
    Ok(Json(ProjectPage { items, next }))
}

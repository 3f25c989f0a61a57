//! Directories in which a session may begin.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::sessions::MOST;
use crate::extract::Asked;
use crate::folders::{Folder, folders};
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::roots::Roots;
use crate::scope::Scope;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DirectoriesQuery {
    /// A directory; where to begin if it is missing.
    path: Option<String>,
    /// Also those whose name begins with a dot.
    hidden: Option<bool>,
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// The directories in a directory, or those to begin with.
#[derive(Serialize, ToSchema)]
pub(crate) struct DirectoryPage {
    /// The directory, by the name that leads to it without links; null for those to begin with.
    path: Option<String>,
    /// The directory that it is in, if that may be seen.
    parent: Option<String>,
    items: Vec<Directory>,
    /// Where the next page begins; null on the last one.
    next: Option<String>,
}

/// A directory.
#[derive(Serialize, ToSchema)]
pub(crate) struct Directory {
    name: String,
    path: String,
    /// It is the root of a git repository or worktree.
    repository: bool,
}

/// The directories in which a session may begin
#[utoipa::path(get, path = "/directories", params(DirectoriesQuery), responses((status = 200, body = DirectoryPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn directories(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
    Asked(query): Asked<DirectoriesQuery>,
) -> Result<Json<DirectoryPage>, Problem> {
    let limit = query.limit.map_or(MOST, |limit| (limit as usize).clamp(1, MOST));
    let roots = scope.within(&keeper.roots).ok_or_else(|| Problem::not_found("directory"))?;
    let page = move || match (&query.path, roots.list()) {
        (None, [_, _, ..]) => Ok(beginnings(roots.list())),
        (None, [only]) => within(&roots, only, &query, limit),
        (None, []) => within(&roots, &keeper.settings.start, &query, limit),
        (Some(path), _) => within(&roots, Path::new(path), &query, limit),
    };
    let page = tokio::task::spawn_blocking(page).await.map_err(|error| Problem::failed(&error))?;
    page.map(Json)
}

/// Several roots, and nothing above them.
fn beginnings(roots: &[PathBuf]) -> DirectoryPage {
    let items = roots.iter().filter_map(|root| {
        let path = root.to_str()?.to_owned();
        Some(Directory {
            name: path.clone(),
            path,
            repository: root.join(".git").try_exists().is_ok_and(|is| is),
        })
    });
    DirectoryPage { path: None, parent: None, items: items.collect(), next: None }
}

fn within(
    roots: &Roots,
    path: &Path,
    query: &DirectoriesQuery,
    limit: usize,
) -> Result<DirectoryPage, Problem> {
    let no_such = || Problem::not_found("directory");
    let (directory, handle) = roots.open(path).ok_or_else(no_such)?;
    let all = folders(&handle).map_err(|error| {
        Problem::conflict("unreadable", format!("this directory cannot be read: {error}"))
    })?;
    let is_shown = |folder: &Folder| query.hidden == Some(true) || !folder.name.starts_with('.');
    let is_later = |folder: &Folder| query.cursor.as_ref().is_none_or(|cursor| folder.name > *cursor);
    let mut items: Vec<Directory> = Vec::with_capacity(limit.min(all.len()));
    let mut next = None;
    for folder in all.into_iter().filter(|folder| is_shown(folder) && is_later(folder)) {
        if items.len() == limit {
            next = items.last().map(|last| last.name.clone());
            break;
        }
        let repository = folder.is_repository(&handle);
        let Some(path) = directory.join(&folder.name).to_str().map(str::to_owned) else { continue };
        items.push(Directory { name: folder.name, path, repository });
    }
    let parent = directory.parent().filter(|parent| roots.admit(Some(parent)));
    let text = |path: &Path| path.to_str().map(str::to_owned);
    Ok(DirectoryPage { path: text(&directory), parent: parent.and_then(text), items, next })
}

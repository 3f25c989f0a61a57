//! The table of routes. What is not in it does not exist, and its description is made from it.

pub(crate) mod about;
mod attention;
pub(crate) mod auth;
mod checkpoints;
mod demo;
mod diff;
mod directories;
mod drive;
mod events;
mod file_history;
mod messages;
mod paging;
mod problems;
mod projects;
mod search;
pub(crate) mod session_store;
mod sessions;
mod sketches;
mod stored_page;
mod subagents;
mod tokens;
mod transcript;
mod tree;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router, middleware};
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Description;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::gate::{BODY, gate};
use crate::keeper::Keeper;
use crate::page;
use crate::problem::Problem;

pub(crate) use messages::lines_since;

#[derive(OpenApi)]
#[openapi(
    info(title = "rethread keeper", description = "Every session on this machine: read, follow, drive, rewind."),
    components(schemas(Problem, sessions::Sort, messages::Branch)),
    security(("token" = []), ("cookie" = [])),
    modifiers(&Keys)
)]
struct Api;

/// The two ways to log in.
struct Keys;

impl utoipa::Modify for Keys {
    fn modify(&self, api: &mut Description) {
        use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        let cookie = ApiKey::Cookie(ApiKeyValue::new("rethread-7717"));
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
    }
}

fn table() -> OpenApiRouter<Arc<Keeper>> {
    let api = OpenApiRouter::default()
        .routes(routes!(about::healthz))
        .routes(routes!(about::info))
        .routes(routes!(about::audit))
        .routes(routes!(about::doctor))
        .routes(routes!(about::metrics))
        .routes(routes!(about::stop))
        .routes(routes!(demo::begin))
        .routes(routes!(auth::exchange))
        .routes(routes!(auth::logout))
        .routes(routes!(auth::boot))
        .routes(routes!(projects::projects))
        .routes(routes!(directories::directories))
        .routes(routes!(sessions::list, drive::create))
        .routes(routes!(sessions::get, sessions::patch, sessions::delete))
        .routes(routes!(sessions::restore))
        .routes(routes!(messages::messages))
        .routes(routes!(transcript::raw))
        .routes(routes!(tree::tree))
        .routes(routes!(subagents::subagents))
        .routes(routes!(problems::problems))
        .routes(routes!(problems::bytes))
        .routes(routes!(sketches::sketches))
        .routes(routes!(drive::turns))
        .routes(routes!(drive::queue))
        .routes(routes!(drive::unqueue))
        .routes(routes!(drive::resume_queue))
        .routes(routes!(drive::interrupt))
        .routes(routes!(drive::fork))
        .routes(routes!(drive::lease))
        .routes(routes!(checkpoints::list))
        .routes(routes!(diff::diff))
        .routes(routes!(checkpoints::rewind))
        .routes(routes!(checkpoints::undo))
        .routes(routes!(attention::list))
        .routes(routes!(attention::decide))
        .routes(routes!(search::search))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .merge(session_store::table())
        .routes(routes!(events::events))
        .routes(routes!(events::stream));
    OpenApiRouter::with_openapi(Api::openapi()).nest("/api/v1", api)
}

/// Returns every route there is: method and path.
#[must_use]
pub fn route_table() -> Vec<(String, String)> {
    let (_, description) = table().split_for_parts();
    let description = serde_json::to_value(&description).unwrap_or_default();
    let paths = description["paths"].as_object().cloned().unwrap_or_default();
    let methods = |item: &serde_json::Value| -> Vec<String> {
        let members =
            item.as_object().map(|item| item.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let known = ["get", "post", "put", "patch", "delete"];
        members
            .into_iter()
            .filter(|name| known.contains(&name.as_str()))
            .map(|name| name.to_uppercase())
            .collect()
    };
    let own = ["/", "/healthz", "/assets/{file}", "/api/v1/openapi.json"];
    let own = own.into_iter().map(|path| ("GET".to_owned(), path.to_owned()));
    let api = paths.iter().flat_map(|(path, item)| methods(item).into_iter().map(|it| (it, path.clone())));
    own.chain(api).collect()
}

/// Returns the description of the API, as JSON.
#[must_use]
pub fn openapi() -> String {
    let (_, description) = table().split_for_parts();
    description.to_pretty_json().unwrap_or_default()
}

/// Puts everything together: routes within, the gate around all of it.
pub(crate) fn app(keeper: &Arc<Keeper>) -> Router {
    let (router, description) = table().split_for_parts();
    let description = Arc::new(serde_json::to_value(&description).unwrap_or_default());
    router
        .route("/", get(page::html))
        .route("/assets/{file}", get(page::asset))
        .route("/healthz", get(about::healthz))
        .route("/api/v1/openapi.json", get(async move || Json((*description).clone())))
        .fallback(async || Problem::not_found("place"))
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED)
        .layer(DefaultBodyLimit::max(usize::try_from(BODY).unwrap_or(usize::MAX)))
        .layer(Extension(Arc::clone(&keeper.door)))
        .layer(middleware::from_fn_with_state(Arc::clone(&keeper.door), gate))
        .with_state(Arc::clone(keeper))
}

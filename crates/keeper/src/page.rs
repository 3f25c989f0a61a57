//! What a browser is shown at `/`: the page that `web/` is built into, or a notice where it was not built.

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::problem::Problem;

/// The page's files. Their names hold a digest of their content, so that a browser may keep them.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Built;

const NOTICE: &str = include_str!("page.html");
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Returns whether a path is one of the page's own files, which anybody may have.
pub(crate) fn is_static(path: &str) -> bool {
    path.starts_with("/assets/")
}

pub(crate) async fn html() -> Response {
    match Built::get("index.html") {
        Some(page) => file("index.html", page),
        None => typed("text/html; charset=utf-8", NOTICE),
    }
}

pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    match Built::get(&format!("assets/{name}")) {
        Some(found) => ([(header::CACHE_CONTROL, KEPT)], file(&name, found)).into_response(),
        None => Problem::not_found("place").into_response(),
    }
}

fn file(name: &str, file: EmbeddedFile) -> Response {
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    typed(kind, file.data)
}

fn typed(kind: &'static str, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

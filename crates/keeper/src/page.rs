//! What a browser is shown at `/`.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns whether a path is one of the page's own files.
pub(crate) fn is_static(path: &str) -> bool {
    matches!(path, "/page.css" | "/page.js")
}

pub(crate) async fn html() -> Response {
    file("text/html; charset=utf-8", HTML)
}

pub(crate) async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

pub(crate) async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

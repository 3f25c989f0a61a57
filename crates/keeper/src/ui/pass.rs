//! Passing a page's requests on to the keeper, and its answers back: what is needed of them, and nothing else.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;

use super::running::Ui;
use crate::door::Door;
use crate::gate::{BODY, CUSTOM, Caller};
use crate::keeper::over;
use crate::problem::Problem;

/// What the keeper is told of a request: no cookie, no origin, no name of ours.
const ASKED: [HeaderName; 4] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    HeaderName::from_static(CUSTOM),
    HeaderName::from_static("idempotency-key"),
];
/// What the page is told of an answer: nothing that sets a cookie.
const ANSWERED: [HeaderName; 5] =
    [header::CONTENT_TYPE, header::LOCATION, header::RETRY_AFTER, header::ALLOW, header::CACHE_CONTROL];

/// Passes a request on.
pub(super) async fn pass(State(ui): State<Arc<Ui>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let too_large = |_| Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large");
    let body = to_bytes(body, usize::try_from(BODY).unwrap_or(usize::MAX)).await.map_err(too_large)?;
    let headers = some(&parts.headers, &ASKED);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let answer = ui.remote.ask(parts.method, path, headers, Body::from(body)).await;
    let answer = answer.map_err(|error| {
        tracing::warn!(%error, "the keeper does not answer");
        ui.remote.unreachable()
    })?;
    back(&ui, answer)
}

/// Passes a stream on: both ways, as it is, until either end leaves or the page is logged out.
pub(super) async fn stream(
    State(ui): State<Arc<Ui>>,
    Extension(door): Extension<Arc<Door>>,
    caller: Caller,
    mut request: Request,
) -> Result<Response, Problem> {
    const UPGRADE: [HeaderName; 4] =
        [header::CONNECTION, header::UPGRADE, header::SEC_WEBSOCKET_KEY, header::SEC_WEBSOCKET_VERSION];
    let headers = some(request.headers(), &UPGRADE);
    let answer = ui.remote.ask(Method::GET, "/api/v1/stream", headers, Body::empty()).await;
    let mut answer = answer.map_err(|_| ui.remote.unreachable())?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return back(&ui, answer);
    }
    let (page, keeper) = (hyper::upgrade::on(&mut request), hyper::upgrade::on(&mut answer));
    let mut ending = ui.ending.subscribe();
    tokio::spawn(async move {
        let (Ok(page), Ok(keeper)) = tokio::join!(page, keeper) else { return };
        let (mut page, mut keeper) = (TokioIo::new(page), TokioIo::new(keeper));
        // Neither end reads ahead of the other, so that a slow page is known to the keeper as one.
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut page, &mut keeper) => {}
            () = over(&mut ending) => {}
            () = caller.until_over(&door) => {}
        }
    });
    const ACCEPTED: [HeaderName; 3] = [header::CONNECTION, header::UPGRADE, header::SEC_WEBSOCKET_ACCEPT];
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    *response.headers_mut() = some(answer.headers(), &ACCEPTED);
    Ok(response)
}

fn back(ui: &Ui, answer: axum::http::Response<Incoming>) -> Result<Response, Problem> {
    // The page is logged in; it is this program that was not let in.
    if matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS) {
        return Err(ui.remote.turned_away());
    }
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(Body::new(body));
    (*response.status_mut(), *response.headers_mut()) = (parts.status, some(&parts.headers, &ANSWERED));
    Ok(response)
}

fn some(all: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let pick = |name: &HeaderName| -> Option<(HeaderName, HeaderValue)> {
        Some((name.clone(), all.get(name)?.clone()))
    };
    names.iter().filter_map(pick).collect()
}

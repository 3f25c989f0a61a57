//! Logging in and out.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::extract::Body;
use crate::gate::{Caller, unknown};
use crate::keeper::Keeper;
use crate::problem::Problem;

/// A code out of `rethread open`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Exchange {
    code: String,
}

/// Changes a one-time code for a cookie
#[utoipa::path(post, path = "/auth/exchange", security(()), request_body = Exchange, responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn exchange(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    Body(Exchange { code }): Body<Exchange>,
) -> Result<Response, Problem> {
    let Some(cookie) = keeper.credentials.exchange(&code) else {
        keeper.audit.write("login-failed", &caller.name(), json!({}));
        return Err(unknown(&keeper, "the code was used already, or is too old"));
    };
    keeper.audit.write("login", &caller.name(), json!({}));
    let name = keeper.cookie_name();
    let cookie = format!("{name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Ends the login of the page that asks
#[utoipa::path(post, path = "/auth/logout", responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn logout(State(keeper): State<Arc<Keeper>>, caller: Caller) -> Response {
    if let Caller::Page { cookie } = &caller {
        keeper.credentials.forget(cookie);
    }
    keeper.audit.write("logout", &caller.name(), json!({}));
    let name = keeper.cookie_name();
    let cookie = format!("{name}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}

/// A way in for a browser.
#[derive(Serialize, ToSchema)]
pub(crate) struct Boot {
    /// An address that works once, within a minute. The code is in its fragment, which no server sees.
    url: String,
}

/// Makes a one-time address that logs a browser in
#[utoipa::path(post, path = "/auth/boot", responses((status = 200, body = Boot), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn boot(State(keeper): State<Arc<Keeper>>, caller: Caller) -> Json<Boot> {
    keeper.audit.write("boot", &caller.name(), json!({}));
    let code = keeper.credentials.code();
    Json(Boot { url: format!("http://localhost:{}/#boot={code}", keeper.address.port()) })
}

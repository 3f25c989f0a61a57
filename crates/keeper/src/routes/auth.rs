//! Logging in and out.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::door::Door;
use crate::extract::Body;
use crate::gate::{Caller, unknown};
use crate::problem::Problem;

/// A code out of `rethread open`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Exchange {
    code: String,
}

/// Changes a one-time code for a cookie
#[utoipa::path(post, path = "/auth/exchange", security(()), request_body = Exchange, responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn exchange(
    Extension(door): Extension<Arc<Door>>,
    caller: Caller,
    headers: HeaderMap,
    Body(Exchange { code }): Body<Exchange>,
) -> Result<Response, Problem> {
    let Some(cookie) = door.credentials.exchange(&code) else {
        let refused = unknown(&door, "the code was used already, or is too old");
        // Guessing that is slowed down is not written down time after time: it must not fill the disk.
        if refused.status == StatusCode::UNAUTHORIZED {
            door.audit.write("login-failed", &caller.name(), json!({}));
        }
        return Err(refused);
    };
    door.audit.write("login", &caller.name(), json!({}));
    let name = door.cookie_name();
    // A page that came over TLS, through a proxy, never shows it in the open.
    let is_https = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let secure = if is_https { "; Secure" } else { "" };
    let cookie = format!("{name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000{secure}");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Ends the login of the page that asks
#[utoipa::path(post, path = "/auth/logout", responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn logout(Extension(door): Extension<Arc<Door>>, caller: Caller) -> Response {
    if let Caller::Page { cookie } = &caller {
        door.credentials.forget(cookie);
    }
    door.audit.write("logout", &caller.name(), json!({}));
    let name = door.cookie_name();
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
pub(crate) async fn boot(Extension(door): Extension<Arc<Door>>, caller: Caller) -> Json<Boot> {
    door.audit.write("boot", &caller.name(), json!({}));
    Json(Boot { url: door.one_time_url() })
}

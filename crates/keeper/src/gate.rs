//! What every request passes before anything else looks at it, and what every answer gets.
//!
//! The order matters: whose name was called (which stops DNS rebinding), what the path looks like, which page asks,
//! who asks, and only then how.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use tracing::{Instrument as _, field};

use crate::TRACES;
use crate::defect::Defect;
use crate::door::Door;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::routes::session_store;

/// A header that no form and no image can send.
pub(crate) const CUSTOM: &str = "x-rethread";
/// The most that a request may bring.
pub(crate) const BODY: u64 = 8 << 20;
/// The same where sessions are appended to: a line of a transcript may hold an image, or what a tool said.
pub(crate) const APPEND: u64 = 64 << 20;
/// How many digits a secret has: no id of anything has so many.
const SECRET: usize = 64;
/// The longest path with its query that makes sense.
const PATH: usize = 4096;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Who asks, once they passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Somebody who asks for what anybody may have.
    Anybody,
    /// A script with the token.
    Token,
    /// A program with a token for one namespace of the session store.
    Program {
        /// What the token is called.
        name: String,
    },
    /// A page with a cookie.
    Page {
        /// The cookie, to be forgotten at logout.
        cookie: String,
    },
    /// A process of this user, over the Unix socket.
    Local {
        /// The process.
        pid: u32,
    },
}

impl Caller {
    /// Waits until this caller would not be let in any more.
    pub(crate) async fn until_over(&self, door: &Door) {
        match self {
            Caller::Page { cookie } => door.credentials.until_over(cookie).await,
            _ => std::future::pending().await,
        }
    }

    /// Returns a name for the audit log and for other clients.
    pub(crate) fn name(&self) -> String {
        match self {
            Caller::Anybody => "anybody".into(),
            Caller::Token => "token".into(),
            Caller::Program { name } => format!("token {name}"),
            Caller::Page { .. } => "page".into(),
            Caller::Local { pid } => format!("process {pid}"),
        }
    }
}

/// Lets a request pass, or says why not.
pub(crate) async fn gate(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().cloned().unwrap_or(Peer::Stranger { why: "nobody asks" });
    door.metrics.requests.add(1);
    let mut response = match pass(&door, &request, &peer) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            let (method, path) = (request.method().as_str(), without_secrets(request.uri().path()));
            let span = tracing::info_span!(target: TRACES, "request", method, path, status = field::Empty);
            let response = next.run(request).instrument(span.clone()).await;
            span.record("status", response.status().as_u16());
            response
        }
        Err(problem) => {
            door.metrics.refused.add(1);
            let path: String = without_secrets(request.uri().path()).chars().take(200).collect();
            door.refuse(&format!("{peer:?}"), &problem, json!({ "path": path }));
            refused(problem)
        }
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED
        && response.headers().get(header::CONTENT_TYPE).is_none()
    {
        let allow = response.headers().get(header::ALLOW).cloned();
        response = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed").into_response();
        response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    }
    protect(response.headers_mut());
    response
}

fn refused(problem: Problem) -> Response {
    let wait = problem.about.as_ref().and_then(|about| about.get("wait_seconds")?.as_u64());
    let is_challenge = problem.status == 401;
    let mut response = problem.into_response();
    if let Some(wait) = wait {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
    }
    if is_challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // What a refused request still brings is not read.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn pass(door: &Door, request: &Request<Body>, peer: &Peer) -> Result<Caller, Problem> {
    if let Peer::Stranger { why } = peer {
        return Err(forbidden("stranger", why));
    }
    let is_local = matches!(peer, Peer::Local { .. });
    let (headers, method) = (request.headers(), request.method());
    check_host(door, request, is_local)?;
    check_path(request.uri().path(), request.uri().query())?;
    let is_upgrade = headers.contains_key(header::UPGRADE);
    let is_mutation = !matches!(*method, Method::GET | Method::HEAD);
    let path = request.uri().path();
    let is_open = is_open(method, path);
    if !is_open || is_mutation {
        check_site(headers)?;
    }
    let origin = origin(door, headers)?;
    let caller = match (peer, is_open) {
        (Peer::Local { pid }, _) => Caller::Local { pid: *pid },
        (_, true) => Caller::Anybody,
        (_, false) => authenticate(door, headers, path)?,
    };
    let needs_origin = (is_mutation || is_upgrade) && matches!(caller, Caller::Page { .. } | Caller::Anybody);
    if needs_origin && origin == Origin::Absent {
        return Err(forbidden("origin", "a page has to say where it comes from"));
    }
    if is_mutation {
        check_form(headers)?;
    }
    let most = if session_store::is_append(path) { APPEND } else { BODY };
    if headers.get(header::CONTENT_LENGTH).is_some_and(|length| number(length).is_none_or(|it| it > most)) {
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large")
            .detail(format!("a request brings at most {most} bytes")));
    }
    Ok(caller)
}

/// Returns whether anybody may ask for this.
/// Returns a path as it may be written down: whoever puts a secret into an address is refused, and yet it came.
fn without_secrets(path: &str) -> String {
    let is_secret = |part: &&str| part.len() >= SECRET;
    let mut told = path.to_owned();
    for secret in path.split(|letter: char| !letter.is_ascii_hexdigit()).filter(is_secret) {
        told = told.replace(secret, "…");
    }
    told
}

fn is_open(method: &Method, path: &str) -> bool {
    match *method {
        Method::GET | Method::HEAD => {
            matches!(path, "/" | "/healthz" | "/api/v1/healthz") || crate::page::is_static(path)
        }
        Method::POST => path == "/api/v1/auth/exchange",
        _ => false,
    }
}

fn check_host(door: &Door, request: &Request<Body>, is_local: bool) -> Result<(), Problem> {
    let misdirected = |detail: &str| {
        let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown-host").detail(detail);
        problem.hint("`rethread serve --allow-host NAME` lets it be called so")
    };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, more) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next());
    let host = host.filter(|_| more.is_none()).ok_or_else(|| misdirected("a request names one host"))?;
    if Defect::SkipTheHostCheck.is_on() {
        return Ok(());
    }
    // A request may also name a host where its path is; then both must be right.
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let known = |host: &str| is_local && host == "localhost" || door.hosts.know(host);
    match known(host) && authority.is_none_or(known) {
        true => Ok(()),
        false => Err(misdirected("this keeper is not called so")),
    }
}

fn check_path(path: &str, query: Option<&str>) -> Result<(), Problem> {
    let lower = path.to_ascii_lowercase();
    let is_odd =
        ["%2f", "%5c", "%00", "%2e", "\\", "//", "/../", "/./"].iter().any(|part| lower.contains(part))
            || lower.ends_with("/..");
    if is_odd || path.len() + query.map_or(0, str::len) > PATH {
        return Err(Problem::not_found("place"));
    }
    // Tokens belong into a header: a query ends up in histories and logs.
    let names_secret = |part: &str| matches!(part.split('=').next(), Some("token" | "access_token" | "boot"));
    match query.is_some_and(|query| query.split('&').any(names_secret)) {
        true => {
            Err(Problem::bad_request("a secret has no place in a query").hint("use `Authorization: Bearer`"))
        }
        false => Ok(()),
    }
}

fn check_site(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(forbidden("cross-site", "another site asks")),
    }
}

/// Where a page says that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Absent,
    Ours,
}

fn origin(door: &Door, headers: &HeaderMap) -> Result<Origin, Problem> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next().map(HeaderValue::as_bytes), origins.next()) {
        (None, _) => Ok(Origin::Absent),
        (Some(b"null"), None) if Defect::AcceptNullOrigin.is_on() => Ok(Origin::Ours),
        (Some(origin), None) if door.hosts.is_origin(origin) => Ok(Origin::Ours),
        (Some(_), _) => Err(forbidden("origin", "a page from elsewhere asks")),
    }
}

fn authenticate(door: &Door, headers: &HeaderMap, path: &str) -> Result<Caller, Problem> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(given) = text(header::AUTHORIZATION) {
        let token = given.strip_prefix("Bearer ").unwrap_or_default();
        return match door.credentials.is_token(token) {
            true => Ok(Caller::Token),
            false => of_program(door, token, path),
        };
    }
    let cookies =
        text(header::COOKIE).unwrap_or_default().split(';').filter_map(|it| it.trim().split_once('='));
    let cookie = cookies.filter(|(name, _)| *name == door.cookie_name()).map(|(_, value)| value).next();
    match cookie {
        Some(cookie) if door.credentials.is_login(cookie) => Ok(Caller::Page { cookie: cookie.to_owned() }),
        Some(_) => Err(unknown(door, "the login is over")),
        None => Err(unauthenticated("nobody is logged in")),
    }
}

/// A program's token opens its own namespace of the session store, and nothing else there is.
fn of_program(door: &Door, token: &str, path: &str) -> Result<Caller, Problem> {
    let Some(grant) = door.credentials.grant(token) else {
        return Err(unknown(door, "the token is not right"));
    };
    let is_its_own = session_store::namespace(path) == Some(&grant.namespace);
    match is_its_own || Defect::ForgetTheNamespace.is_on() {
        true => Ok(Caller::Program { name: grant.name }),
        false => Err(forbidden("out-of-scope", "this token is for another namespace of the session store")
            .hint(format!("it opens `/api/v1/session-store/{}/`", grant.namespace))),
    }
}

/// Somebody guessed wrong: that counts.
pub(crate) fn unknown(door: &Door, detail: &str) -> Problem {
    match door.failures.another().filter(|_| !Defect::ForgetTheRateLimit.is_on()) {
        None => unauthenticated(detail),
        Some(wait) => Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-failures")
            .detail("too many wrong guesses")
            .retryable()
            .with("wait_seconds", wait.as_secs() + 1),
    }
}

fn unauthenticated(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated")
        .detail(detail)
        .hint("`rethread open` logs a browser in")
}

fn check_form(headers: &HeaderMap) -> Result<(), Problem> {
    if !headers.contains_key(CUSTOM) {
        return Err(forbidden("no-custom-header", "changes need the header `X-Rethread: 1`"));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind.eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json")
            .detail("changes need `Content-Type: application/json`")),
    }
}

fn forbidden(code: &str, detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, code).detail(detail)
}

fn number(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.parse().ok()
}

/// Says what a browser must not do with an answer.
fn protect(headers: &mut HeaderMap) {
    let fixed = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

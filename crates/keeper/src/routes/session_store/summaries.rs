//! What SDKs make of their sessions, kept so that nobody has to make it again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::key_text::KeyText;
use super::{Namespace, StoreKey, apart};
use crate::extract::Body;
use crate::keeper::Keeper;
use crate::mirror::{Mirror, MirrorError, Summary};
use crate::problem::Problem;

/// The largest summary that is kept.
const SUMMARY: usize = 256 << 10;
/// How many summaries are read at once.
const AT_ONCE: usize = 16;

/// Which summaries.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SummariesRequest {
    #[schema(value_type = String)]
    project_key: KeyText,
    /// Whose summaries: each SDK has a form of its own.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    format: String,
}

/// What an SDK made of the sessions of a project.
#[derive(Serialize, ToSchema)]
pub(crate) struct Summaries {
    items: Vec<SummarizedSession>,
}

/// A session, and what an SDK made of it.
#[derive(Serialize, ToSchema)]
pub(crate) struct SummarizedSession {
    #[schema(value_type = String)]
    session_id: KeyText,
    /// When it was last written, in milliseconds since 1970.
    mtime: i64,
    /// Changes whenever the session does.
    version: String,
    /// What was kept last; null if nothing was. It is of the whole session if its version is the session's.
    #[schema(value_type = Option<KeptSummary>)]
    summary: Option<Summary>,
}

/// A summary that was kept.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it goes out as it was kept")]
pub(crate) struct KeptSummary {
    /// Which beginning of the session it is of.
    log: String,
    /// Up to where: it goes on with what `load` gives after this.
    position: u64,
    /// The session's version then.
    version: String,
    /// The SDK's own.
    #[schema(value_type = Object)]
    data: Box<RawValue>,
}

/// Lists what an SDK made of its sessions
#[utoipa::path(post, path = "/session-store/{namespace}/summaries", operation_id = "session_store_summaries", params(("namespace" = String, Path)), request_body = SummariesRequest, responses((status = 200, body = Summaries), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn summaries(
    State(keeper): State<Arc<Keeper>>,
    Namespace(namespace): Namespace,
    Body(SummariesRequest { project_key, format }): Body<SummariesRequest>,
) -> Result<Json<Summaries>, Problem> {
    check_format(&format)?;
    let work = async move |mirror: &Mirror| {
        let sessions = mirror.sessions(&namespace, &project_key.0).await?;
        let summarized = futures_util::stream::iter(sessions).map(async |session| {
            let summary = mirror.summary(&session.id, &format).await?;
            Ok(SummarizedSession {
                session_id: KeyText(session.session_id),
                mtime: session.modified.as_millisecond(),
                version: session.version,
                summary,
            })
        });
        let all: Vec<Result<_, MirrorError>> = summarized.buffered(AT_ONCE).collect().await;
        all.into_iter().collect::<Result<Vec<_>, _>>()
    };
    Ok(Json(Summaries { items: apart(&keeper, work).await? }))
}

/// A summary to be kept.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SummarizeRequest {
    #[schema(value_type = String)]
    project_key: KeyText,
    #[schema(value_type = String)]
    session_id: KeyText,
    /// Whose summary it is: each SDK has a form of its own.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    format: String,
    /// What `load` said of the entries it was made of.
    log: String,
    position: u64,
    version: String,
    /// The SDK's own.
    #[schema(value_type = Object)]
    data: Box<RawValue>,
}

/// Keeps what an SDK made of a session, so that nobody has to make it again
#[utoipa::path(post, path = "/session-store/{namespace}/summarize", operation_id = "session_store_summarize", params(("namespace" = String, Path)), request_body = SummarizeRequest, responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn summarize(
    State(keeper): State<Arc<Keeper>>,
    namespace: Namespace,
    Body(request): Body<SummarizeRequest>,
) -> Result<StatusCode, Problem> {
    let SummarizeRequest { project_key, session_id, format, log, position, version, data } = request;
    check_format(&format)?;
    if !data.get().starts_with('{') {
        return Err(Problem::bad_request("a summary is a JSON object"));
    }
    if data.get().len() > SUMMARY {
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large")
            .detail(format!("a summary has at most {SUMMARY} bytes")));
    }
    let key = StoreKey { project_key, session_id, subpath: None }.within(namespace);
    let summary = Summary { log, position, version, data };
    apart(&keeper, async move |mirror| mirror.summarize(&key, &format, &summary).await).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn check_format(format: &str) -> Result<(), Problem> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=40).contains(&format.len()) && format.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(Problem::bad_request("a format is 1 to 40 of a-z 0-9 -")),
    }
}

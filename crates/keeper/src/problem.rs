//! What the keeper answers instead of what was asked for: RFC 9457, the same over REST, WebSocket and in the CLI.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:rethread:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: Box<str>,
    /// What the status means.
    #[schema(value_type = String)]
    pub title: Box<str>,
    /// The HTTP status.
    pub status: u16,
    /// What happened here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub detail: Option<Box<str>>,
    /// A stable name in kebab case.
    #[schema(value_type = String)]
    pub code: Box<str>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub hint: Option<Box<str>>,
    /// What belongs to this code: who holds a lease, what became of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub about: Option<Box<Map<String, Value>>>,
}

impl Problem {
    /// Names a problem.
    pub(crate) fn new(status: StatusCode, code: &str) -> Self {
        Self {
            kind: format!("urn:rethread:problem:{code}").into(),
            title: status.canonical_reason().unwrap_or("Problem").into(),
            status: status.as_u16(),
            detail: None,
            code: code.into(),
            retryable: false,
            hint: None,
            about: None,
        }
    }

    pub(crate) fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into().into()), ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into().into()), ..self }
    }

    pub(crate) fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.about
            .get_or_insert_default()
            .insert(name.to_owned(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// There is no such thing, or none that may be seen: the two are not told apart.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found").detail(format!("there is no such {what}"))
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request").detail(detail)
    }

    /// What was asked for does not fit what is.
    pub(crate) fn conflict(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code).detail(detail)
    }

    /// Something failed here; what it was is in the keeper's log too.
    pub(crate) fn failed(error: &dyn std::error::Error) -> Self {
        let detail = with_causes(error);
        tracing::warn!(error = %detail, "a request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed").detail(detail).retryable()
    }
}

/// Returns an error and its causes on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        (status, [kind], body).into_response()
    }
}

impl From<rethread_store::Error> for Problem {
    fn from(error: rethread_store::Error) -> Self {
        use rethread_store::Error;
        match &error {
            Error::SessionNotFound(_) | Error::Gone(_) | Error::Trashed(_) => Self::not_found("session"),
            Error::EntryNotFound { .. } => Self::not_found("message"),
            Error::BadName { .. } | Error::BadEntry(_) => Self::bad_request(error.to_string()),
            Error::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large").detail(error.to_string())
            }
            Error::Held { holder, .. } | Error::Fenced { holder, .. } => {
                Self::conflict("held", error.to_string())
                    .hint("watch it, fork it, or take over")
                    .with("holder", holder.to_string())
            }
            Error::Erased(_) => Self::new(StatusCode::GONE, "erased").detail(error.to_string()),
            // It is as damaged next time.
            Error::Damaged { .. } => Self { retryable: false, ..Self::failed(&error) },
            _ => Self::failed(&error),
        }
    }
}

impl From<rethread_transcripts::Error> for Problem {
    fn from(error: rethread_transcripts::Error) -> Self {
        use rethread_transcripts::Error;
        match &error {
            Error::SessionNotFound(_) => Self::not_found("session"),
            Error::EntryNotFound { .. } => Self::not_found("message"),
            Error::BadName { .. } => Self::bad_request(error.to_string()),
            Error::SessionExists(_) => Self::conflict("exists", error.to_string()),
            Error::InUse { pid, .. } => Self::conflict("in-use", error.to_string())
                .hint("end that process first, or wait for it")
                .with("pid", pid)
                .retryable(),
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Self::not_found("session")
            }
            _ => Self::failed(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once, whoever asked for a session that had just been erased was told to try again.
    #[test]
    fn what_is_erased_or_damaged_is_not_worth_another_try() {
        use rethread_store::Error;
        let erased = Problem::from(Error::Erased("talk".parse().unwrap()));
        assert_eq!((erased.status, &*erased.code, erased.retryable), (410, "erased", false));
        let damaged = Error::Damaged { what: "session talk".into(), reason: "it has no key".into() };
        let damaged = Problem::from(damaged);
        assert_eq!((damaged.status, &*damaged.code, damaged.retryable), (500, "failed", false));
    }
}

//! What a request brings, read such that every refusal is a problem as all others are.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::card::Home;
use crate::gate::Caller;
use crate::problem::Problem;
use crate::scope::Scope;

/// The body, as JSON.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match axum::Json::<T>::from_request(request, state).await {
            Ok(axum::Json(body)) => Ok(Self(body)),
            Err(JsonRejection::BytesRejection(refused))
                if refused.status() == StatusCode::PAYLOAD_TOO_LARGE =>
            {
                Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large"))
            }
            Err(refused) => Err(Problem::bad_request(refused.body_text())),
        }
    }
}

/// The query.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(QueryRejection::FailedToDeserializeQueryString(refused)) => {
                Err(Problem::bad_request(refused.body_text()))
            }
            Err(_) => Err(Problem::bad_request("the query cannot be read")),
        }
    }
}

/// A session as a path names it: an id, or `native:ID`, or `stored:ID`.
#[derive(Clone, Debug)]
pub(crate) struct SessionName {
    pub(crate) home: Option<Home>,
    pub(crate) id: String,
    /// What whoever named it is to see: the session is not there for them if it is not in it.
    pub(crate) scope: Scope,
}

impl SessionName {
    pub(crate) fn parse(text: &str, scope: Scope) -> Option<Self> {
        let (home, id) = match text.split_once(':') {
            Some(("native", id)) => (Some(Home::Native), id),
            Some(("stored", id)) => (Some(Home::Stored), id),
            Some(_) => return None,
            None => (None, text),
        };
        // The store's rule; a native id is a UUID, which obeys it.
        id.parse::<rethread_store::SessionId>().ok()?;
        Some(Self { home, id: id.to_owned(), scope })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SessionName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let scope = Scope::from_request_parts(parts, state).await?;
        let names = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let id = names.ok().and_then(|Path(names)| names.into_iter().find(|(name, _)| name == "id"));
        id.and_then(|(_, id)| Self::parse(&id, scope)).ok_or_else(|| Problem::not_found("session"))
    }
}

/// A second name in a path.
pub(crate) struct Part(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Part {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let part = names.ok().and_then(|Path(names)| names.into_iter().next_back());
        let is_name = |part: &String| {
            (1..=128).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        part.map(|(_, part)| part).filter(is_name).map(Self).ok_or_else(|| Problem::not_found("place"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // The gate puts it there; without it nobody passed.
        let nobody = || Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated");
        parts.extensions.get::<Caller>().cloned().ok_or_else(nobody)
    }
}

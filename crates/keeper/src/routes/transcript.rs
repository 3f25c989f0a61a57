//! The whole of a conversation, for what a page does not tell.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use rethread_store::Page;
use rethread_transcripts::Transcript;

use super::sessions::find_fresh;
use crate::catalogue::Known;
use crate::extract::{Part, SessionName};
use crate::keeper::Keeper;
use crate::problem::Problem;

/// Opens a native session's transcript and reads all of it.
pub(super) async fn transcript(
    keeper: &Arc<Keeper>,
    name: &SessionName,
) -> Result<(Known, Transcript), Problem> {
    let known = find_fresh(keeper, name).await?;
    let Some(session) = known.native.clone() else {
        return Err(Problem::bad_request("a stored session has no transcript of Claude Code's"));
    };
    let own = Arc::clone(keeper);
    let read = tokio::task::spawn_blocking(move || {
        let file = own.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
        Transcript::of(file, session.path.clone()).map_err(Problem::from)
    });
    let transcript = read.await.map_err(|error| Problem::failed(&error))??;
    Ok((known, transcript))
}

/// The exact bytes of a message's line
#[utoipa::path(get, path = "/sessions/{id}/messages/{uuid}/raw", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71"), ("uuid" = String, Path, example = "u1")), responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn raw(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
    Part(uuid): Part,
) -> Result<Response, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let bytes = if known.native.is_some() {
        let (_, transcript) = transcript(&keeper, &name).await?;
        let found = tokio::task::spawn_blocking(move || {
            let chain = transcript.chain_to(&uuid)?;
            let mut reader = transcript.read(&chain);
            let mut last = Vec::new();
            while let Some(entry) = reader.next() {
                let entry = entry?;
                if entry.view().uuid.as_deref() == Some(&*uuid) {
                    last = entry.raw().to_vec();
                }
            }
            Ok::<_, Problem>(last)
        });
        found.await.map_err(|error| Problem::failed(&error))??
    } else {
        let session = keeper.store().open(&name.id.parse()?).await?;
        let history = session.messages_up_to(&uuid.parse()?).await?;
        let last = history.records.last().map(|record| record.entry.as_bytes().to_vec());
        last.ok_or_else(|| Problem::not_found("message"))?
    };
    // Nothing a browser would render, whatever is in it.
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// Returns the message that another one follows, over whatever the program put in between.
pub(crate) async fn parent_of(
    keeper: &Arc<Keeper>,
    known: &Known,
    message: &str,
) -> Result<Option<String>, Problem> {
    let id = &known.card.session_id;
    let Some(session) = known.native.clone() else {
        let session = keeper.store().open(&id.parse()?).await?;
        let page = session.page(Page::Before(message.parse()?, 1)).await?;
        return Ok(page.records.last().map(|record| record.entry.id().to_string()));
    };
    let (own, message) = (Arc::clone(keeper), message.to_owned());
    let found = tokio::task::spawn_blocking(move || {
        let file = own.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
        let transcript = Transcript::of(file, session.path.clone())?;
        let chain = transcript.chain_to(&message)?;
        let mut reader = transcript.read(&chain);
        let mut before = None;
        while let Some(entry) = reader.next() {
            let entry = entry?;
            let uuid = entry.view().uuid.map(Cow::into_owned);
            if uuid.as_deref() == Some(&*message) {
                break;
            }
            before = uuid.filter(|_| entry.is_message()).or(before);
        }
        Ok::<_, Problem>(before)
    });
    found.await.map_err(|error| Problem::failed(&error))?
}

/// Returns the messages that follow one in the conversation that would be resumed; none if it is not in there.
pub(super) async fn later_than(
    keeper: &Arc<Keeper>,
    known: &Known,
    message: &str,
) -> Result<Vec<String>, Problem> {
    let Some(session) = known.native.clone() else { return Ok(Vec::new()) };
    let (own, message) = (Arc::clone(keeper), message.to_owned());
    let found = tokio::task::spawn_blocking(move || {
        let file = own.open_native(&session.path).map_err(|_| Problem::not_found("session"))?;
        let transcript = Transcript::of(file, session.path.clone())?;
        let active = transcript.active();
        let mut reader = transcript.read(&active);
        let (mut later, mut is_later) = (Vec::new(), false);
        while let Some(entry) = reader.next() {
            let uuid = entry?.view().uuid.map(Cow::into_owned);
            later.extend(uuid.clone().filter(|_| is_later));
            is_later |= uuid.as_deref() == Some(&*message);
        }
        Ok::<_, Problem>(later)
    });
    found.await.map_err(|error| Problem::failed(&error))?
}

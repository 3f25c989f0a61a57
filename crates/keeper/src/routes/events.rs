//! What happens: as a WebSocket, and as its twin for scripts.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::extract::Asked;
use crate::frame::Frame;
use crate::gate::Caller;
use crate::keeper::{Keeper, over};
use crate::problem::Problem;
use crate::scope::Scope;
use crate::topic::Interest;

/// The most that one answer holds.
const BYTES: usize = 4 << 20;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// `EPOCH:SEQ` of the last answer; only what comes from now on if it is missing.
    after: Option<String>,
    /// How many seconds to wait for something to happen.
    #[param(minimum = 0, maximum = 60)]
    wait: Option<u32>,
    /// `session:ID`, `sessions`, `all`, with commas between; `sessions` is usual.
    topics: Option<String>,
}

/// What happened.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventPage {
    #[schema(value_type = Vec<Object>)]
    items: Vec<Box<RawValue>>,
    /// What to ask with next.
    after: String,
    /// Some events are no longer known: read the sessions anew.
    resync: bool,
}

/// Waits for events
#[utoipa::path(get, path = "/events", params(EventsQuery), responses((status = 200, body = EventPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn events(
    State(keeper): State<Arc<Keeper>>,
    scope: Scope,
    Asked(query): Asked<EventsQuery>,
) -> Result<Json<EventPage>, Problem> {
    let topics = query.topics.as_deref().unwrap_or("sessions");
    if !topics.split(',').all(Interest::is_topic) {
        return Err(Problem::bad_request("a topic is `session:ID`, `sessions` or `all`"));
    }
    let interest = Interest::of(topics.split(','));
    keeper.look_at_topics(topics.split(',')).await;
    let hub = &keeper.hub;
    let answer = |items: Vec<Box<RawValue>>, seq: u64, resync: bool| {
        Json(EventPage { items, after: format!("{}:{seq}", hub.epoch()), resync })
    };
    let cursor = match query.after.as_deref().map(|after| after.split_once(':')) {
        None => Some(hub.now().0),
        Some(None) => return Err(Problem::bad_request("`after` is EPOCH:SEQ")),
        Some(Some((epoch, seq))) => {
            let seq = seq.parse().map_err(|_| Problem::bad_request("`after` is EPOCH:SEQ"))?;
            hub.after(epoch, seq)
        }
    };
    let Some(mut cursor) = cursor else { return Ok(answer(Vec::new(), hub.seq(), true)) };
    let wait = Duration::from_secs(u64::from(query.wait.unwrap_or(0).min(60)));
    let (mut moved, mut ending) = (hub.listen(), keeper.ending.subscribe());
    let deadline = tokio::time::sleep(wait);
    tokio::pin!(deadline);
    loop {
        moved.mark_unchanged();
        // Only numbered events can be asked for again, so that only those are answered with.
        let numbered = |frame: &Frame| -> Option<(u64, Box<RawValue>)> {
            #[derive(Deserialize)]
            struct Numbered {
                seq: Option<u64>,
            }
            let Numbered { seq } = serde_json::from_slice(frame.json()).ok()?;
            let text = String::from_utf8(frame.json().to_vec()).ok()?;
            Some((seq?, RawValue::from_string(text).ok()?))
        };
        let seq_before = hub.seq();
        match scope.take(&keeper, &mut cursor, &interest, BYTES) {
            None => return Ok(answer(Vec::new(), hub.seq(), true)),
            Some(frames) => {
                let items: Vec<(u64, Box<RawValue>)> = frames.iter().filter_map(numbered).collect();
                if let Some((last, _)) = items.last() {
                    let seq = *last;
                    return Ok(answer(items.into_iter().map(|(_, frame)| frame).collect(), seq, false));
                }
            }
        }
        tokio::select! {
            () = &mut deadline => return Ok(answer(Vec::new(), seq_before, false)),
            () = over(&mut ending) => return Ok(answer(Vec::new(), seq_before, false)),
            _ = moved.changed() => {}
        }
    }
}

/// Opens the stream of events, as a WebSocket
#[utoipa::path(get, path = "/stream", responses((status = 101), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn stream(
    State(keeper): State<Arc<Keeper>>,
    caller: Caller,
    scope: Scope,
    request: Request,
) -> Result<Response, Problem> {
    crate::stream::upgrade(keeper, caller, scope, request)
}

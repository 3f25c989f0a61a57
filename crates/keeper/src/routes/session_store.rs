//! The store of the official SDKs over HTTP: what their adapters in `clients/` ask.
//!
//! Their keys are any texts of any length, so they come in bodies and not in paths.

mod key_text;
mod summaries;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::key_text::KeyText;
use crate::extract::Body;
use crate::gate::{APPEND, Caller};
use crate::keeper::Keeper;
use crate::mirror::{Mirror, MirrorError, MirrorKey, MirroredPage, is_batch, named};
use crate::problem::Problem;
use crate::scope::Scope;

/// Where all of this is.
const PLACE: &str = "/api/v1/session-store/";
/// How long an append may take before its caller is told to ask again: it may get in later all the same.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn table() -> OpenApiRouter<Arc<Keeper>> {
    let most = usize::try_from(APPEND).unwrap_or(usize::MAX);
    let append = OpenApiRouter::default().routes(routes!(append)).layer(DefaultBodyLimit::max(most));
    append
        .routes(routes!(load))
        .routes(routes!(sessions))
        .routes(routes!(subkeys))
        .routes(routes!(delete))
        .routes(routes!(summaries::summaries))
        .routes(routes!(summaries::summarize))
}

/// Returns the namespace that a path is in.
pub(crate) fn namespace(path: &str) -> Option<&str> {
    path.strip_prefix(PLACE)?.split_once('/').map(|(namespace, _)| namespace)
}

/// Returns whether a path is the one that sessions are appended at.
pub(crate) fn is_append(path: &str) -> bool {
    path.strip_prefix(PLACE).and_then(|rest| rest.split_once('/')).is_some_and(|(_, verb)| verb == "append")
}

/// Returns whether a text can be a namespace's name: 1 to 64 of `[A-Za-z0-9._-]`, no leading dot.
pub(super) fn is_namespace(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(is_plain)
}

/// The namespace that a path names.
pub(crate) struct Namespace(String);

impl FromRequestParts<Arc<Keeper>> for Namespace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, keeper: &Arc<Keeper>) -> Result<Self, Problem> {
        // These sessions are of no directory that somebody could be confined to.
        Scope::from_request_parts(parts, keeper).await?.whole()?;
        let name = Path::<String>::from_request_parts(parts, keeper).await;
        let name = name.ok().map(|Path(name)| name).filter(|name| is_namespace(name));
        match keeper.store().backend().capabilities().keeps {
            true => name.map(Self).ok_or_else(|| Problem::not_found("namespace")),
            false => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "keeps-nothing")
                .detail("this keeper's store keeps nothing")
                .hint("start it with another `--store URL`")),
        }
    }
}

/// Which session, in the SDKs' own words.
#[derive(Deserialize, ToSchema)]
pub(crate) struct StoreKey {
    /// Their project: a directory's encoded path, or whatever the program says.
    #[schema(value_type = String)]
    project_key: KeyText,
    #[schema(value_type = String)]
    session_id: KeyText,
    /// A part of the session, as a subagent's transcript; absent for the session itself.
    #[schema(value_type = Option<String>)]
    subpath: Option<KeyText>,
}

impl StoreKey {
    fn within(self, Namespace(namespace): Namespace) -> MirrorKey {
        let Self { project_key, session_id, subpath } = self;
        let subpath = subpath.map(|KeyText(text)| text);
        MirrorKey { namespace, project_key: project_key.0, session_id: session_id.0, subpath }
    }
}

/// Entries to be added.
#[derive(Deserialize, ToSchema)]
pub(crate) struct AppendRequest {
    key: StoreKey,
    batches: Vec<AppendBatch>,
}

/// Entries that were given together.
#[derive(Deserialize, ToSchema)]
pub(crate) struct AppendBatch {
    /// A name of the caller's: the same batch again, under the same name, changes nothing.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    id: String,
    /// How many entries of the batch came in earlier requests.
    #[serde(default)]
    offset: u32,
    /// Kept byte for byte. One with a `uuid` that the session holds is left out; one without is always new.
    #[schema(value_type = Vec<Object>)]
    entries: Vec<Box<RawValue>>,
}

/// What became of entries.
#[derive(Serialize, ToSchema)]
pub(crate) struct Appended {
    /// How many were new, and are durable now.
    added: u64,
    /// How many were there already.
    known: u64,
}

/// Adds entries to a session of an SDK's
#[utoipa::path(post, path = "/session-store/{namespace}/append", operation_id = "session_store_append", params(("namespace" = String, Path)), request_body = AppendRequest, responses((status = 200, body = Appended), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn append(
    State(keeper): State<Arc<Keeper>>,
    namespace: Namespace,
    Body(AppendRequest { key, batches }): Body<AppendRequest>,
) -> Result<Json<Appended>, Problem> {
    let mut entries = Vec::new();
    for batch in &batches {
        if !is_batch(&batch.id) {
            return Err(Problem::bad_request("a batch's id is 1 to 64 of A-Z a-z 0-9 _ -"));
        }
        for (place, json) in (u64::from(batch.offset)..).zip(&batch.entries) {
            let entry = named(&batch.id, place, json);
            entries.push(entry.map_err(|error| Problem::from(error).with("entry", place))?);
        }
    }
    let (key, all) = (key.within(namespace), entries.len() as u64);
    if all == 0 {
        return Ok(Json(Appended { added: 0, known: 0 }));
    }
    let work = async move |mirror: &Mirror| {
        let appended = tokio::time::timeout(PATIENCE, mirror.append(&key, entries)).await;
        appended.unwrap_or(Err(MirrorError::Slow))
    };
    let added = apart(&keeper, work).await?;
    Ok(Json(Appended { added, known: all - added }))
}

/// What to read.
#[derive(Deserialize, ToSchema)]
pub(crate) struct LoadRequest {
    key: StoreKey,
    /// Where the page before ended; its `next`.
    #[serde(default)]
    after: u64,
    /// Which beginning that page was of; its `log`. Another one by now is a conflict.
    log: Option<String>,
}

/// Part of a session.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is written by hand, since lines go out as they are")]
pub(crate) struct LoadedPage {
    /// The entries in the order they came, byte for byte; null if there is no such session.
    #[schema(value_type = Option<Vec<Object>>)]
    entries: Option<Vec<Box<RawValue>>>,
    /// Where the next page begins.
    next: u64,
    /// Whether there may be more.
    more: bool,
    /// Which beginning of the session this is: one that was deleted and begun again has another.
    log: Option<String>,
    /// Changes whenever the session does; taken before it was read.
    version: Option<String>,
    /// How many entries could not be read for damage.
    lost: u64,
}

/// Reads a session of an SDK's
#[utoipa::path(post, path = "/session-store/{namespace}/load", operation_id = "session_store_load", params(("namespace" = String, Path)), request_body = LoadRequest, responses((status = 200, body = LoadedPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn load(
    State(keeper): State<Arc<Keeper>>,
    namespace: Namespace,
    Body(LoadRequest { key, after, log }): Body<LoadRequest>,
) -> Result<Response, Problem> {
    let key = key.within(namespace);
    let page = apart(&keeper, async move |mirror| mirror.load(&key, after, log.as_deref()).await).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], written(page)).into_response())
}

/// Writes a page with its lines as they are.
fn written(page: Option<MirroredPage>) -> Vec<u8> {
    let Some(MirroredPage { entries, next, more, log, version, lost }) = page else {
        return br#"{"entries":null,"next":0,"more":false,"log":null,"version":null,"lost":0}"#.to_vec();
    };
    let size = entries.iter().map(|entry| entry.len() + 1).sum::<usize>();
    let mut body = Vec::with_capacity(size + 512);
    body.extend_from_slice(br#"{"entries":["#);
    for (place, entry) in entries.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        body.extend_from_slice(entry);
    }
    let rest =
        json!({ "next": next, "more": more, "log": log, "version": version, "lost": lost }).to_string();
    body.extend_from_slice(b"],");
    body.extend_from_slice(&rest.as_bytes()[1..]);
    body
}

/// Which project.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ProjectRequest {
    #[schema(value_type = String)]
    project_key: KeyText,
}

/// Sessions of a project.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoredSessions {
    items: Vec<StoredSession>,
}

/// One session of a project.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoredSession {
    #[schema(value_type = String)]
    session_id: KeyText,
    /// When it was last written, in milliseconds since 1970.
    mtime: i64,
}

/// Lists an SDK's sessions of a project
#[utoipa::path(post, path = "/session-store/{namespace}/sessions", operation_id = "session_store_sessions", params(("namespace" = String, Path)), request_body = ProjectRequest, responses((status = 200, body = StoredSessions), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sessions(
    State(keeper): State<Arc<Keeper>>,
    Namespace(namespace): Namespace,
    Body(ProjectRequest { project_key }): Body<ProjectRequest>,
) -> Result<Json<StoredSessions>, Problem> {
    let list = async move |mirror: &Mirror| Ok(mirror.sessions(&namespace, &project_key.0).await?);
    let items = apart(&keeper, list).await?.into_iter();
    let item = |session: crate::mirror::MirroredSession| StoredSession {
        session_id: KeyText(session.session_id),
        mtime: session.modified.as_millisecond(),
    };
    Ok(Json(StoredSessions { items: items.map(item).collect() }))
}

/// Which session's parts.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SubkeysRequest {
    #[schema(value_type = String)]
    project_key: KeyText,
    #[schema(value_type = String)]
    session_id: KeyText,
}

/// The parts of a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Subkeys {
    #[schema(value_type = Vec<String>)]
    items: Vec<KeyText>,
}

/// Lists the parts of an SDK's session: its subagents' transcripts
#[utoipa::path(post, path = "/session-store/{namespace}/subkeys", operation_id = "session_store_subkeys", params(("namespace" = String, Path)), request_body = SubkeysRequest, responses((status = 200, body = Subkeys), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn subkeys(
    State(keeper): State<Arc<Keeper>>,
    namespace: Namespace,
    Body(SubkeysRequest { project_key, session_id }): Body<SubkeysRequest>,
) -> Result<Json<Subkeys>, Problem> {
    let key = StoreKey { project_key, session_id, subpath: None }.within(namespace);
    let items = apart(&keeper, async move |mirror| Ok(mirror.subkeys(&key).await?)).await?;
    Ok(Json(Subkeys { items: items.into_iter().map(KeyText).collect() }))
}

/// What to delete.
#[derive(Deserialize, ToSchema)]
pub(crate) struct DeleteRequest {
    key: StoreKey,
}

/// What was deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletedFromStore {
    /// How many sessions and parts of them there were.
    deleted: u64,
}

/// Deletes a session of an SDK's for good, with its parts
#[utoipa::path(post, path = "/session-store/{namespace}/delete", operation_id = "session_store_delete", params(("namespace" = String, Path)), request_body = DeleteRequest, responses((status = 200, body = DeletedFromStore), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    State(keeper): State<Arc<Keeper>>,
    namespace: Namespace,
    caller: Caller,
    Body(DeleteRequest { key }): Body<DeleteRequest>,
) -> Result<Json<DeletedFromStore>, Problem> {
    let key = key.within(namespace);
    let about = json!({ "session": key.id(), "namespace": key.namespace });
    let deleted = apart(&keeper, async move |mirror| Ok(mirror.delete(&key).await?)).await?;
    if deleted > 0 {
        keeper.door.audit.write("delete", &caller.name(), about);
        keeper.forget_stored();
    }
    Ok(Json(DeletedFromStore { deleted }))
}

/// Works on a thread of its own: some stores do theirs on the thread that asks. What is begun is done, though whoever asked
/// may hang up.
async fn apart<T: Send + 'static>(
    keeper: &Arc<Keeper>,
    work: impl AsyncFnOnce(&Mirror) -> Result<T, MirrorError> + Send + 'static,
) -> Result<T, Problem> {
    let (keeper, runtime) = (Arc::clone(keeper), tokio::runtime::Handle::current());
    let done = tokio::task::spawn_blocking(move || runtime.block_on(work(&keeper.mirror)));
    done.await.map_err(|error| Problem::failed(&error))?.map_err(Problem::from)
}

impl From<MirrorError> for Problem {
    fn from(error: MirrorError) -> Self {
        match error {
            MirrorError::Foreign(_) => Self::conflict("foreign", error.to_string()),
            MirrorError::BegunAgain => {
                Self::conflict("begun-again", error.to_string()).hint("read it from its beginning")
            }
            MirrorError::Slow => Self::new(StatusCode::SERVICE_UNAVAILABLE, "slow")
                .detail(error.to_string())
                .hint("ask again with the same batch id")
                .retryable(),
            MirrorError::Store(rethread_store::Error::Trashed(id)) => {
                Self::conflict("in-the-trash", "somebody put this session into the trash")
                    .hint(format!("`rethread restore {id}` brings it back, `rethread purge {id}` makes room"))
            }
            MirrorError::Store(error) => error.into(),
        }
    }
}

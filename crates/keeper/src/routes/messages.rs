//! Conversations, a page at a time.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_transcripts::{History, Subagent, Transcript};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::sessions::{MOST, USUAL, find, find_fresh};
use super::stored_page;
use crate::card::Home;
use crate::catalogue::Known;
use crate::extract::{Asked, SessionName};
use crate::item::MessageItem;
use crate::keeper::Keeper;
use crate::position::Position;
use crate::problem::Problem;

#[derive(Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessagesQuery {
    /// The conversation that would be resumed, or every branch in the order of the file.
    pub(super) branch: Option<Branch>,
    /// Only what comes before this: a cursor of another page, a message's id, or its number and a colon.
    pub(super) before: Option<String>,
    /// Only what comes after this: a cursor, a message's id, its number and a colon, or the `position` of a head.
    pub(super) after: Option<String>,
    /// A page with this message in its middle.
    pub(super) around: Option<String>,
    /// The transcript of this subagent instead.
    pub(super) agent: Option<String>,
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: Option<u32>,
}

/// Which messages.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Branch {
    /// The conversation that would be resumed.
    #[default]
    Active,
    /// Every branch, in the order of the file.
    All,
}

/// A page of a conversation, the oldest message first.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessagePage {
    items: Vec<MessageItem<'static>>,
    page: Paging,
    head: Head,
}

/// Where a page lies.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Paging {
    /// `before` for the page before; null at the beginning.
    pub(super) before: Option<String>,
    /// `after` for the page after; null at the end.
    pub(super) after: Option<String>,
    /// How many there are in all, where that is known.
    pub(super) total: Option<u64>,
    /// What came after the position cannot be told any more: this is the last page instead, and what was known is void.
    pub(super) reset: bool,
}

/// What a page is the state at: every event up to it is in the page, and those after it follow.
#[derive(Serialize, ToSchema)]
pub(crate) struct Head {
    epoch: String,
    seq: u64,
    /// How far the session itself was read; stays valid after a restart, and at any other keeper.
    position: String,
}

/// A page of a conversation
#[utoipa::path(get, path = "/sessions/{id}/messages", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71"), MessagesQuery), responses((status = 200, body = MessagePage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn messages(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
    Asked(query): Asked<MessagesQuery>,
) -> Result<Json<MessagePage>, Problem> {
    // Taken before anything is read: what happens meanwhile is told again, and is the same by its id.
    let seq = keeper.hub.seq();
    // From here on nothing is missed that others add, and it is known which copy of the session counts.
    keeper.listen_to(&name.id).await;
    let known = match find(&keeper, &name) {
        Ok(known) => known,
        Err(_) => find_fresh(&keeper, &name).await?,
    };
    read_page(&keeper, known, query, seq).await.map(Json)
}

/// Reads a page of a session.
async fn read_page(
    keeper: &Arc<Keeper>,
    known: Known,
    query: MessagesQuery,
    seq: u64,
) -> Result<MessagePage, Problem> {
    let epoch = keeper.hub.epoch().to_owned();
    let (id, is_native) = (known.card.session_id.clone(), known.card.home == Home::Native);
    let own = Arc::clone(keeper);
    let is_agents = query.agent.is_some();
    let handle = tokio::runtime::Handle::current();
    let read = tokio::task::spawn_blocking(move || match &known.native {
        Some(session) => {
            Native { keeper: &own, path: session.path.clone(), id: &known.card.session_id }.page(&query)
        }
        // It has no transcript yet, whatever it does already.
        None if is_native => Ok((Vec::new(), Paging::default(), Position::Log(0))),
        None => handle.block_on(stored_page::read(&own, &known.card.session_id, &query)),
    });
    let (mut items, page, position) = read.await.map_err(|error| Problem::failed(&error))??;
    if !is_agents && page.after.is_none() {
        let provisional = keeper.provisional(&id);
        let is_new = |item: &MessageItem| !items.iter().any(|other| other.uuid == item.uuid);
        let fresh: Vec<MessageItem<'static>> = provisional.into_iter().filter(is_new).collect();
        items.extend(fresh);
    }
    Ok(MessagePage { items, page, head: Head { epoch, seq, position: position.to_string() } })
}

pub(super) type Read = Result<(Vec<MessageItem<'static>>, Paging, Position), Problem>;

/// A session of Claude Code's own, to be read.
struct Native<'a> {
    keeper: &'a Keeper,
    path: PathBuf,
    id: &'a str,
}

impl Native<'_> {
    fn open(&self, agent: Option<&str>) -> Result<(File, PathBuf), Problem> {
        let is_name = |agent: &str| {
            !agent.is_empty() && agent.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it))
        };
        let path = match agent {
            None => self.path.clone(),
            Some(agent) if is_name(agent) => Subagent::path_of(&self.path, agent),
            Some(_) => return Err(Problem::not_found("subagent")),
        };
        let file = self.keeper.open_native(&path).map_err(|_| Problem::not_found("session"))?;
        Ok((file, path))
    }

    fn page(&self, query: &MessagesQuery) -> Read {
        let limit = query.limit.map_or(USUAL, |limit| (limit as usize).clamp(1, MOST)) as u64;
        let (file, path) = self.open(query.agent.as_deref())?;
        let mut is_void = false;
        if let Some(Ok(position)) = query.after.as_deref().map(str::parse::<Position>) {
            match position.holds(&file) {
                Some(offset) => return since(&file, offset, limit),
                None => is_void = true,
            }
        }
        if query.branch.unwrap_or_default() == Branch::All {
            let again = file.try_clone().map_err(|error| Problem::failed(&error))?;
            return everything(Transcript::of(file, path)?, &again, query, limit, is_void);
        }
        let index = query.agent.is_none().then(|| self.keeper.cache("chains").join(self.id));
        let history = match &index {
            // An index that cannot be written is no reason not to answer.
            Some(index) => History::of(file, &path, Some(index)).or_else(|_| {
                let file = self.keeper.open_native(&path).map_err(|_| Problem::not_found("session"))?;
                History::of(file, &path, None).map_err(Problem::from)
            })?,
            None => History::of(file, &path, None)?,
        };
        let total = history.lines();
        let position =
            Position::of(history.file(), history.size()).map_err(|error| Problem::failed(&error))?;
        let at = |cursor: &str| number_of(&history, cursor).ok_or_else(|| Problem::not_found("message"));
        let range = match (&query.before, &query.after, &query.around) {
            (Some(before), ..) => {
                let end = at(before)?;
                end.saturating_sub(limit)..end
            }
            (_, Some(after), _) if !is_void => {
                let start = at(after)? + 1;
                start..(start + limit).min(total)
            }
            (.., Some(around)) => {
                let start = at(around)?.saturating_sub(limit / 2);
                start..(start + limit).min(total)
            }
            _ => total.saturating_sub(limit)..total,
        };
        let items = lines(&history, range.clone())?;
        let cursor = |number: u64, item: Option<&MessageItem<'static>>| {
            item.map(|item| format!("{number}:{}", item.uuid.as_deref().unwrap_or_default()))
        };
        let before = cursor(range.start, items.first()).filter(|_| range.start > 0);
        let after = cursor(range.end.saturating_sub(1), items.last()).filter(|_| range.end < total);
        Ok((items, Paging { before, after, total: Some(total), reset: is_void }, position))
    }
}

fn lines(history: &History, range: std::ops::Range<u64>) -> Result<Vec<MessageItem<'static>>, Problem> {
    let chain = history.chain(range)?;
    let mut reader = history.read(&chain);
    let mut items = Vec::with_capacity(chain.len());
    while let Some(entry) = reader.next() {
        items.push(MessageItem::of_entry(&entry?).into_owned());
    }
    Ok(items)
}

/// Finds the number of a line: a cursor has it, and an id is looked for.
fn number_of(history: &History, cursor: &str) -> Option<u64> {
    let (number, uuid) = match cursor.split_once(':') {
        Some((number, uuid)) => (number.parse::<u64>().ok(), uuid),
        None => (None, cursor),
    };
    // A number alone is a place in the conversation: a page scrolls to where it knows no id yet.
    if let Some(number) = number.filter(|number| uuid.is_empty() && *number < history.lines()) {
        return Some(number);
    }
    let is_it = |item: &MessageItem| item.uuid.as_deref().unwrap_or_default() == uuid;
    if let Some(number) = number
        && lines(history, number..number + 1).ok()?.first().is_some_and(is_it)
    {
        return Some(number);
    }
    // From the end, where most people look; a megabyte of entries at a time.
    let mut end = history.lines();
    while end > 0 {
        let start = end.saturating_sub(1024);
        if let Some(at) = lines(history, start..end).ok()?.iter().position(is_it) {
            return Some(start + at as u64);
        }
        end = start;
    }
    None
}

/// Returns the messages on lines after a place in the file.
fn since(file: &File, offset: u64, limit: u64) -> Read {
    use std::os::unix::fs::FileExt as _;
    let fail = |error: std::io::Error| Problem::failed(&error);
    let length = file.metadata().map_err(fail)?.len();
    let Position::File { offset: end, .. } = Position::of(file, length).map_err(fail)? else {
        unreachable!("a file's position is one in a file");
    };
    let (mut items, mut at, mut chunk) = (Vec::new(), offset, vec![0; 1 << 20]);
    while at < end && (items.len() as u64) < limit {
        let read = usize::try_from(end - at).unwrap_or(usize::MAX).min(chunk.len());
        file.read_exact_at(&mut chunk[..read], at).map_err(fail)?;
        let Some(last) = memchr::memrchr(b'\n', &chunk[..read]) else {
            let larger = chunk.len() * 2;
            chunk.resize(larger, 0);
            continue;
        };
        let mut begins = 0;
        for newline in memchr::memchr_iter(b'\n', &chunk[..=last]) {
            let line = &chunk[begins..newline];
            let span = rethread_transcripts::Span { offset: at + begins as u64, length: line.len() as u32 };
            items.extend(MessageItem::of_line(line, span).map(MessageItem::into_owned));
            begins = newline + 1;
            if items.len() as u64 == limit {
                break;
            }
        }
        at += begins as u64;
    }
    let position = Position::of(file, at).map_err(fail)?;
    let after = (at < end).then(|| position.to_string());
    Ok((items, Paging { after, ..Paging::default() }, position))
}

fn everything(transcript: Transcript, file: &File, query: &MessagesQuery, limit: u64, reset: bool) -> Read {
    let chain = transcript.all().messages();
    let mut reader = transcript.read(&chain);
    let mut items = Vec::new();
    while let Some(entry) = reader.next() {
        items.push(MessageItem::of_entry(&entry?).into_owned());
    }
    let total = items.len();
    let find = |cursor: &String| {
        let uuid = cursor.split_once(':').map_or(cursor.as_str(), |(_, uuid)| uuid);
        let found = items.iter().rposition(|item| item.uuid.as_deref() == Some(uuid));
        found.ok_or_else(|| Problem::not_found("message"))
    };
    let limit = usize::try_from(limit).unwrap_or(MOST);
    let range = match (&query.before, &query.after, &query.around) {
        (Some(before), ..) => {
            let end = find(before)?;
            end.saturating_sub(limit)..end
        }
        (_, Some(after), _) if !reset => {
            let start = find(after)? + 1;
            start..(start + limit).min(total)
        }
        (.., Some(around)) => {
            let start = find(around)?.saturating_sub(limit / 2);
            start..(start + limit).min(total)
        }
        _ => total.saturating_sub(limit)..total,
    };
    let uuid =
        |item: Option<&MessageItem<'static>>| item.and_then(|item| item.uuid.as_deref().map(str::to_owned));
    let before = uuid(items.get(range.start)).filter(|_| range.start > 0);
    let after = uuid(items.get(range.end.saturating_sub(1))).filter(|_| range.end < total);
    let position = Position::of(file, transcript.length()).map_err(|error| Problem::failed(&error))?;
    let items = items.drain(range).collect();
    Ok((items, Paging { before, after, total: Some(total as u64), reset }, position))
}

/// Returns the messages on all lines after a place in the file.
pub(crate) fn lines_since(file: &File, offset: u64) -> Result<Vec<MessageItem<'static>>, Problem> {
    since(file, offset, u64::MAX).map(|(items, ..)| items)
}

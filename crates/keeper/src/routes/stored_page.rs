//! A page of a conversation that is in a store.

use std::borrow::Cow;
use std::ops::Range;

use rethread_store::{EntryId, Page, Record, Session};

use super::messages::{Branch, MessagesQuery, Paging, Read};
use super::sessions::{MOST, USUAL};
use super::subagents::stored_subagent;
use crate::item::MessageItem;
use crate::keeper::Keeper;
use crate::position::Position;
use crate::problem::Problem;

/// Reads a page of a stored session.
pub(super) async fn read(keeper: &Keeper, id: &str, query: &MessagesQuery) -> Read {
    let session = match &query.agent {
        Some(agent) => stored_subagent(keeper, &id.parse()?, agent).await?,
        None => keeper.store().open(&id.parse()?).await?,
    };
    let limit = query.limit.map_or(USUAL, |limit| (limit as usize).clamp(1, MOST));
    let asked = Asked { session, limit, query };
    match query.branch.unwrap_or_default() {
        Branch::Active => asked.of_conversation().await,
        Branch::All => asked.of_everything().await,
    }
}

/// A stored session, and what somebody wants to see of it.
struct Asked<'a> {
    session: Session,
    limit: usize,
    query: &'a MessagesQuery,
}

/// Where in a conversation a cursor points to.
enum Place {
    Number(u64),
    Entry(EntryId),
}

impl Place {
    /// Reads a cursor: an id, or a number and a colon, which an id may follow.
    fn of(cursor: &str) -> Result<Self, Problem> {
        let (number, id) = cursor.split_once(':').unwrap_or(("", cursor));
        let place = match number.parse() {
            Ok(number) if id.is_empty() => Some(Self::Number(number)),
            _ => id.parse().ok().map(Self::Entry),
        };
        place.ok_or_else(|| Problem::not_found("message"))
    }
}

impl Asked<'_> {
    /// Reads from the conversation that would be resumed.
    async fn of_conversation(&self) -> Read {
        let MessagesQuery { before, after, around, .. } = self.query;
        let since = after.as_deref().and_then(|after| after.parse::<Position>().ok());
        let limit = self.limit as u64;
        // Before the page: what comes meanwhile is then beyond the position, and is told again.
        let tip = self.page(Page::Last(1)).await?.pop();
        let total = tip.as_ref().map_or(0, |tip| tip.depth);
        let records = match (before, after, around) {
            (Some(before), ..) => match Place::of(before)? {
                Place::Entry(entry) => self.page(Page::Before(entry, self.limit)).await?,
                Place::Number(end) => self.numbered(end.saturating_sub(limit)..end, total).await?,
            },
            _ if since.is_some() => self.page(Page::Last(self.limit)).await?,
            (_, Some(after), _) => match Place::of(after)? {
                Place::Entry(entry) => self.page(Page::After(entry, self.limit)).await?,
                Place::Number(last) => {
                    let start = last.saturating_add(1);
                    self.numbered(start..start.saturating_add(limit), total).await?
                }
            },
            (.., Some(around)) => self.around(Place::of(around)?, total).await?,
            _ => self.page(Page::Last(self.limit)).await?,
        };
        let (records, reset) = match since {
            None => (records, false),
            Some(position) => self.since(&position, records),
        };
        let cursor = |record: Option<&Record>| record.map(|record| record.entry.id().to_string());
        let paging = Paging {
            before: cursor(records.first().filter(|first| first.depth > 1 && (since.is_none() || reset))),
            after: cursor(records.last().filter(|last| last.depth < total)),
            total: Some(total),
            reset,
        };
        let read_to = match since.filter(|_| !reset) {
            Some(since) => self.after(&records).unwrap_or(since),
            None => self.after(tip.as_slice()).unwrap_or(Position::Log(0)),
        };
        Ok((self.items(&records), paging, read_to))
    }

    /// Reads from every branch, in the order of the log.
    async fn of_everything(&self) -> Read {
        let MessagesQuery { before, after, around, .. } = self.query;
        let all: Vec<Record> =
            self.session.all_branches().await?.into_iter().map(|branched| branched.record).collect();
        let find = |cursor: &str| {
            let found = match Place::of(cursor)? {
                Place::Number(number) => usize::try_from(number).ok().filter(|number| *number < all.len()),
                Place::Entry(entry) => all.iter().rposition(|record| *record.entry.id() == entry),
            };
            found.ok_or_else(|| Problem::not_found("message"))
        };
        let since = after.as_deref().and_then(|after| after.parse::<Position>().ok());
        let is_void = since.as_ref().is_some_and(|since| !matches!(since, Position::Log(_)));
        let from = |start: usize| start..(start + self.limit).min(all.len());
        let range = match (before, after, around, &since) {
            (Some(before), ..) => {
                let end = find(before)?;
                end.saturating_sub(self.limit)..end
            }
            (.., Some(Position::Log(next))) => from(
                all.iter()
                    .position(|record| self.is_own(record) && record.position >= *next)
                    .unwrap_or(all.len()),
            ),
            (_, Some(after), _, None) => from(find(after)? + 1),
            (.., Some(around), None) => from(find(around)?.saturating_sub(self.limit / 2)),
            _ => all.len().saturating_sub(self.limit)..all.len(),
        };
        let cursor = |at: usize| all.get(at).map(|record| record.entry.id().to_string());
        let paging = Paging {
            before: cursor(range.start).filter(|_| range.start > 0),
            after: cursor(range.end.wrapping_sub(1)).filter(|_| range.end < all.len()),
            total: Some(all.len() as u64),
            reset: is_void,
        };
        let read_to = match since.filter(|_| !is_void) {
            Some(since) => self.after(&all[range.clone()]).unwrap_or(since),
            None => self.after(&all).unwrap_or(Position::Log(0)),
        };
        Ok((self.items(&all[range]), paging, read_to))
    }

    async fn page(&self, page: Page) -> Result<Vec<Record>, Problem> {
        Ok(self.session.page(page).await?.records)
    }

    /// Reads messages by their numbers, from the end that is nearer to them.
    async fn numbered(&self, range: Range<u64>, total: u64) -> Result<Vec<Record>, Problem> {
        let range = range.start.min(total)..range.end.min(total);
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let mut records = match range.end <= total / 2 {
            true => self.page(Page::First(size(range.end))).await?,
            false => self.page(Page::Last(size(total - range.start))).await?,
        };
        // The first of a conversation has the depth 1.
        records.retain(|record| range.contains(&(record.depth - 1)));
        Ok(records)
    }

    /// Reads a page that has half of its messages before a place, as with native sessions.
    async fn around(&self, place: Place, total: u64) -> Result<Vec<Record>, Problem> {
        let half = self.limit / 2;
        let entry = match place {
            Place::Entry(entry) => entry,
            Place::Number(number) => {
                let start = number.saturating_sub(half as u64);
                return self.numbered(start..start.saturating_add(self.limit as u64), total).await;
            }
        };
        let before = self.page(Page::Before(entry, half + 1)).await?;
        let page = match before.first().filter(|_| before.len() > half) {
            Some(last_left_out) => Page::After(last_left_out.entry.id().clone(), self.limit),
            None => Page::First(self.limit),
        };
        self.page(page).await
    }

    /// Returns those of the last messages that came after a position, or all of them if there are more than those.
    fn since(&self, position: &Position, last: Vec<Record>) -> (Vec<Record>, bool) {
        let Position::Log(next) = *position else { return (last, true) };
        // Inherited ones come before all of its own.
        let reaches = last.len() < self.limit
            || last.first().is_none_or(|first| !self.is_own(first) || first.position <= next);
        match reaches {
            true => (last.into_iter().filter(|it| self.is_own(it) && it.position >= next).collect(), false),
            false => (last, true),
        }
    }

    /// Returns whether the session's own log has it: positions are those of one log.
    fn is_own(&self, record: &Record) -> bool {
        record.session == *self.session.id()
    }

    /// Returns the position after the last of messages.
    fn after(&self, records: &[Record]) -> Option<Position> {
        let own = records.iter().filter(|record| self.is_own(record));
        own.map(|record| record.position + 1).max().map(Position::Log)
    }

    fn items(&self, records: &[Record]) -> Vec<MessageItem<'static>> {
        let items = records.iter().filter_map(|record| {
            let (bytes, id) = (record.entry.as_bytes(), record.entry.id().as_str());
            let item = MessageItem::of_stored(bytes, id, record.position)?;
            Some(MessageItem { agent_id: self.query.agent.clone().map(Cow::Owned), ..item })
        });
        items.collect()
    }
}

//! Logs: a row for each line, in the order of their positions.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use rethread_store::backend::{Append, Begun, Chunk, Damage, Durability, From, LogKey, Position};
use rethread_store::{EntryId, Flaw, Line, SessionId};
use rusqlite::{OptionalExtension as _, Result, Transaction, params};

use crate::documents::nanoseconds;

/// How many bits of a line's number are its position: the rest say which log it is of.
const POSITION_BITS: u32 = 36;

/// A log that is there.
pub(crate) struct Log {
    id: i64,
    pub(crate) next: Position,
}

pub(crate) fn find_log(transaction: &Transaction<'_>, log: &LogKey) -> Result<Option<Log>> {
    let mut found =
        transaction.prepare_cached("SELECT id, next FROM logs WHERE session = ?1 AND name = ?2")?;
    let log = [log.session.as_str(), log.name.as_str()];
    found
        .query_row(log, |row| Ok(Log { id: row.get(0)?, next: row.get::<_, i64>(1)? as Position }))
        .optional()
}

/// Returns the number of a line.
fn key(log: i64, position: Position) -> i64 {
    let position = position.min(1 << POSITION_BITS) as i64;
    (log << POSITION_BITS) + position
}

fn position_of(key: i64) -> Position {
    (key & ((1 << POSITION_BITS) - 1)) as Position
}

/// Adds lines where a log ends; to one that begins with some record, if one is named.
pub(crate) fn append(
    transaction: &Transaction<'_>,
    begun: &Begun<i64>,
    log: &LogKey,
    first: Option<&EntryId>,
    at: Position,
    lines: &[Line],
) -> Result<Append> {
    let found = find_log(transaction, log)?;
    let next = found.as_ref().map_or(0, |log| log.next);
    if next != at {
        return Ok(Append::Moved { next });
    }
    if let Some((first, found)) = first.zip(found.as_ref())
        && is_another(transaction, begun, log, found, first)?
    {
        return Ok(Append::Moved { next });
    }
    let done = Append::Done { durability: Durability::Synced, found: Vec::new() };
    if lines.is_empty() {
        return Ok(done);
    }
    let (after, now) = ((at + lines.len() as Position) as i64, nanoseconds(Timestamp::now()));
    let id = match found {
        Some(log) => {
            let mut update =
                transaction.prepare_cached("UPDATE logs SET next = ?2, modified = ?3 WHERE id = ?1")?;
            update.execute(params![log.id, after, now])?;
            log.id
        }
        None => {
            let sql = "INSERT INTO logs (session, name, next, modified) VALUES (?1, ?2, ?3, ?4)";
            let mut insert = transaction.prepare_cached(sql)?;
            insert.insert(params![log.session.as_str(), log.name.as_str(), after, now])?
        }
    };
    let mut insert = transaction.prepare_cached("INSERT INTO lines (key, bytes) VALUES (?1, ?2)")?;
    for (line, position) in lines.iter().zip(at..) {
        insert.execute(params![key(id, position), line.as_bytes()])?;
    }
    Ok(done)
}

/// Returns whether a log begins with another record than this one.
fn is_another(
    transaction: &Transaction<'_>,
    begun: &Begun<i64>,
    log: &LogKey,
    found: &Log,
    first: &EntryId,
) -> Result<bool> {
    if begun.get(log, first) == Some(found.id) {
        return Ok(false);
    }
    let mut select = transaction.prepare_cached("SELECT bytes FROM lines WHERE key = ?1")?;
    let line = select.query_row([key(found.id, 0)], |row| Ok(BytesMut::from(row.get_ref(0)?.as_blob()?)));
    let Some(Ok(line)) = line.optional()?.map(Line::take) else { return Ok(false) };
    if line.is_another_first(first) {
        return Ok(true);
    }
    begun.keep(log, first, found.id);
    Ok(false)
}

pub(crate) fn read(
    transaction: &Transaction<'_>,
    log: &LogKey,
    from: From,
    max_bytes: usize,
) -> Result<Chunk> {
    let Some(found) = find_log(transaction, log)? else {
        let next = if let From::Position(position) = from { position } else { 0 };
        return Ok(Chunk { next, ..Chunk::default() });
    };
    let start = match from {
        From::Position(position) => position,
        From::Last => found.next.saturating_sub(1),
    };
    let mut chunk = Chunk { next: start, ..Chunk::default() };
    let (mut left, mut size) = (0, 0);
    let is_whole = each_line(transaction, &found, start..found.next, |parsed| {
        size += parsed.length;
        left = parsed.add_to(&mut chunk, log);
        // A group is never cut.
        size < max_bytes || left > 0 || chunk.lines.is_empty()
    })?;
    if is_whole && start < found.next {
        lose(&mut chunk, log, Flaw::Missing, found.next, 0);
    }
    Ok(chunk)
}

/// Hands out the lines of some positions until that is enough. Returns whether those were all.
pub(crate) fn each_line(
    transaction: &Transaction<'_>,
    log: &Log,
    positions: Range<Position>,
    mut more: impl FnMut(Parsed) -> bool,
) -> Result<bool> {
    let mut select = transaction
        .prepare_cached("SELECT key, bytes FROM lines WHERE key >= ?1 AND key < ?2 ORDER BY key")?;
    let mut rows = select.query([key(log.id, positions.start), key(log.id, positions.end)])?;
    let mut room = Room::default();
    while let Some(row) = rows.next()? {
        let (position, bytes) = (position_of(row.get(0)?), room.copy(row.get_ref(1)?.as_blob()?));
        let is_last = position + 1 == positions.end;
        if !more(Parsed { position, length: bytes.len(), line: Line::take(bytes) }) {
            return Ok(is_last);
        }
    }
    Ok(true)
}

/// A line, or what is wrong with it.
pub(crate) struct Parsed {
    position: Position,
    pub(crate) length: usize,
    line: std::result::Result<Line, Flaw>,
}

impl Parsed {
    /// Adds it to what was read, and returns how many of its group are still to come.
    pub(crate) fn add_to(self, chunk: &mut Chunk, log: &LogKey) -> u64 {
        let Self { position, length, line } = self;
        lose(chunk, log, Flaw::Missing, position, 0);
        match line {
            Ok(line) if line.stamp().position == position => {
                let left = line.stamp().left;
                chunk.lines.push(line);
                chunk.next = position + 1;
                return left;
            }
            Ok(_) => lose(chunk, log, Flaw::Misplaced, position + 1, length),
            Err(flaw) => lose(chunk, log, flaw, position + 1, length),
        }
        0
    }
}

/// Where lines are copied to: many share an allocation.
#[derive(Default)]
struct Room(BytesMut);

impl Room {
    /// Larger ones are taken from the system and given back to it one by one, which costs more than what is copied.
    const SIZE: usize = 64 << 10;

    fn copy(&mut self, bytes: &[u8]) -> BytesMut {
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(bytes.len().max(Self::SIZE));
        }
        self.0.extend_from_slice(bytes);
        self.0.split()
    }
}

/// Notes that nothing can be read from where the chunk has got to, up to a position.
fn lose(chunk: &mut Chunk, log: &LogKey, flaw: Flaw, until: Position, length: usize) {
    if chunk.next < until {
        let (file, lost) = (format!("lines of {log}"), chunk.next..until);
        chunk.damage.push(Damage { file, offset: lost.start, length: length as u64, flaw, lost });
        chunk.next = until;
    }
}

pub(crate) fn has_more(transaction: &Transaction<'_>, log: &LogKey, since: Position) -> Result<bool> {
    Ok(find_log(transaction, log)?.is_some_and(|log| log.next > since))
}

/// Finds the newest record of an entry. From the end, because that is where people fork; and without parsing, because
/// a record says at its very end what it is.
pub(crate) fn find(transaction: &Transaction<'_>, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
    let Some(found) = find_log(transaction, log)? else { return Ok(None) };
    let mut select = transaction
        .prepare_cached("SELECT key, bytes FROM lines WHERE key >= ?1 AND key < ?2 ORDER BY key DESC")?;
    let mut rows = select.query([key(found.id, 0), key(found.id, found.next)])?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(1)?.as_blob()?;
        let end = &bytes[bytes.len().saturating_sub(512)..];
        if memchr::memmem::rfind(end, id.as_str().as_bytes()).is_some()
            && Line::parse(Bytes::copy_from_slice(bytes)).is_ok_and(|line| line.stamp().id == *id)
        {
            return Ok(Some(position_of(row.get(0)?)));
        }
    }
    Ok(None)
}

/// Removes a session's logs and documents.
pub(crate) fn remove_session(transaction: &Transaction<'_>, session: &SessionId) -> Result<bool> {
    let mut select = transaction.prepare_cached("SELECT id FROM logs WHERE session = ?1")?;
    let logs: Vec<i64> = select.query_map([session.as_str()], |row| row.get(0))?.collect::<Result<_>>()?;
    for &log in &logs {
        let range = [key(log, 0), key(log + 1, 0)];
        transaction.execute("DELETE FROM lines WHERE key >= ?1 AND key < ?2", range)?;
    }
    transaction.execute("DELETE FROM logs WHERE session = ?1", [session.as_str()])?;
    let documents = transaction.execute("DELETE FROM documents WHERE session = ?1", [session.as_str()])?;
    Ok(documents > 0 || !logs.is_empty())
}

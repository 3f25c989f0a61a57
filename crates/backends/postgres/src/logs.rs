//! Logs: a row for each line, and one for each log that says where it ends.

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use rethread_store::backend::{Append, Begun, Chunk, Damage, Durability, From, LogKey, Position};
use rethread_store::{EntryId, Flaw, Line, SessionId};
use tokio_postgres::Error;

use crate::connection::Connection;
use crate::connections::Time;

/// How many records are looked at in one step of a search that found something like it.
const CANDIDATES: i64 = 16;

/// Which append it is, whoever tries it and however often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch(i64);

impl Batch {
    pub(crate) fn new() -> Self {
        Self(uuid::Uuid::new_v4().as_u64_pair().0.cast_signed())
    }
}

/// How a log has to begin to which something is added, and what such logs are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning<'a> {
    pub(crate) first: Option<&'a EntryId>,
    pub(crate) begun: &'a Begun<i64>,
}

/// Adds lines where the log ends, in one statement, which waits for whoever is adding to it now.
pub(crate) async fn append(
    connection: Connection,
    log: &LogKey,
    beginning: Beginning<'_>,
    at: Position,
    lines: &[Line],
    batch: Batch,
    time: Time,
) -> Result<Append, Error> {
    let done = Append::Done { durability: Durability::Synced, found: Vec::new() };
    let add = async |called: Option<i64>| match lines.is_empty() {
        true => Ok(false),
        false => add(&connection, log, called, at, lines, batch).await.map(|added| added > 0),
    };
    let known = beginning.known(log);
    let called = match known {
        None => beginning.look(&connection, log).await?,
        known => Called::Thus(known),
    };
    if let Called::Thus(called) = called
        && add(called).await?
    {
        return Ok(done);
    }
    let next = next(&connection, log).await?;
    // What was known of it may be over, and the one that is there begin with the same record.
    if next == at
        && known.is_some()
        && let Called::Thus(called) = beginning.look(&connection, log).await?
        && add(called).await?
    {
        return Ok(done);
    }
    let there = match (lines.is_empty(), time) {
        (true, _) => next == at,
        (false, Time::First) => false,
        // It may have been added before, and only the answer was lost.
        (false, Time::Again) => holds(&connection, log, at, batch).await?,
    };
    Ok(if there { done } else { Append::Moved { next } })
}

/// What a log is called to which something is to be added.
enum Called {
    /// This, or anything if its beginning does not matter or cannot be read.
    Thus(Option<i64>),
    /// It begins with another record than it should.
    Another,
}

impl Beginning<'_> {
    fn known(&self, log: &LogKey) -> Option<i64> {
        self.first.and_then(|first| self.begun.get(log, first))
    }

    async fn look(&self, connection: &Connection, log: &LogKey) -> Result<Called, Error> {
        let Some(first) = self.first else { return Ok(Called::Thus(None)) };
        let sql = "SELECT id, (SELECT bytes FROM rethread.lines WHERE log = id AND position = 0)
            FROM rethread.logs WHERE session = $1 AND name = $2";
        let found = connection.ask_one(sql, &[&log.session.as_str(), &log.name.as_str()]).await?;
        let Some(row) = found else { return Ok(Called::Thus(None)) };
        let bytes: Option<&[u8]> = row.try_get(1)?;
        let Some(Ok(line)) = bytes.map(|bytes| Line::parse(Bytes::copy_from_slice(bytes))) else {
            return Ok(Called::Thus(None));
        };
        if line.is_another_first(first) {
            return Ok(Called::Another);
        }
        let id = row.try_get(0)?;
        self.begun.keep(log, first, id);
        Ok(Called::Thus(Some(id)))
    }
}

/// Adds lines, to the log of this id if one is named.
async fn add(
    connection: &Connection,
    log: &LogKey,
    id: Option<i64>,
    at: Position,
    lines: &[Line],
    Batch(batch): Batch,
) -> Result<u64, Error> {
    let (session, name, at) = (log.session.as_str(), log.name.as_str(), at as i64);
    if let ([line], 1..) = (lines, at) {
        // Most appends are one line: without arrays, which the server would have to take apart.
        let sql = "WITH log AS (
                UPDATE rethread.logs
                SET next = next + 1, size = size + octet_length($4::bytea), modified = clock_timestamp()
                WHERE session = $1 AND name = $2 AND next = $3 AND id = COALESCE($6, id)
                RETURNING id, size
            )
            INSERT INTO rethread.lines (log, position, ends, bytes, batch) SELECT id, $3, size, $4, $5 FROM log";
        return connection.change(sql, &[&session, &name, &at, &line.as_bytes(), &batch, &id]).await;
    }
    let lines: Vec<&[u8]> = lines.iter().map(Line::as_bytes).collect();
    let mut size = 0;
    let ends: Vec<i64> = lines
        .iter()
        .map(|line| {
            size += line.len() as i64;
            size
        })
        .collect();
    // A log without lines has no row.
    if at == 0 {
        let sql = "WITH log AS (
                INSERT INTO rethread.logs (session, name, next, size)
                VALUES ($1, $2, $3::bigint + cardinality($4::bytea[]), $6::bigint)
                ON CONFLICT (session, name) DO NOTHING
                RETURNING id, 0 AS before
            )
            INSERT INTO rethread.lines (log, position, ends, bytes, batch)
            SELECT log.id, $3::bigint + number - 1, log.before + ends, line, CASE number WHEN 1 THEN $7::bigint END
            FROM log, unnest($4::bytea[], $5::bigint[]) WITH ORDINALITY AS new (line, ends, number)";
        return connection.change(sql, &[&session, &name, &at, &lines, &ends, &size, &batch]).await;
    }
    let sql = "WITH log AS (
                UPDATE rethread.logs
                SET next = $3::bigint + cardinality($4::bytea[]), size = size + $6::bigint, modified = clock_timestamp()
                WHERE session = $1 AND name = $2 AND next = $3 AND id = COALESCE($8, id)
                RETURNING id, size - $6 AS before
            )
            INSERT INTO rethread.lines (log, position, ends, bytes, batch)
            SELECT log.id, $3::bigint + number - 1, log.before + ends, line, CASE number WHEN 1 THEN $7::bigint END
            FROM log, unnest($4::bytea[], $5::bigint[]) WITH ORDINALITY AS new (line, ends, number)";
    connection.change(sql, &[&session, &name, &at, &lines, &ends, &size, &batch, &id]).await
}

/// Returns whether this very append is there. Another's may look the same.
async fn holds(
    connection: &Connection,
    log: &LogKey,
    at: Position,
    Batch(batch): Batch,
) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM rethread.lines
        WHERE log = (SELECT id FROM rethread.logs WHERE session = $1 AND name = $2)
        AND position = $3 AND batch = $4";
    let (session, name, at) = (log.session.as_str(), log.name.as_str(), at as i64);
    Ok(connection.ask_one(sql, &[&session, &name, &at, &batch]).await?.is_some())
}

async fn next(connection: &Connection, log: &LogKey) -> Result<Position, Error> {
    let sql = "SELECT next FROM rethread.logs WHERE session = $1 AND name = $2";
    let row = connection.ask_one(sql, &[&log.session.as_str(), &log.name.as_str()]).await?;
    Ok(row.map_or(0, |row| row.get::<_, i64>(0) as Position))
}

/// Reads a log, from one state of it.
pub(crate) async fn read(
    connection: Connection,
    log: LogKey,
    from: From,
    max_bytes: usize,
) -> Result<Chunk, Error> {
    let (mut fetched, mut missing) = (max_bytes.max(1), None);
    loop {
        let read = read_lines(&connection, &log, from, max_bytes, fetched).await?;
        if let Some(chunk) = read {
            match whole_groups(chunk) {
                Some(chunk) => return Ok(chunk),
                // A group is never cut, however large.
                None => fetched = fetched.saturating_mul(8),
            }
            continue;
        }
        let end = next(&connection, &log).await?;
        let start = if let From::Position(position) = from { position } else { end.saturating_sub(1) };
        // What was added since will be there when it is looked for again.
        if start >= end || missing == Some(end) {
            let mut chunk = Chunk { next: start, ..Chunk::default() };
            lose(&mut chunk, &log, Flaw::Missing, end, 0);
            return Ok(chunk);
        }
        missing = Some(end);
    }
}

/// Reads as many lines as `fetched` bytes hold, up to the end of the first group that makes it as much as was asked for.
/// `None`: there are no lines.
async fn read_lines(
    connection: &Connection,
    log: &LogKey,
    from: From,
    max_bytes: usize,
    fetched: usize,
) -> Result<Option<Chunk>, Error> {
    // How many rows to look at is guessed from how long they are usually, to which of them to read is known exactly.
    let sql = "
        WITH log AS MATERIALIZED (SELECT id, next, size FROM rethread.logs WHERE session = $1 AND name = $2)
        SELECT position, bytes FROM (
            SELECT position, bytes, ends FROM rethread.lines
            WHERE log = (SELECT id FROM log) AND position < (SELECT next FROM log)
            AND position >= coalesce($3, (SELECT next FROM log) - 1)
            ORDER BY position
            LIMIT (SELECT 2 * $4::bigint / greatest(size / next, 1) + 1 FROM log)
        ) AS first
        WHERE ends - octet_length(bytes) < $4 + (
            SELECT ends - octet_length(bytes) FROM rethread.lines
            WHERE log = (SELECT id FROM log) AND position >= coalesce($3, (SELECT next FROM log) - 1)
            ORDER BY position LIMIT 1
        )
        ORDER BY position";
    let (session, name) = (log.session.as_str(), log.name.as_str());
    let wanted = match from {
        From::Position(position) => Some(position.min(i64::MAX as u64) as i64),
        From::Last => None,
    };
    let rows = connection.stream(sql, &[&session, &name, &wanted, &(fetched.min(1 << 40) as i64)]).await?;
    let mut rows = std::pin::pin!(rows);
    let (mut chunk, mut size, mut room) = (None, 0, Room::default());
    while let Some(row) = rows.try_next().await? {
        let (position, bytes): (i64, &[u8]) = (row.get(0), row.get(1));
        let position = position as Position;
        let start = wanted.map_or(position, |wanted| wanted as Position);
        let chunk = chunk.get_or_insert_with(|| Chunk { next: start, ..Chunk::default() });
        if size >= max_bytes && chunk.lines.last().is_some_and(|last| last.stamp().left == 0) {
            break;
        }
        lose(chunk, log, Flaw::Missing, position, 0);
        size += bytes.len();
        match Line::take(room.copy(bytes)) {
            Ok(line) if line.stamp().position == position => {
                chunk.lines.push(line);
                chunk.next = position + 1;
            }
            Ok(_) => lose(chunk, log, Flaw::Misplaced, position + 1, bytes.len()),
            Err(flaw) => lose(chunk, log, flaw, position + 1, bytes.len()),
        }
    }
    Ok(chunk)
}

/// Leaves out the beginning of a group at the end; `None` if there is nothing else.
fn whole_groups(mut chunk: Chunk) -> Option<Chunk> {
    let left = |line: &Line| line.stamp().left;
    // What was read last may be damage: then the rest of its group is nowhere.
    let is_cut =
        chunk.lines.last().is_some_and(|last| left(last) > 0 && last.stamp().position + 1 == chunk.next);
    if !is_cut {
        return Some(chunk);
    }
    let is_follower = |pair: &[Line]| left(&pair[0]) == left(&pair[1]) + 1;
    let begin = chunk.lines.windows(2).rposition(|pair| !is_follower(pair)).map(|before| before + 1)?;
    chunk.next = chunk.lines[begin].stamp().position;
    chunk.lines.truncate(begin);
    chunk.damage.retain(|damage| damage.lost.start < chunk.next);
    Some(chunk)
}

/// Where lines are copied to: many share an allocation.
#[derive(Default)]
struct Room(BytesMut);

impl Room {
    const SIZE: usize = 256 << 10;

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

pub(crate) async fn has_more(connection: Connection, log: &LogKey, since: Position) -> Result<bool, Error> {
    Ok(next(&connection, log).await? > since)
}

/// Finds the newest record of an entry. The server looks for what could be it: a record says at its very end what it is.
pub(crate) async fn find(
    connection: Connection,
    log: &LogKey,
    id: &EntryId,
) -> Result<Option<Position>, Error> {
    let sql = "SELECT position, bytes FROM rethread.lines
        WHERE log = (SELECT id FROM rethread.logs WHERE session = $1 AND name = $2) AND position < $3
        AND position($4::bytea IN substring(bytes FROM greatest(octet_length(bytes) - 511, 1))) > 0
        ORDER BY position DESC LIMIT $5";
    let (session, name, wanted) = (log.session.as_str(), log.name.as_str(), id.as_str().as_bytes());
    let mut before = i64::MAX;
    loop {
        let rows = connection.ask(sql, &[&session, &name, &before, &wanted, &CANDIDATES]).await?;
        for row in &rows {
            before = row.get(0);
            let bytes = Bytes::copy_from_slice(row.get(1));
            if Line::parse(bytes).is_ok_and(|line| line.stamp().id == *id) {
                return Ok(Some(before as Position));
            }
        }
        if rows.len() < CANDIDATES as usize {
            return Ok(None);
        }
    }
}

/// Removes a session's logs and documents.
pub(crate) async fn remove_session(connection: Connection, session: &SessionId) -> Result<bool, Error> {
    connection.begin().await?;
    let sql = "DELETE FROM rethread.logs WHERE session = $1 RETURNING id";
    let logs = connection.ask(sql, &[&session.as_str()]).await?;
    // Only now, when nobody can add to them any more.
    let ids: Vec<i64> = logs.iter().map(|row| row.get(0)).collect();
    connection.change("DELETE FROM rethread.lines WHERE log = ANY($1)", &[&ids]).await?;
    let sql = "DELETE FROM rethread.documents WHERE session = $1";
    let documents = connection.change(sql, &[&session.as_str()]).await?;
    connection.commit().await?;
    Ok(documents > 0 || !logs.is_empty())
}

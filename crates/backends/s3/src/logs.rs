//! Logs: one object that is replaced under a condition, and parts that its older lines go to.

use std::sync::Arc;

use rethread_store::backend::{Append, Chunk, Durability, From, LogKey, Position};
use rethread_store::{EntryId, Error, Line, Result};

use crate::bucket::{Bucket, Expected, Got, Replaced};
use crate::known::{Known, Seen};
use crate::layout;
use crate::piece::{Piece, vanished};
use crate::tail::{Part, Plan, Tail, joined};

/// How often a log that changes while it is looked at is looked at again.
const ATTEMPTS: usize = 100;

/// Adds lines where the log ends: one request, unless there is something to merge. If a record is named, the log has to begin
/// with it.
pub(crate) async fn append(
    bucket: &Bucket,
    known: &Known,
    log: &LogKey,
    first: Option<&EntryId>,
    at: Position,
    lines: &[Line],
) -> Result<Append> {
    // One after the other: so whatever this writer has added is known, but for what it got no answer to.
    let turn = known.turn(log);
    let _turn = turn.lock().await;
    let time = if known.unanswered.take(log, at, lines).is_some() { Time::Again } else { Time::First };
    let appended = add(bucket, known, log, first, at, lines, time).await;
    if appended.as_ref().is_err_and(|error| time == Time::Again || error.is_passing()) {
        known.unanswered.add(log, at, lines, ());
    }
    appended
}

/// Whether something is done for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    First,
    Again,
}

async fn add(
    bucket: &Bucket,
    known: &Known,
    log: &LogKey,
    first: Option<&EntryId>,
    at: Position,
    lines: &[Line],
    time: Time,
) -> Result<Append> {
    let done = Append::Done { durability: Durability::Synced, found: Vec::new() };
    let next = |seen: &Option<Seen>| seen.as_ref().map_or(0, |seen| seen.tail.next());
    let mut seen = known.tail(log);
    if next(&seen) != at || lines.is_empty() {
        seen = look(bucket, known, log).await?;
    }
    for _ in 0..ATTEMPTS {
        if seen.as_ref().zip(first).is_some_and(|(seen, first)| seen.tail.is_another_than(first)) {
            return Ok(Append::Moved { next: next(&seen) });
        }
        if next(&seen) != at {
            // It may have been added before, and somebody has looked since.
            if time == Time::Again && is_ours(bucket, known, log, seen.as_ref(), at, lines).await? {
                return Ok(done);
            }
            return Ok(Append::Moved { next: next(&seen) });
        }
        if lines.is_empty() {
            return Ok(done);
        }
        let (mut tail, made) = compose(bucket, known, log, seen.as_ref(), lines).await?;
        let merged = tail.take_merged(log);
        let expected = seen.as_ref().map_or(Expected::Absent, |seen| Expected::Etag(seen.etag.clone()));
        match bucket.replace(&layout::tail(log), &expected, tail.to_bytes()).await? {
            Replaced::Done(etag) => {
                known.keep_tail(log, Seen::now(tail, etag));
                // Whatever stays is swept one day.
                let _ = bucket.delete(&merged).await;
                return Ok(done);
            }
            Replaced::Conflict => {
                seen = look(bucket, known, log).await?;
                if is_ours(bucket, known, log, seen.as_ref(), at, lines).await? {
                    return Ok(done);
                }
                // Nobody refers to it, and nobody will: that state of the log is history.
                let is_named = |name: &String| seen.as_ref().is_some_and(|seen| seen.tail.names(name));
                if let Some(name) = made.filter(|name| !is_named(name)) {
                    let _ = bucket.delete(&[layout::part(log, &name)]).await;
                }
            }
        }
    }
    Err(Error::Contended(log.to_string()))
}

/// Returns the log's next state. What has to be in a part is written first; its name is returned too.
async fn compose(
    bucket: &Bucket,
    known: &Known,
    log: &LogKey,
    seen: Option<&Seen>,
    lines: &[Line],
) -> Result<(Tail, Option<String>)> {
    let key = layout::tail(log);
    // The first lines never go to a part: one without a log is nobody's, and is swept.
    let Some(tail) = seen.map(|seen| &seen.tail) else {
        return Ok((Tail::with(None, &key, lines, known.writer()), None));
    };
    let size = lines.iter().map(|line| line.as_bytes().len() + 1).sum();
    let (merge, sealed, added) = match tail.plan(size) {
        Plan::Add => return Ok((Tail::with(Some(tail), &key, lines, known.writer()), None)),
        Plan::Seal { merge } => (merge, &lines[..0], lines),
        Plan::SealAll { merge } => (merge, lines, &lines[..0]),
    };
    let parts = tail.parts();
    let mut pieces = Vec::new();
    for part in &parts[parts.len() - merge..] {
        pieces.push(piece(bucket, known, log, part).await?);
    }
    // One that is gone is not merged, and neither is what stands before it: readers say what is missing.
    let from = pieces.iter().rposition(Option::is_none).map_or(0, |gone| gone + 1);
    let pieces: Vec<Arc<Piece>> = pieces.into_iter().skip(from).flatten().collect();
    let merge = pieces.len();
    let first = parts[..parts.len() - merge].last().map_or(0, |before| before.next);
    let next = tail.next() + sealed.len() as Position;
    let bytes = joined(pieces.iter().map(|piece| piece.bytes()).chain([tail.piece().bytes()]), sealed);
    let name = layout::fresh();
    let part = Part { name: name.clone(), first, next, size: bytes.len() as u64 };
    let part_key = layout::part(log, &name);
    bucket.put(&part_key, bytes.clone()).await?;
    known.keep_part(&part_key, Arc::new(Piece::new(part_key.clone(), first, next, bytes)));
    Ok((tail.sealed(&key, part, merge, added, known.writer()), Some(name)))
}

/// Looks how a log ends.
pub(crate) async fn look(bucket: &Bucket, known: &Known, log: &LogKey) -> Result<Option<Seen>> {
    let before = known.tail(log);
    let key = layout::tail(log);
    let seen = match bucket.get(&key, None, before.as_ref().map(|seen| seen.etag.as_str())).await? {
        Got::Object(object) => match before.filter(|seen| seen.etag == object.etag) {
            Some(seen) => seen.again(),
            None => Seen::now(Tail::parse(key, object.bytes)?, object.etag),
        },
        Got::Unchanged => match before {
            Some(seen) => seen.again(),
            None => unreachable!("nothing was known that could be unchanged"),
        },
        Got::Missing | Got::Beyond => {
            known.forget(log);
            return Ok(None);
        }
    };
    known.keep_tail(log, seen.clone());
    Ok(Some(seen))
}

/// Returns what an older part holds; `None` if it is gone.
async fn piece(bucket: &Bucket, known: &Known, log: &LogKey, part: &Part) -> Result<Option<Arc<Piece>>> {
    let key = layout::part(log, &part.name);
    if let Some(piece) = known.part(&key) {
        return Ok(Some(piece));
    }
    let Got::Object(object) = bucket.get(&key, None, None).await? else { return Ok(None) };
    let piece = Arc::new(Piece::new(key.clone(), part.first, part.next, object.bytes));
    known.keep_part(&key, piece.clone());
    Ok(Some(piece))
}

/// Reads a log, from one state of it.
///
/// A reader begins at the first line, or where it knows the log to end, or with the last line: then the log is looked at.
/// One that is in between goes on with what was seen within the last second: it does not change, but that a session may
/// be removed.
pub(crate) async fn read(
    bucket: &Bucket,
    known: &Known,
    log: &LogKey,
    from: From,
    max_bytes: usize,
) -> Result<Chunk> {
    let is_inside = |seen: &Seen| match from {
        From::Position(position) => (1..seen.tail.next()).contains(&position),
        From::Last => false,
    };
    let recent = known.tail(log).filter(|seen| is_inside(seen) && seen.is_recent());
    let mut is_new = recent.is_none();
    let mut seen = match recent {
        Some(seen) => Some(seen),
        None => look(bucket, known, log).await?,
    };
    let mut missing: Option<String> = None;
    loop {
        let end = seen.as_ref().map_or(0, |seen| seen.tail.next());
        let start = if let From::Position(position) = from { position } else { end.saturating_sub(1) };
        let mut chunk = Chunk { next: start, ..Chunk::default() };
        let Some(now) = seen.as_ref().filter(|_| start < end) else { return Ok(chunk) };
        // A part that is gone was merged into another, unless the log still says that it is there.
        let is_damage = missing.as_ref() == Some(&now.etag);
        if gather(bucket, known, log, &now.tail, &mut chunk, max_bytes, is_damage).await? {
            chunk.ends = is_new && !chunk.lines.is_empty() && chunk.next == end;
            return Ok(chunk);
        }
        missing = Some(now.etag.clone());
        (seen, is_new) = (look(bucket, known, log).await?, true);
    }
}

/// Adds lines to a chunk until it is full. Returns `false` if a part is gone, and that is not known to be damage.
async fn gather(
    bucket: &Bucket,
    known: &Known,
    log: &LogKey,
    tail: &Tail,
    chunk: &mut Chunk,
    max_bytes: usize,
    is_damage: bool,
) -> Result<bool> {
    let mut size = 0;
    for part in tail.parts().iter().filter(|part| part.next > chunk.next).cloned().collect::<Vec<_>>() {
        match piece(bucket, known, log, &part).await? {
            Some(piece) if piece.add_to(chunk, &mut size, max_bytes) => return Ok(true),
            Some(_) => {}
            None if is_damage => {
                let lost = chunk.next.max(part.first)..part.next;
                chunk.next = part.next;
                chunk.damage.push(vanished(layout::part(log, &part.name), lost, part.size));
            }
            None => return Ok(false),
        }
    }
    tail.piece().add_to(chunk, &mut size, max_bytes);
    Ok(true)
}

/// Returns whether these lines stand there because we have sent them. Another's may be the same, to the byte; only where
/// nobody remembers whose they are, because an older program was there or a crowd, do they count as ours.
async fn is_ours(
    bucket: &Bucket,
    known: &Known,
    log: &LogKey,
    seen: Option<&Seen>,
    at: Position,
    lines: &[Line],
) -> Result<bool> {
    match seen.map(|seen| seen.tail.is_by(known.writer(), at)) {
        None | Some(Some(false)) => Ok(false),
        Some(Some(true) | None) => holds(bucket, known, log, at, lines).await,
    }
}

/// Returns whether these very lines stand there.
async fn holds(bucket: &Bucket, known: &Known, log: &LogKey, at: Position, lines: &[Line]) -> Result<bool> {
    let (mut from, mut rest) = (at, lines);
    while !rest.is_empty() {
        let there = read(bucket, known, log, From::Position(from), 1 << 20).await?;
        let count = there.lines.len().min(rest.len());
        if count == 0 || there.lines[..count] != rest[..count] {
            return Ok(false);
        }
        (from, rest) = (there.next, &rest[count..]);
    }
    Ok(true)
}

/// Returns whether a log has more than so many positions.
pub(crate) async fn has_more(bucket: &Bucket, known: &Known, log: &LogKey, since: Position) -> Result<bool> {
    Ok(look(bucket, known, log).await?.is_some_and(|seen| seen.tail.next() > since))
}

/// Finds the newest record of an entry.
pub(crate) async fn find(
    bucket: &Bucket,
    known: &Known,
    log: &LogKey,
    id: &EntryId,
) -> Result<Option<Position>> {
    let newest = |piece: &Piece| {
        let found = piece.lines().iter().rfind(|line| line.stamp().id == *id);
        found.map(|line| line.stamp().position)
    };
    let mut looked = None;
    'state: loop {
        let Some(seen) = look(bucket, known, log).await? else { return Ok(None) };
        if let Some(position) = newest(seen.tail.piece()) {
            return Ok(Some(position));
        }
        for part in seen.tail.parts().iter().rev() {
            match piece(bucket, known, log, part).await? {
                Some(piece) => {
                    if let Some(position) = newest(&piece) {
                        return Ok(Some(position));
                    }
                }
                // It was merged into another meanwhile, unless the log still says that it is there.
                None if looked.as_ref() != Some(&seen.etag) => {
                    looked = Some(seen.etag);
                    continue 'state;
                }
                None => {}
            }
        }
        return Ok(None);
    }
}

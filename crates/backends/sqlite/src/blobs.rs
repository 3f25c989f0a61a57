//! Contents under their hashes, in parts, so that a large one is neither read nor written at once.

use std::io::{self, Read};
use std::ops::Range;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use rethread_store::{BlobId, Error, Result};
use rusqlite::{OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};

use crate::connections::Connections;
use crate::documents::nanoseconds;

/// How large a part is.
const PART: usize = 1 << 20;
/// How much is written at once of one that is larger.
const AT_ONCE: usize = 8 << 20;
/// How many bits of a part's number say which part it is: the rest say of which blob.
const PART_BITS: u32 = 24;
/// How long a blob may take to be written before what is there of it counts as left behind.
const UNFINISHED: Duration = Duration::from_secs(60 * 60);

type Sqlite<T> = rusqlite::Result<T>;

/// Stores content that comes piece by piece.
pub(crate) fn put(connections: &Connections, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
    let mut hasher = Sha256::new();
    let mut piece = take(content, blob)?;
    hasher.update(&piece);
    if piece.len() < AT_ONCE {
        check(blob, hasher)?;
        return connections.write("put a blob into", |transaction| store(transaction, blob, &piece));
    }
    // Too large for one transaction: its parts belong to nothing until the last one is there and the hash is right.
    let id = connections.write("begin a blob in", begin)?;
    let mut number = 0;
    let written = loop {
        let parts = piece.chunks(PART).zip(number..);
        let add = |transaction: &Transaction<'_>| {
            parts.clone().try_for_each(|(part, number)| add_part(transaction, id, number, part))
        };
        if let Err(error) = connections.write("put a blob into", add) {
            break Err(error);
        }
        number += piece.len().div_ceil(PART) as i64;
        match take(content, blob) {
            Ok(next) if next.is_empty() => break check(blob, hasher),
            Ok(next) => {
                hasher.update(&next);
                piece = next;
            }
            Err(error) => break Err(error),
        }
    };
    match written {
        Ok(()) => connections.write("finish a blob in", |transaction| finish(transaction, id, blob)),
        Err(error) => {
            // What cannot be removed now is swept later.
            let _ = connections.write("give up a blob in", |transaction| remove_parts(transaction, id));
            Err(error)
        }
    }
}

/// Stores contents that are in memory, all of them or none.
pub(crate) fn put_all(connections: &Connections, blobs: &[(BlobId, Bytes)]) -> Result<()> {
    if let Some((wrong, _)) = blobs.iter().find(|(blob, content)| !blob.fits(content)) {
        return Err(Error::WrongBlob(*wrong));
    }
    // A transaction that is too large keeps everybody else waiting.
    let mut rest = blobs;
    while !rest.is_empty() {
        let mut size = 0;
        let fit = rest.iter().take_while(|(_, content)| {
            size += content.len();
            size <= AT_ONCE
        });
        let (now, later) = rest.split_at(fit.count().max(1));
        connections.write("put blobs into", |transaction| {
            now.iter().try_for_each(|(blob, content)| store(transaction, blob, content))
        })?;
        rest = later;
    }
    Ok(())
}

fn take(content: &mut (dyn Read + Send), blob: &BlobId) -> Result<Vec<u8>> {
    let mut piece = Vec::new();
    let read = io::Read::take(content, AT_ONCE as u64).read_to_end(&mut piece);
    read.map_err(Error::io("read the content of", blob.to_string()))?;
    Ok(piece)
}

fn check(blob: &BlobId, hasher: Sha256) -> Result<()> {
    if blob.fits_hashed(hasher) { Ok(()) } else { Err(Error::WrongBlob(*blob)) }
}

fn store(transaction: &Transaction<'_>, blob: &BlobId, content: &[u8]) -> Sqlite<()> {
    if is_sound(transaction, blob)? {
        return refresh(transaction, blob).map(drop);
    }
    remove(transaction, blob)?;
    let id = begin(transaction)?;
    for (part, number) in content.chunks(PART).zip(0..) {
        add_part(transaction, id, number, part)?;
    }
    finish(transaction, id, blob)
}

fn begin(transaction: &Transaction<'_>) -> Sqlite<i64> {
    let mut insert = transaction.prepare_cached("INSERT INTO blobs (modified) VALUES (?1)")?;
    insert.insert([nanoseconds(Timestamp::now())])
}

fn add_part(transaction: &Transaction<'_>, id: i64, number: i64, part: &[u8]) -> Sqlite<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO parts (key, bytes) VALUES (?1, ?2)")?;
    insert.execute(params![(id << PART_BITS) + number, part]).map(drop)
}

/// Gives what was written its name, unless somebody else has stored the same meanwhile.
fn finish(transaction: &Transaction<'_>, id: i64, blob: &BlobId) -> Sqlite<()> {
    if refresh(transaction, blob)? {
        return remove_parts(transaction, id);
    }
    let mut update = transaction.prepare_cached("UPDATE blobs SET hash = ?2, modified = ?3 WHERE id = ?1")?;
    update.execute(params![id, blob.as_bytes(), nanoseconds(Timestamp::now())]).map(drop)
}

/// Makes a blob young. Returns whether it is there.
pub(crate) fn refresh(transaction: &Transaction<'_>, blob: &BlobId) -> Sqlite<bool> {
    let mut update = transaction.prepare_cached("UPDATE blobs SET modified = ?2 WHERE hash = ?1")?;
    Ok(update.execute(params![blob.as_bytes(), nanoseconds(Timestamp::now())])? > 0)
}

fn id_of(transaction: &Transaction<'_>, blob: &BlobId) -> Sqlite<Option<i64>> {
    let mut select = transaction.prepare_cached("SELECT id FROM blobs WHERE hash = ?1")?;
    select.query_row([blob.as_bytes()], |row| row.get(0)).optional()
}

/// Returns whether a blob is there, and is what it should be: one that is damaged is stored anew.
fn is_sound(transaction: &Transaction<'_>, blob: &BlobId) -> Sqlite<bool> {
    let Some(id) = id_of(transaction, blob)? else { return Ok(false) };
    let mut hasher = Sha256::new();
    each_part(transaction, id, 0, |part| hasher.update(part))?;
    Ok(blob.fits_hashed(hasher))
}

pub(crate) fn get(transaction: &Transaction<'_>, blob: &BlobId, range: &Range<u64>) -> Sqlite<Option<Bytes>> {
    let Some(id) = id_of(transaction, blob)? else { return Ok(None) };
    let first = (range.start / PART as u64).min(1 << PART_BITS);
    let mut at = first * PART as u64;
    let mut content = BytesMut::new();
    let last = (range.end.div_ceil(PART as u64)).min(1 << PART_BITS);
    parts(transaction, id, first as i64..last as i64, |part| {
        let end = at + part.len() as u64;
        let (from, to) = (range.start.clamp(at, end) - at, range.end.clamp(at, end) - at);
        content.extend_from_slice(part.get(from as usize..to as usize).unwrap_or_default());
        at = end;
    })?;
    Ok(Some(content.freeze()))
}

fn each_part(transaction: &Transaction<'_>, id: i64, from: i64, each: impl FnMut(&[u8])) -> Sqlite<()> {
    parts(transaction, id, from..1 << PART_BITS, each)
}

fn parts(
    transaction: &Transaction<'_>,
    id: i64,
    numbers: Range<i64>,
    mut each: impl FnMut(&[u8]),
) -> Sqlite<()> {
    let sql = "SELECT bytes FROM parts WHERE key >= ?1 AND key < ?2 ORDER BY key";
    let mut select = transaction.prepare_cached(sql)?;
    let mut rows = select.query([(id << PART_BITS) + numbers.start, (id << PART_BITS) + numbers.end])?;
    while let Some(row) = rows.next()? {
        each(row.get_ref(0)?.as_blob()?);
    }
    Ok(())
}

pub(crate) fn remove(transaction: &Transaction<'_>, blob: &BlobId) -> Sqlite<bool> {
    remove_before(transaction, blob, Timestamp::MAX)
}

/// Removes a blob that nobody has put since then.
pub(crate) fn remove_before(transaction: &Transaction<'_>, blob: &BlobId, since: Timestamp) -> Sqlite<bool> {
    let sql = "SELECT id FROM blobs WHERE hash = ?1 AND modified <= ?2";
    let mut select = transaction.prepare_cached(sql)?;
    let id = select.query_row(params![blob.as_bytes(), nanoseconds(since)], |row| row.get(0)).optional()?;
    match id {
        Some(id) => remove_parts(transaction, id).map(|()| true),
        None => Ok(false),
    }
}

fn remove_parts(transaction: &Transaction<'_>, id: i64) -> Sqlite<()> {
    let range = [id << PART_BITS, (id + 1) << PART_BITS];
    transaction.execute("DELETE FROM parts WHERE key >= ?1 AND key < ?2", range)?;
    transaction.execute("DELETE FROM blobs WHERE id = ?1", [id]).map(drop)
}

/// Removes what was begun long ago and never finished. Returns how many.
pub(crate) fn sweep(transaction: &Transaction<'_>) -> Sqlite<u64> {
    let before = Timestamp::now().checked_sub(UNFINISHED).unwrap_or(Timestamp::MIN);
    let mut select = transaction.prepare("SELECT id FROM blobs WHERE hash IS NULL AND modified < ?1")?;
    let left: Vec<i64> = select.query_map([nanoseconds(before)], |row| row.get(0))?.collect::<Sqlite<_>>()?;
    left.iter().try_for_each(|&id| remove_parts(transaction, id))?;
    Ok(left.len() as u64)
}

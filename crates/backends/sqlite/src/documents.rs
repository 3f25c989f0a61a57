//! Documents.

use bytes::Bytes;
use jiff::Timestamp;
use rethread_store::backend::{Document, Expect, Key, Put, Version};
use rusqlite::{OptionalExtension as _, Result, Transaction, params};

/// Returns a time as it is kept.
pub(crate) fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

/// Returns a time that was kept.
pub(crate) fn timestamp(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or_default()
}

pub(crate) fn get(transaction: &Transaction<'_>, key: &Key) -> Result<Option<Document>> {
    let mut found = transaction.prepare_cached("SELECT version, bytes FROM documents WHERE name = ?1")?;
    let document = |row: &rusqlite::Row<'_>| {
        let (version, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        Ok(Document { version: Version(version.to_string()), bytes: Bytes::from(bytes) })
    };
    found.query_row([key.to_string()], document).optional()
}

pub(crate) fn put(transaction: &Transaction<'_>, key: &Key, bytes: &[u8], expect: &Expect) -> Result<Put> {
    let current = get(transaction, key)?;
    let holds = match (expect, &current) {
        (Expect::Any, _) | (Expect::Absent, None) => true,
        (Expect::Version(expected), Some(current)) => current.version == *expected,
        _ => false,
    };
    if !holds {
        return Ok(Put::Conflict(current));
    }
    // A number that no earlier state had, not even one of a document that was removed in between.
    let sql = "INSERT INTO documents (name, session, version, modified, bytes) VALUES (?1, ?2, random(), ?3, ?4)
        ON CONFLICT (name) DO UPDATE SET version = excluded.version, modified = excluded.modified, bytes = excluded.bytes
        RETURNING version";
    let owner = key.owner().map(|session| session.as_str());
    let version: i64 = transaction
        .prepare_cached(sql)?
        .query_row(params![key.to_string(), owner, nanoseconds(Timestamp::now()), bytes], |row| row.get(0))?;
    Ok(Put::Done(Version(version.to_string())))
}

pub(crate) fn remove(transaction: &Transaction<'_>, key: &Key) -> Result<bool> {
    Ok(transaction.execute("DELETE FROM documents WHERE name = ?1", [key.to_string()])? > 0)
}

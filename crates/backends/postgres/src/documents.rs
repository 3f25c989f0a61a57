//! Documents.

use bytes::Bytes;
use rethread_store::backend::{Document, Expect, Key, Put, Version};
use tokio_postgres::Error;

use crate::connection::Connection;

pub(crate) async fn get(connection: Connection, key: &Key) -> Result<Option<Document>, Error> {
    let sql = "SELECT version, bytes FROM rethread.documents WHERE name = $1";
    let found = connection.ask_one(sql, &[&key.to_string()]).await?;
    let document = |row: tokio_postgres::Row| {
        let bytes: &[u8] = row.get(1);
        Document { version: Version(row.get(0)), bytes: Bytes::copy_from_slice(bytes) }
    };
    Ok(found.map(document))
}

/// Replaces a document, unless something else is there. What is written gets `version`, so that it is recognised if its
/// answer is lost. `None`: it changed while it was looked at.
pub(crate) async fn put(
    connection: Connection,
    key: &Key,
    bytes: &[u8],
    expect: &Expect,
    version: &Version,
) -> Result<Option<Put>, Error> {
    let (name, owner) = (key.to_string(), key.owner().map(|session| session.as_str()));
    let put = match expect {
        Expect::Any => {
            let sql = "INSERT INTO rethread.documents (name, session, version, bytes) VALUES ($1, $2, $3, $4)
                ON CONFLICT (name) DO UPDATE
                SET version = excluded.version, modified = excluded.modified, bytes = excluded.bytes";
            connection.change(sql, &[&name, &owner, &version.0, &bytes]).await?
        }
        Expect::Absent => {
            let sql = "INSERT INTO rethread.documents (name, session, version, bytes) VALUES ($1, $2, $3, $4)
                ON CONFLICT (name) DO NOTHING";
            connection.change(sql, &[&name, &owner, &version.0, &bytes]).await?
        }
        Expect::Version(expected) => {
            let sql = "UPDATE rethread.documents SET version = $2, modified = clock_timestamp(), bytes = $3
                WHERE name = $1 AND version = $4";
            connection.change(sql, &[&name, &version.0, &bytes, &expected.0]).await?
        }
    };
    if put > 0 {
        return Ok(Some(Put::Done(version.clone())));
    }
    let current = get(connection.clone(), key).await?;
    Ok(match (&current, expect) {
        (Some(current), _) if current.version == *version => Some(Put::Done(version.clone())),
        (None, Expect::Absent) => None,
        (Some(current), Expect::Version(expected)) if current.version == *expected => None,
        _ => Some(Put::Conflict(current)),
    })
}

pub(crate) async fn remove(connection: Connection, key: &Key) -> Result<bool, Error> {
    let sql = "DELETE FROM rethread.documents WHERE name = $1";
    Ok(connection.change(sql, &[&key.to_string()]).await? > 0)
}

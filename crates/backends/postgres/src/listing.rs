//! Names in order.

use jiff::Timestamp;
use rethread_store::backend::{Listed, Space};
use tokio_postgres::{Error, Row};

use crate::connection::Connection;

pub(crate) async fn list(
    connection: Connection,
    space: Space,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Listed>, Error> {
    let (after, limit) = (after.unwrap_or_default(), i64::try_from(limit).unwrap_or(i64::MAX));
    let listed = match space {
        Space::Sessions => {
            // Each side no longer than the answer can be: there may be very many.
            let sql = "
                WITH found AS (
                    (SELECT DISTINCT session FROM rethread.logs WHERE session > $1 ORDER BY session LIMIT $2)
                    UNION
                    (SELECT DISTINCT session FROM rethread.documents
                    WHERE session IS NOT NULL AND session > $1 ORDER BY session LIMIT $2)
                )
                SELECT found.session, messages.id, messages.next, coalesce(
                    messages.modified,
                    (SELECT max(modified) FROM rethread.logs WHERE session = found.session),
                    (SELECT max(modified) FROM rethread.documents WHERE session = found.session)
                )
                FROM found
                LEFT JOIN rethread.logs AS messages
                ON messages.session = found.session AND messages.name = 'messages'
                ORDER BY found.session LIMIT $2";
            connection.ask(sql, &[&after, &limit]).await?.iter().map(session).collect()
        }
        Space::Documents => {
            let sql = "SELECT name, modified FROM rethread.documents
                WHERE session IS NULL AND name > $1 ORDER BY name LIMIT $2";
            connection.ask(sql, &[&after, &limit]).await?.iter().map(named).collect()
        }
        Space::Blobs => {
            // The whole bytes of the name say where to begin; the rest of it is looked at where that is.
            let sql = "SELECT encode(hash, 'hex'), modified FROM rethread.blobs
                WHERE hash >= $3 AND encode(hash, 'hex') COLLATE \"C\" > $1 ORDER BY hash LIMIT $2";
            connection.ask(sql, &[&after, &limit, &whole_bytes(after)]).await?.iter().map(named).collect()
        }
    };
    Ok(listed)
}

pub(crate) async fn stat(connection: Connection, name: &str) -> Result<Option<Listed>, Error> {
    let sql = "
        SELECT $1, messages.id, messages.next, coalesce(messages.modified, logs.modified, documents.modified)
        FROM (SELECT max(modified) AS modified FROM rethread.logs WHERE session = $1) AS logs
        CROSS JOIN (SELECT max(modified) AS modified FROM rethread.documents WHERE session = $1) AS documents
        LEFT JOIN rethread.logs AS messages ON messages.session = $1 AND messages.name = 'messages'
        WHERE logs.modified IS NOT NULL OR documents.modified IS NOT NULL";
    Ok(connection.ask_one(sql, &[&name]).await?.as_ref().map(session))
}

fn session(row: &Row) -> Listed {
    let (log, next): (Option<i64>, Option<i64>) = (row.get(1), row.get(2));
    // The number of a log is never given to another, so a session that was made anew has changed.
    let change = log.zip(next).map(|(log, next)| format!("{log}-{next}")).unwrap_or_default();
    Listed { name: row.get(0), change, modified: row.get(3) }
}

fn named(row: &Row) -> Listed {
    let modified: Timestamp = row.get(1);
    Listed { name: row.get(0), change: String::new(), modified }
}

/// Returns the bytes that a text begins with in hexadecimal.
fn whole_bytes(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    let byte = |pair: &[u8]| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8);
    text.as_bytes().chunks_exact(2).map_while(byte).collect()
}

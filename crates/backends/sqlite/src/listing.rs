//! Names in order.

use rethread_store::backend::{Listed, LogName, Space};
use rusqlite::{OptionalExtension as _, Result, Row, Transaction, params};

use crate::documents::timestamp;

/// What is known of sessions: what their message log says counts, if there is one.
const SESSIONS: &str = "
SELECT found.session, messages.id, messages.next, coalesce(
    messages.modified,
    (SELECT max(modified) FROM logs WHERE session = found.session),
    (SELECT max(modified) FROM documents WHERE session = found.session)
)
FROM (SELECT session FROM logs UNION SELECT session FROM documents WHERE session IS NOT NULL) AS found
LEFT JOIN logs AS messages ON messages.session = found.session AND messages.name = ?1
";

pub(crate) fn list(
    transaction: &Transaction<'_>,
    space: Space,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Listed>> {
    let (after, limit) = (after.unwrap_or_default(), i64::try_from(limit).unwrap_or(i64::MAX));
    match space {
        Space::Sessions => {
            let sql = format!("{SESSIONS} WHERE found.session > ?2 ORDER BY found.session LIMIT ?3");
            let mut select = transaction.prepare_cached(&sql)?;
            select.query_map(params![LogName::Messages.as_str(), after, limit], session)?.collect()
        }
        Space::Documents => {
            let sql = "SELECT name, modified FROM documents WHERE session IS NULL AND name > ?1 ORDER BY name LIMIT ?2";
            transaction.prepare_cached(sql)?.query_map(params![after, limit], named)?.collect()
        }
        Space::Blobs => {
            let sql = "SELECT lower(hex(hash)), modified FROM blobs
                WHERE hash IS NOT NULL AND lower(hex(hash)) > ?1 ORDER BY hash LIMIT ?2";
            transaction.prepare_cached(sql)?.query_map(params![after, limit], named)?.collect()
        }
    }
}

pub(crate) fn stat(transaction: &Transaction<'_>, name: &str) -> Result<Option<Listed>> {
    let sql = format!("{SESSIONS} WHERE found.session = ?2");
    transaction.prepare_cached(&sql)?.query_row([LogName::Messages.as_str(), name], session).optional()
}

fn session(row: &Row<'_>) -> Result<Listed> {
    let (log, next): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
    // The number of a log is never given to another, so a session that was made anew has changed.
    let change = log.zip(next).map(|(log, next)| format!("{log}-{next}")).unwrap_or_default();
    Ok(Listed { name: row.get(0)?, change, modified: timestamp(row.get(3)?) })
}

fn named(row: &Row<'_>) -> Result<Listed> {
    Ok(Listed { name: row.get(0)?, change: String::new(), modified: timestamp(row.get(1)?) })
}

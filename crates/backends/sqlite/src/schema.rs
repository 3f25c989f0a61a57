//! The tables, and which file is one of ours.

use rusqlite::{Connection, TransactionBehavior};

use rethread_store::{Error, Result};

/// "Rthd": what the file's header says it is for.
const APPLICATION: i32 = 0x5274_6864;
/// The newest layout that this program knows.
const FORMAT: i32 = 1;

/// Lines and parts of blobs have one number each, whose upper bits say whose they are: so a log lies together, and a
/// read is one walk along one tree.
const TABLES: &str = "
CREATE TABLE documents (
    name TEXT PRIMARY KEY,
    session TEXT,
    version INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    bytes BLOB NOT NULL
);
CREATE INDEX documents_of_sessions ON documents (session) WHERE session IS NOT NULL;
CREATE TABLE logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    next INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    UNIQUE (session, name)
);
CREATE TABLE lines (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB UNIQUE,
    modified INTEGER NOT NULL
);
CREATE TABLE parts (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
";

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing is in it yet.
    Empty,
    /// Sessions of ours.
    Ours,
}

/// Looks whose file it is. Nothing of another program's is touched.
pub(crate) fn look(connection: &Connection, what: &str) -> rusqlite::Result<Result<Found>> {
    // In one state of the file: somebody may be making the tables right now.
    let transaction = connection.unchecked_transaction()?;
    let found = look_at(&transaction, what)?;
    transaction.finish()?;
    Ok(found)
}

fn look_at(connection: &Connection, what: &str) -> rusqlite::Result<Result<Found>> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, format) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION {
        return Ok(match format {
            0..=FORMAT => Ok(Found::Ours),
            newer => Err(Error::NewerFormat { found: format!("sqlite {newer}"), known: FORMAT as u32 }),
        });
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, tables) {
        (0, 0) => Ok(Found::Empty),
        _ => Err(Error::BadName {
            what: "store of sessions",
            text: what.to_owned(),
            rule: "another program made this database; name a file of its own",
        }),
    })
}

/// Makes the tables, unless somebody else just has.
pub(crate) fn make(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let made: i32 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if made != APPLICATION {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
    }
    transaction.commit()
}

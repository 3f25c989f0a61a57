//! SQLite with a write-ahead log: one table, whose key is the entry's number, so that every insert goes to its end.

use std::path::Path;

use rusqlite::Connection;

use crate::failure::Outcome;

const TABLE: &str =
    "CREATE TABLE entries (position INTEGER PRIMARY KEY, session TEXT NOT NULL, body BLOB NOT NULL)";
const INSERT: &str = "INSERT INTO entries (session, body) VALUES ('parser', ?1)";

/// When SQLite syncs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Synchronous {
    /// With each transaction.
    Full,
    /// With each checkpoint.
    Normal,
    /// Never: for making what is measured later.
    Off,
}

/// A database of entries.
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    /// Makes the database.
    pub(crate) fn create(folder: &Path, synchronous: Synchronous) -> Outcome<Self> {
        let connection = Connection::open(folder.join("entries.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", format!("{synchronous:?}").to_uppercase())?;
        connection.execute(TABLE, ())?;
        Ok(Self(connection))
    }

    /// Opens one that is there.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        Ok(Self(Connection::open(folder.join("entries.db"))?))
    }

    /// Appends entries, some number of them with each transaction.
    pub(crate) fn append<L: AsRef<[u8]>>(
        &mut self,
        entries: &[L],
        per_transaction: impl IntoIterator<Item = usize>,
    ) -> Outcome<()> {
        let mut rest = entries;
        for count in per_transaction {
            let (now, later) = rest.split_at(count.min(rest.len()));
            let transaction = self.0.transaction()?;
            {
                let mut insert = transaction.prepare_cached(INSERT)?;
                for entry in now {
                    insert.execute([entry.as_ref()])?;
                }
            }
            transaction.commit()?;
            rest = later;
        }
        match rest {
            [] => Ok(()),
            _ => Err("some entries are in no transaction".into()),
        }
    }

    /// Reads every entry, oldest first.
    pub(crate) fn read(&self, mut each: impl FnMut(&[u8]) -> Outcome<()>) -> Outcome<()> {
        let mut select = self.0.prepare("SELECT body FROM entries ORDER BY position")?;
        let mut rows = select.query(())?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_blob()?)?;
        }
        Ok(())
    }

    /// Reads the newest entries. Returns how many there were.
    pub(crate) fn last(&self, count: usize) -> Outcome<usize> {
        let mut select = self.0.prepare("SELECT body FROM entries ORDER BY position DESC LIMIT ?1")?;
        let bodies: Vec<Vec<u8>> =
            select.query_map([count as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(bodies.len())
    }
}

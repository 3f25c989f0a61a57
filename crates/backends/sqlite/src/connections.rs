//! The connections to the file: one that writes, and as many that read as there are readers at once.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rethread_store::{Error, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::failure::{PATIENCE, at};
use crate::ground;
use crate::schema::{self, Found};

/// How many readers are kept for the next ones.
const KEPT: usize = 8;
/// How large the pages of a new file are. Most lines then lie within one, and a log is read with half as many calls; still
/// larger ones cost an append more than they save a reader.
const PAGE: u32 = 8192;
/// After how many pages what is in the write-ahead log goes to the file. SQLite's own 1000 would be 8 MiB, and memory that
/// is written to again and again is faster than memory that the system has to find first.
const LOGGED: u32 = 256;
/// How long whoever has removed something waits for readers of what there was before. Writers wait along.
const READERS: Duration = Duration::from_secs(1);

/// The connections to one file.
#[derive(Debug)]
pub(crate) struct Connections {
    path: PathBuf,
    writer: Mutex<Option<Connection>>,
    readers: Mutex<Vec<Connection>>,
}

impl Connections {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, writer: Mutex::default(), readers: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads from one state of the file; `None` if there is nothing yet.
    pub(crate) fn read<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => match self.open_to_read()? {
                Some(connection) => connection,
                None => return Ok(None),
            },
        };
        let read = || {
            let transaction = connection.unchecked_transaction()?;
            let answer = work(&transaction)?;
            transaction.finish()?;
            Ok(answer)
        };
        // A connection that failed is not used again.
        let answer = read().map_err(at(action, &self.path))?;
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < KEPT {
            readers.push(connection);
        }
        Ok(Some(answer))
    }

    /// Changes the file, wholly or not at all, and durably.
    pub(crate) fn write<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match writer.take() {
            Some(connection) => connection,
            None => self.open_to_write()?,
        };
        let write = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = work(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        };
        // After an error nobody knows what it still believes: the next one opens the file anew.
        let answer = write().map_err(at(action, &self.path))?;
        *writer = Some(connection);
        Ok(answer)
    }

    /// Empties the write-ahead log, so that nothing of what was removed is left there either.
    ///
    /// Best effort: while somebody reads an older state it stays, until the next removal or until the last one closes the
    /// file. Those who removed something have done so, and whoever reads must not be able to prevent it.
    pub(crate) fn try_to_empty_log(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &*writer {
            let empty = || {
                connection.busy_timeout(READERS)?;
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
            };
            drop(empty());
            drop(connection.busy_timeout(PATIENCE));
        }
    }

    fn open_to_read(&self) -> Result<Option<Connection>> {
        if !self.path.try_exists().map_err(Error::io("look at", &self.path))? {
            return Ok(None);
        }
        ground::check(&self.path)?;
        let connection = self.open()?;
        Ok(match self.look(&connection)? {
            Found::Ours => Some(connection),
            Found::Empty => None,
        })
    }

    fn open_to_write(&self) -> Result<Connection> {
        ground::check(&self.path)?;
        ground::make_file(&self.path)?;
        let mut connection = self.open()?;
        let found = self.look(&connection)?;
        if found == Found::Empty {
            connection.pragma_update(None, "page_size", PAGE).map_err(at("set up", &self.path))?;
        }
        switch_to_wal(&connection, &self.path)?;
        connection.pragma_update(None, "synchronous", "full").map_err(at("set up", &self.path))?;
        // What is replaced or removed is written over: it may be the key of a session that somebody has erased.
        connection
            .pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))
            .map_err(at("set up", &self.path))?;
        connection
            .pragma_update_and_check(None, "wal_autocheckpoint", LOGGED, |_| Ok(()))
            .map_err(at("set up", &self.path))?;
        if found == Found::Empty {
            patiently(|| schema::make(&mut connection)).map_err(at("begin", &self.path))?;
        }
        Ok(connection)
    }

    fn open(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            connection.set_prepared_statement_cache_capacity(32);
            Ok(connection)
        };
        open().map_err(at("open", &self.path))
    }

    fn look(&self, connection: &Connection) -> Result<Found> {
        let what = self.path.display().to_string();
        patiently(|| schema::look(connection, &what)).map_err(at("read", &self.path))?
    }
}

/// Has what is written go to a write-ahead log first: everything that is promised of the file rests on that.
fn switch_to_wal(connection: &Connection, path: &Path) -> Result<()> {
    let switch = || connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
    let mode: String = patiently(switch).map_err(at("switch to WAL in", path))?;
    // SQLite does not call it an error if the file stays as it was.
    if mode != "wal" {
        return Err(Error::BadName {
            what: "place for SQLite",
            text: path.display().to_string(),
            rule: "SQLite cannot keep a write-ahead log there (WAL); use a folder on a local disk, or PostgreSQL",
        });
    }
    Ok(())
}

/// Tries again what SQLite does not wait for by itself.
fn patiently<T>(mut work: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match work() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_where_sqlite_can_keep_no_write_ahead_log_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, flags) = (folder.path().join("sessions.db"), OpenFlags::default());
        // Whoever locks by files has no memory to share.
        let without = Connection::open_with_flags_and_vfs(&path, flags, c"unix-dotfile").unwrap();
        let error = switch_to_wal(&without, &path).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("sessions.db") && told.contains("use a folder on a local disk"), "{told}");
        assert!(!error.is_passing(), "nobody tries that again and again");
        drop(without);
        switch_to_wal(&Connection::open(&path).unwrap(), &path).unwrap();
    }

    /// SQLite's own patience does not hold for this switch: of those who open a new file at once some failed.
    #[test]
    fn many_that_switch_a_new_file_to_a_write_ahead_log_at_once_wait_for_each_other() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let path = folder.path().join(format!("{round}.db"));
            let begin = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                let switch = || {
                    let connection = Connection::open(&path).unwrap();
                    connection.busy_timeout(PATIENCE).unwrap();
                    begin.wait();
                    switch_to_wal(&connection, &path)
                };
                let all: Vec<_> = (0..8).map(|_| scope.spawn(switch)).collect();
                all.into_iter().for_each(|it| it.join().unwrap().unwrap());
            });
        }
    }

    #[test]
    fn whatever_is_written_is_synced_with_its_transaction_and_nobody_else_writes_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let connections = Connections::new(folder.path().join("sessions.db"));
        let other = Connections::new(folder.path().join("sessions.db"));
        // For the connection that makes the file, and for one that finds it.
        for connections in [&connections, &other] {
            let (mode, synchronous, is_refused) = connections
                .write("test", |transaction| {
                    let mode: String = transaction.query_row("PRAGMA journal_mode", (), |row| row.get(0))?;
                    let synchronous: i64 =
                        transaction.query_row("PRAGMA synchronous", (), |row| row.get(0))?;
                    // Nothing was written yet, and still nobody else can begin.
                    let third = Connection::open(connections.path())?;
                    third.busy_timeout(Duration::ZERO)?;
                    let begun = third.execute_batch("BEGIN IMMEDIATE");
                    Ok((mode, synchronous, begun.is_err()))
                })
                .unwrap();
            assert_eq!((mode.as_str(), synchronous, is_refused), ("wal", 2, true));
        }
    }
}

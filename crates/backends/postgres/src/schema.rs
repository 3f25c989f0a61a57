//! The tables, and how those of an earlier release become those of this one.

use rethread_store::{Error, Result};
use tokio_postgres::Error as PostgresError;

use crate::connection::Connection;

/// "Rethread": whoever changes the tables holds the lock of this number.
const LOCK: i64 = 0x5265_7468_7265_6164;

/// How each layout comes from the one before; the first from nothing. None of them is ever changed.
///
/// Names sort by their bytes. What is appended updates a row of `logs` in place, which has room for it. Each line says
/// how long its log is up to its end, so that a read knows where to stop. Parts of files are compressed already, or gain
/// little by it.
const MIGRATIONS: [&str; 2] = [
    "
CREATE TABLE rethread.format (version integer NOT NULL);
INSERT INTO rethread.format VALUES (0);
CREATE TABLE rethread.documents (
    name text COLLATE \"C\" PRIMARY KEY,
    session text COLLATE \"C\",
    version text COLLATE \"C\" NOT NULL,
    modified timestamptz NOT NULL DEFAULT clock_timestamp(),
    bytes bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX documents_of_sessions ON rethread.documents (session) WHERE session IS NOT NULL;
CREATE TABLE rethread.logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session text COLLATE \"C\" NOT NULL,
    name text COLLATE \"C\" NOT NULL,
    next bigint NOT NULL,
    size bigint NOT NULL,
    modified timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (session, name)
) WITH (fillfactor = 50);
CREATE TABLE rethread.lines (
    log bigint NOT NULL,
    position bigint NOT NULL,
    ends bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (log, position)
);
DO $$ BEGIN
    ALTER TABLE rethread.lines ALTER COLUMN bytes SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- It was built without: then lines are compressed as the server does by itself.
END $$;
CREATE TABLE rethread.blobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea UNIQUE,
    modified timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70);
CREATE TABLE rethread.parts (
    blob bigint NOT NULL REFERENCES rethread.blobs ON DELETE CASCADE,
    number integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (blob, number)
);
ALTER TABLE rethread.parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
",
    "
ALTER TABLE rethread.lines ADD COLUMN batch bigint; -- Of the first line of each append: which one it was.
",
];

/// The newest layout that this program knows.
const NEWEST: i32 = MIGRATIONS.len() as i32;

/// The layouts of this program.
pub(crate) const LAYOUTS: Layouts = Layouts(&MIGRATIONS);

/// Layouts, each as it comes from the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layouts(&'static [&'static str]);

/// What is in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No schema of ours, or an empty one.
    Nothing,
    /// One that somebody else made.
    Another,
    /// Ours, with this layout.
    Format(i32),
}

/// Whose tables there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Nobodys,
    Ours,
}

impl Found {
    /// Returns whose they are; an error if they are nothing that we may touch.
    pub(crate) fn whose(self, place: &str) -> Result<Whose> {
        match self {
            Found::Nothing => Ok(Whose::Nobodys),
            Found::Format(0..=NEWEST) => Ok(Whose::Ours),
            Found::Format(newer) => {
                Err(Error::NewerFormat { found: format!("postgres {newer}"), known: NEWEST as u32 })
            }
            Found::Another => Err(Error::BadName {
                what: "place for sessions",
                text: place.to_owned(),
                rule: "its schema \"rethread\" was made by another program; name a database of its own",
            }),
        }
    }
}

impl Layouts {
    fn newest(self) -> i32 {
        self.0.len() as i32
    }

    /// Looks what is there, and changes it only if an earlier release made it.
    pub(crate) async fn look(self, connection: Connection) -> Result<Found, PostgresError> {
        match found(&connection).await? {
            Found::Format(older) if older < self.newest() => self.make(connection).await,
            found => Ok(found),
        }
    }

    /// Makes the tables, or makes them those of this release, unless somebody else just has. A newer one's are left alone.
    pub(crate) async fn make(self, connection: Connection) -> Result<Found, PostgresError> {
        if let current @ Found::Format(version) = found(&connection).await?
            && version >= self.newest()
        {
            return Ok(current);
        }
        connection.begin().await?;
        connection.ask("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        let found = match found(&connection).await? {
            Found::Nothing => {
                // Not IF NOT EXISTS: who may use a schema may not always make one.
                let made =
                    connection.ask("SELECT 1 FROM pg_namespace WHERE nspname = 'rethread'", &[]).await?;
                if made.is_empty() {
                    connection.run("CREATE SCHEMA rethread").await?;
                }
                self.migrate(&connection, 0).await?
            }
            Found::Format(older) if older < self.newest() => self.migrate(&connection, older).await?,
            found => found,
        };
        connection.commit().await?;
        Ok(found)
    }

    async fn migrate(self, connection: &Connection, from: i32) -> Result<Found, PostgresError> {
        for migration in &self.0[from.unsigned_abs() as usize..] {
            connection.run(migration).await?;
        }
        connection.change("UPDATE rethread.format SET version = $1", &[&self.newest()]).await?;
        Ok(Found::Format(self.newest()))
    }
}

async fn found(connection: &Connection) -> Result<Found, PostgresError> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE relname = 'format') FROM pg_class
        WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'rethread')";
    let row = connection.ask_one(sql, &[]).await?;
    let (tables, format): (i64, i64) = row.map_or((0, 0), |row| (row.get(0), row.get(1)));
    Ok(match (tables, format) {
        (0, _) => Found::Nothing,
        (_, 0) => Found::Another,
        _ => {
            let version = connection.ask_one("SELECT max(version) FROM rethread.format", &[]).await?;
            version.and_then(|row| row.get(0)).map_or(Found::Another, Found::Format)
        }
    })
}

/// Layouts that are still to come, against a real server.
#[cfg(test)]
mod tests {
    use pollster::block_on;
    use rethread_store::{Entry, NewSession, Options, Store};
    use rethread_testkit::{Postgres, cannot};
    use tokio::runtime::Runtime;

    use super::*;
    use crate::connection::connect;
    use crate::{PostgresBackend, Settings};

    /// Slow enough that whoever comes second finds the first one at it.
    const LATER: Layouts = Layouts(&[
        MIGRATIONS[0],
        MIGRATIONS[1],
        "ALTER TABLE rethread.logs ADD COLUMN lines bigint NOT NULL DEFAULT 0;
        SELECT pg_sleep(0.3);
        UPDATE rethread.logs SET lines = (SELECT count(*) FROM rethread.lines WHERE log = logs.id);",
        "ALTER TABLE rethread.logs RENAME COLUMN lines TO held",
    ]);
    const FAILING: Layouts = Layouts(&[
        MIGRATIONS[0],
        MIGRATIONS[1],
        "ALTER TABLE rethread.logs ADD COLUMN held bigint",
        "SELECT 1 / 0",
    ]);
    const STATE: &str = "SELECT (SELECT version FROM rethread.format), count(*), sum(octet_length(bytes))
        FROM rethread.lines";
    const HELD: &str = "SELECT count(*) FROM information_schema.columns WHERE column_name = 'held'";

    fn store(url: &str) -> Store {
        Store::new(PostgresBackend::new(Settings::parse(url).unwrap()).unwrap(), Options::default())
    }

    /// Returns a database of the layout of this release, with a session of four records.
    fn present(server: &Postgres) -> (String, String) {
        let database = server.database();
        let (url, store) = (server.url(&database), store(&server.url(&database)));
        let session = block_on(store.create(NewSession::default().id("s".parse().unwrap()))).unwrap();
        for text in ["a", "b", "c"] {
            session.append_and_wait(Entry::parse(format!(r#"{{"text":"{text}"}}"#)).unwrap()).unwrap();
        }
        store.close().unwrap();
        (database, url)
    }

    fn server() -> Option<&'static Postgres> {
        let server = Postgres::shared();
        if server.is_none() {
            cannot("PostgreSQL is not installed: apt-get install postgresql");
        }
        server
    }

    #[test]
    fn many_that_find_an_earlier_layout_at_once_change_it_once_and_keep_what_is_in_it() {
        let Some(server) = server() else { return };
        let (database, url) = present(server);
        let before = server.sql(&database, STATE);
        assert!(before.starts_with("2|4|"), "{before}");
        let runtime = Runtime::new().unwrap();
        let look = || async {
            let connection = connect(Settings::parse(&url).unwrap()).await.unwrap();
            LATER.look(connection).await.unwrap()
        };
        let looked = runtime.block_on(futures_util::future::join_all((0..6).map(|_| look())));
        assert_eq!(looked, [Found::Format(4); 6]);
        assert_eq!(server.sql(&database, STATE), before.replacen('2', "4", 1));
        assert_eq!(server.sql(&database, "SELECT held FROM rethread.logs"), "4");
        // Who does not know that layout leaves it alone.
        let refused = block_on(store(&url).open(&"s".parse().unwrap())).unwrap_err();
        assert!(matches!(refused, Error::NewerFormat { known: 2, .. }), "{refused:?}");
    }

    #[test]
    fn a_migration_that_fails_leaves_the_database_as_it_was() {
        let Some(server) = server() else { return };
        let (database, url) = present(server);
        let before = server.sql(&database, STATE);
        let runtime = Runtime::new().unwrap();
        let failed = runtime.block_on(async {
            let connection = connect(Settings::parse(&url).unwrap()).await.unwrap();
            FAILING.look(connection).await
        });
        assert!(failed.is_err(), "{failed:?}");
        assert_eq!((server.sql(&database, STATE), server.sql(&database, HELD)), (before, "0".into()));
        let session = block_on(store(&url).open(&"s".parse().unwrap())).unwrap();
        assert_eq!(block_on(session.messages()).unwrap().records.len(), 3);
    }
}

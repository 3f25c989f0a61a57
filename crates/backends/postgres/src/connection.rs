//! One connection, and how it is made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use rethread_store::{Error, Result};
use tokio::runtime::Handle;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, RowStream, SimpleQueryMessage, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::failure::{at, backend};
use crate::settings::Settings;

/// The oldest server that can be told to end a connection and wait until it has.
const OLDEST: u32 = 140_000;

/// What every connection must be, whatever the server's defaults are; and what the server is.
const SET_UP: &str = "
SELECT current_setting('fsync'), current_setting('server_version_num'),
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('idle_in_transaction_session_timeout', '60s', false),
    set_config('standard_conforming_strings', 'on', false)
";

/// One connection; a clone is the same one.
#[derive(Clone, Debug)]
pub(crate) struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    name: String,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Connection {
    /// Returns what the server calls it, too.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// Runs statements that have no answer.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.0.client.batch_execute(sql).await
    }

    /// Asks with a statement that is prepared once.
    pub(crate) async fn ask(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepared(sql).await?;
        self.0.client.query(&statement, parameters).await
    }

    /// The same, for an answer that is read while it comes.
    pub(crate) async fn stream(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<RowStream, tokio_postgres::Error> {
        let statement = self.prepared(sql).await?;
        self.0.client.query_raw(&statement, parameters.iter().copied()).await
    }

    /// The same, for an answer of one row at most.
    pub(crate) async fn ask_one(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, tokio_postgres::Error> {
        Ok(self.ask(sql, parameters).await?.pop())
    }

    /// The same, for how many rows were changed.
    pub(crate) async fn change(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, tokio_postgres::Error> {
        let statement = self.prepared(sql).await?;
        self.0.client.execute(&statement, parameters).await
    }

    /// Begins what is done wholly or not at all. If it is not finished, the connection is not used again.
    pub(crate) async fn begin(&self) -> Result<(), tokio_postgres::Error> {
        self.run("BEGIN").await
    }

    pub(crate) async fn commit(&self) -> Result<(), tokio_postgres::Error> {
        self.run("COMMIT").await
    }

    async fn prepared(&self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        let known = self.0.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.0.client.prepare(sql).await?;
        self.0.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }
}

/// Makes connections, on a runtime of its own: calls come from threads without one.
#[derive(Debug)]
pub(crate) struct Maker {
    pub(crate) settings: Settings,
    pub(crate) runtime: Handle,
}

impl Manager for Maker {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection> {
        match self.runtime.spawn(connect(self.settings.clone())).await {
            Ok(made) => made,
            Err(ended) => Err(backend("connect to", ended)),
        }
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<Error> {
        match connection.0.client.is_closed() {
            true => Err(RecycleError::message("it was closed")),
            false => Ok(()),
        }
    }
}

/// A connection that nobody has set up yet, or lets run.
pub(crate) struct Dialled {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) connection:
        tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
}

/// Gets through to the server, which may be about to start.
pub(crate) async fn dial(settings: &Settings) -> Result<Dialled> {
    // Unlike any other's, so that the server can be told to end this very one.
    let name = format!("rethread {} {}", std::process::id(), uuid::Uuid::new_v4().simple());
    let (config, connector, begun) =
        (settings.config(&name)?, settings.encryption.connector()?, Instant::now());
    loop {
        match config.connect(connector.clone()).await {
            Ok((client, connection)) => return Ok(Dialled { name, client, connection }),
            Err(error) if will_pass(&error) && begun.elapsed() < settings.patience => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(at("connect to", &settings.to_string(), error)),
        }
    }
}

/// Makes a connection that runs by itself.
pub(crate) async fn connect(settings: Settings) -> Result<Connection> {
    let Dialled { name, client, connection } = dial(&settings).await?;
    // How it ends is told to whoever waits for an answer on it.
    tokio::spawn(async move { drop(connection.await) });
    check(&client, &settings.to_string()).await?;
    Ok(Connection(Arc::new(Inner { client, name, statements: Mutex::default() })))
}

/// Returns whether the server is only starting, or full.
fn will_pass(error: &tokio_postgres::Error) -> bool {
    let passing = [&SqlState::CANNOT_CONNECT_NOW, &SqlState::TOO_MANY_CONNECTIONS];
    error.code().is_some_and(|code| passing.contains(&code))
}

/// Sets a connection up, and refuses a server that could lose what it acknowledges.
async fn check(client: &Client, place: &str) -> Result<()> {
    let said =
        client.simple_query(SET_UP).await.map_err(|error| at("set up a connection to", place, error))?;
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let told = |column| row.and_then(|row| row.get(column)).unwrap_or_default();
    let refused = |rule| Error::BadName { what: "place for sessions", text: place.to_owned(), rule };
    match (told(0), told(1).parse::<u32>()) {
        (_, Ok(version)) if version < OLDEST => Err(refused("its server is older than PostgreSQL 14")),
        ("on", Ok(_)) => Ok(()),
        _ => Err(refused("its server runs with fsync off, and may lose what it has acknowledged")),
    }
}

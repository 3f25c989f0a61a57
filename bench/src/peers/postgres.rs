//! PostgreSQL by itself: a table of entries, and as many connections as somebody wants.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use crate::failure::Outcome;

/// A table of entries on a server, and the connections to it, all on the caller's thread.
pub(crate) struct Postgres {
    runtime: Runtime,
    clients: Vec<Arc<Client>>,
    table: String,
}

impl Postgres {
    /// Makes a table, and some connections.
    pub(crate) fn create(url: &str, table: &str, connections: usize) -> Outcome<Self> {
        let postgres = Self::open(url, table, connections)?;
        let sql = format!(
            "CREATE TABLE {table} (position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL)"
        );
        postgres.runtime.block_on(postgres.clients[0].batch_execute(&sql))?;
        Ok(postgres)
    }

    /// Connects to one that is there.
    pub(crate) fn open(url: &str, table: &str, connections: usize) -> Outcome<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let clients = runtime.block_on(async {
            let mut clients = Vec::new();
            for _ in 0..connections {
                let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
                tokio::spawn(async move { drop(connection.await) });
                clients.push(Arc::new(client));
            }
            Ok::<_, tokio_postgres::Error>(clients)
        })?;
        Ok(Self { runtime, clients, table: table.to_owned() })
    }

    /// Appends entries, each with a statement that commits it; some tasks at once, each of which waits for its own.
    pub(crate) fn append(&self, entries: &[Bytes], tasks: usize) -> Outcome<()> {
        let sql = format!("INSERT INTO {} (body) VALUES ($1)", self.table);
        self.runtime.block_on(async {
            let share = entries.len().div_ceil(tasks);
            let mut running = Vec::new();
            for (number, entries) in entries.chunks(share).enumerate() {
                let client = self.clients[number % self.clients.len()].clone();
                let (statement, entries) = (client.prepare(&sql).await?, entries.to_vec());
                running.push(tokio::spawn(async move {
                    for entry in entries {
                        client.execute(&statement, &[&&entry[..]]).await?;
                    }
                    Ok::<_, tokio_postgres::Error>(())
                }));
            }
            for task in running {
                task.await??;
            }
            Ok(())
        })
    }

    /// Adds entries in one transaction, for what is measured later.
    pub(crate) fn fill(&self, entries: &[Bytes]) -> Outcome<()> {
        let sql = format!("INSERT INTO {} (body) SELECT unnest($1::bytea[])", self.table);
        let bodies: Vec<&[u8]> = entries.iter().map(|entry| &entry[..]).collect();
        self.runtime.block_on(self.clients[0].execute(&sql, &[&bodies]))?;
        Ok(())
    }

    /// Reads every entry, oldest first.
    pub(crate) fn read(&self) -> Outcome<Vec<Bytes>> {
        let sql = format!("SELECT body FROM {} ORDER BY position", self.table);
        let rows = self.runtime.block_on(self.clients[0].query(&sql, &[]))?;
        Ok(rows.iter().map(|row| Bytes::copy_from_slice(row.get(0))).collect())
    }
}

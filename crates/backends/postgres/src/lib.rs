//! Sessions in PostgreSQL: a backend of [`rethread_store`] that any number of hosts may use at once.
//!
//! What is appended is one statement, durable when it is acknowledged: `synchronous_commit` is on for every connection
//! whatever the server's default, and a server that runs without `fsync` is refused. An answer that was lost on its way
//! does no harm: the connection it was lost on is ended at the server before anybody looks, and what is there then is
//! compared with what was sent.
//!
//! Times are the server's; no clock of a client decides anything.
//!
//! # Example
//!
//! ```no_run
//! use rethread_postgres::{PostgresBackend, Settings};
//! use rethread_store::{Entry, NewSession, Options, Store};
//!
//! let settings = Settings::parse("postgres://ada@db.example.org/sessions?sslmode=verify-full")?;
//! let store = Store::new(PostgresBackend::new(settings)?, Options::default());
//! let session = pollster::block_on(store.create(NewSession::default()))?;
//! session.append_and_wait(Entry::parse(r#"{"text":"hi"}"#)?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod blobs;
mod connection;
mod connections;
mod documents;
mod encryption;
mod failure;
mod gathered;
mod lent;
mod limbo;
mod listener;
mod listing;
mod logs;
mod notification;
mod notifier;
mod passfile;
mod postgres_backend;
mod schema;
mod settings;

pub use postgres_backend::PostgresBackend;
pub use settings::Settings;

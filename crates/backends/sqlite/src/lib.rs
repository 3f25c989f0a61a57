//! Sessions in one SQLite file: a backend of [`rethread_store`].
//!
//! What is appended is one transaction, synced before it is acknowledged (WAL, `synchronous=FULL`). Any number of
//! processes of one machine may use the file at once; on a network file system it is refused, because locks and shared
//! memory do not reach across machines there.
//!
//! # Example
//!
//! ```
//! use rethread_sqlite::SqliteBackend;
//! use rethread_store::{Entry, NewSession, Options, Store};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("sessions.db");
//! let store = Store::new(SqliteBackend::new(path), Options::default());
//! let session = pollster::block_on(store.create(NewSession::default()))?;
//! let ticket = pollster::block_on(session.append(Entry::parse(r#"{"text":"hi"}"#)?))?;
//! ticket.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blobs;
mod connections;
mod documents;
mod failure;
mod ground;
mod listing;
mod logs;
mod schema;
mod shared_file_system;
mod sqlite_backend;
mod wide;

pub use sqlite_backend::SqliteBackend;

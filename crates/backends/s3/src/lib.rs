//! Sessions in S3, and in what speaks its language: a backend of [`rethread_store`] that any number of hosts may use at
//! once.
//!
//! A log is one object that holds its newest lines and says where the older ones are. An append replaces it on the
//! condition that nobody else has (`If-Match`, or `If-None-Match: *` for the first), so that of several at once one wins,
//! and no clock decides anything. Older lines go to parts, which never change and are merged as they become many.
//! What is acknowledged is as durable as the server makes its objects. A server that ignores conditions is refused.
//!
//! # Example
//!
//! ```no_run
//! use rethread_s3::{S3Backend, Settings};
//! use rethread_store::{Entry, NewSession, Options, Store};
//!
//! let settings = Settings::parse("s3://team/sessions")?.with_variables(std::env::vars());
//! let store = Store::new(S3Backend::new(&settings)?, Options::default());
//! let session = pollster::block_on(store.create(NewSession::default()))?;
//! session.append_and_wait(Entry::parse(r#"{"text":"hi"}"#)?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod blobs;
mod bucket;
mod card;
mod clearing;
mod documents;
mod failure;
mod ground;
mod known;
mod layout;
mod limbo;
mod listing;
mod logs;
mod piece;
mod s3_backend;
mod settings;
mod tail;
mod wire;

pub use s3_backend::S3Backend;
pub use settings::Settings;

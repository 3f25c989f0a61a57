//! Sessions encrypted at rest, in any other backend.
//!
//! Every entry, note, document and content is sealed with AES-256-GCM before it reaches the backend within, and opened
//! when it comes back; what cannot be opened is an error, never a gap. A session has a key of its own, which is wrapped by
//! the master key; without that key it is gone, wherever copies of its log may be.
//!
//! What stays readable: ids of sessions and entries, how many records there are, how large, who follows whom, and when
//! they were written.
//!
//! ```
//! use rethread_encrypted::{EncryptedBackend, MasterKey};
//! use rethread_store::{Entry, FileBackend, NewSession, Options, Store};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! let key = MasterKey::generate()?;
//! let store = Store::new(EncryptedBackend::new(FileBackend::new(path), &key), Options::default());
//! # pollster::block_on(async {
//! let session = store.create(NewSession::default()).await?;
//! session.append(Entry::parse(r#"{"uuid":"u1","text":"between us"}"#)?).await?.await?;
//! # Ok::<(), rethread_store::Error>(())
//! # })?;
//! # store.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod content;
mod encrypted_backend;
mod keys;
mod master_key;
mod names;
mod record;
mod seal;

pub use encrypted_backend::EncryptedBackend;
pub use master_key::MasterKey;

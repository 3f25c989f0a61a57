//! Sessions of coding agents as append-only logs: resume, continue, fork, on any backend.
//!
//! A [`Store`] holds sessions in a [`Backend`](backend::Backend); a [`Session`] is one conversation; a [`Ticket`] says
//! when an entry is durable; a [`Recorder`] is what an agent loop holds. Nothing here prints, reads the environment or
//! needs an async runtime.
//!
//! ```
//! use rethread_store::{Entry, FileBackend, NewSession, Options, Resume, Store};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (sessions, project) = (folder.path().join("sessions"), folder.path().to_owned());
//! # pollster::block_on(async {
//! let store = Store::new(FileBackend::new(&sessions), Options::default());
//! let session = store.create(NewSession::at(&project).name("Fix the parser")).await?;
//!
//! let ticket = session.append(Entry::parse(r#"{"uuid":"m1","role":"user","content":"hello"}"#)?).await?;
//! ticket.await?; // durable from here on; drop the ticket to fire and forget
//!
//! let again = store.resume(Resume::latest(&project).at("m1".parse()?)).await?;
//! let fork = again.fork(Default::default()).await?; // refers to its parent, copies nothing
//! assert_eq!(fork.messages().await?.records.len(), 1);
//! store.close()
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

pub mod backend;
mod bundle;
mod catalog;
mod chain;
mod checkpoint_log;
pub mod conformance;
mod defect;
mod entry;
mod error;
mod file;
mod fold;
mod follow;
mod fork;
mod gc;
mod health;
mod id;
mod import;
mod known_folds;
mod lease;
mod listing;
mod memory;
mod metadata;
mod note;
mod off;
mod one_line;
mod project_memory;
mod recorder;
mod redaction;
mod references;
mod repair;
mod replica;
mod resume;
mod session;
mod side_by_side;
mod stamp;
mod store;
mod ticket;
mod trash;
mod url;
mod verify;
pub mod view;
mod writer;

pub use bundle::{Exported, Files, Imported};
pub use chain::{Gap, History, Record, Why};
pub use entry::{Entry, MAX_DEPTH};
pub use error::{Error, Result};
pub use file::{Disk, DiskFile, Extent, FileBackend, Open, RealDisk, Stat};
pub use follow::{Follow, Start};
pub use fork::{Fork, ForkKind};
pub use gc::{Cleaned, Cleaning};
pub use health::{Event, Health, Trouble};
pub use id::{BlobId, EntryId, SessionId};
pub use import::{FolderImport, FolderOutcome, FolderSession, Issue, Progress};
pub use lease::{Claim, Holder, Lease};
pub use listing::{Filter, Listing, Mark, Show};
pub use memory::MemoryBackend;
pub use metadata::Metadata;
pub use note::{Arrival, Note, Origin};
pub use off::OffBackend;
pub use project_memory::ProjectMemory;
pub use recorder::{
    Begin, CaptureError, CaptureFiles, Captured, Finish, Persisted, Recorder, Recording, Restored, Tool,
};
pub use repair::{Mode, Repair};
pub use replica::Replicated;
pub use resume::{Resume, Scope, Which};
pub use rethread_redact::{Finding, Redactor};
pub use session::{Archive, Branched, Page, Session};
pub use stamp::{Flaw, Kind, Line, Stamp, Unseal, Unsealed};
pub use store::{FORMAT, NewSession, Options, Store};
pub use ticket::{Ack, Acknowledged, Placed, Ticket};
pub use url::Schemes;
pub use verify::{Problem, Report};
pub use writer::Limits;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/your-own-backend.md")]
struct YourOwnBackend;

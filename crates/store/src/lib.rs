//! Sessions of coding agents as append-only logs.
#![warn(missing_docs)]

pub mod backend;
mod bundle;
mod chain;
pub mod conformance;
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
mod lease;
mod listing;
mod memory;
mod metadata;
mod note;
mod off;
mod project_memory;
mod recorder;
mod repair;
mod resume;
mod session;
mod stamp;
mod store;
mod ticket;
mod trash;
mod url;
mod verify;
pub mod view;
mod writer;

pub use bundle::{Exported, Imported};
pub use chain::{Gap, History, Record, Why};
pub use entry::{Entry, MAX_DEPTH};
pub use error::{Error, Result};
pub use file::{Disk, DiskFile, FileBackend, Open, RealDisk, Stat};
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
pub use recorder::{Begin, Finish, Persisted, Recorder, Recording, Restored};
pub use repair::{Mode, Repair};
pub use resume::{Resume, Scope, Which};
pub use session::{Archive, Branched, Page, Session};
pub use stamp::{Flaw, Kind, Line, Stamp};
pub use store::{FORMAT, NewSession, Options, Store};
pub use ticket::{Ack, Placed, Ticket};
pub use url::Schemes;
pub use verify::{Problem, Report};
pub use writer::Limits;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/your-own-backend.md")]
struct YourOwnBackend;

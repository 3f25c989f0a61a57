//! Sessions of coding agents as append-only logs.
#![warn(missing_docs)]

pub mod backend;
mod chain;
mod entry;
mod error;
mod file;
mod fold;
mod fork;
mod health;
mod id;
mod lease;
mod listing;
mod memory;
mod metadata;
mod note;
mod off;
mod session;
mod stamp;
mod store;
mod ticket;
mod trash;
pub mod view;
mod writer;

pub use chain::{Gap, History, Record, Why};
pub use entry::{Entry, MAX_DEPTH};
pub use error::{Error, Result};
pub use file::{Disk, DiskFile, FileBackend, Open, RealDisk, Stat};
pub use fork::{Fork, ForkKind};
pub use health::{Event, Health, Trouble};
pub use id::{BlobId, EntryId, SessionId};
pub use lease::Holder;
pub use listing::{Filter, Listing, Mark, Show};
pub use memory::MemoryBackend;
pub use metadata::Metadata;
pub use note::{Note, Origin};
pub use off::OffBackend;
pub use session::{Archive, Branched, Page, Session};
pub use stamp::{Flaw, Kind, Line, Stamp};
pub use store::{FORMAT, NewSession, Options, Resume, Scope, Store, Which};
pub use ticket::{Ack, Placed, Ticket};
pub use writer::Limits;

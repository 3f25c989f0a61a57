//! Sessions of coding agents as append-only logs.
#![warn(missing_docs)]

pub mod backend;
mod entry;
mod error;
mod file;
mod fold;
mod id;
mod lease;
mod memory;
mod metadata;
mod note;
mod off;
mod stamp;
pub mod view;

pub use entry::{Entry, MAX_DEPTH};
pub use error::{Error, Result};
pub use file::{Disk, DiskFile, FileBackend, Open, RealDisk, Stat};
pub use id::{BlobId, EntryId, SessionId};
pub use lease::Holder;
pub use memory::MemoryBackend;
pub use metadata::Metadata;
pub use note::{Note, Origin};
pub use off::OffBackend;
pub use stamp::{Flaw, Kind, Line, Stamp};

//! Claude Code's own transcripts: find them, read them, follow them, and tell the truth about them.
//!
//! Nothing here prints, reads the environment, or writes to Claude Code's folder unless a call says so by its name.
#![warn(missing_docs)]

mod chain;
mod entry;
mod envelope;
mod error;
mod fault;
mod folder_name;
mod key;
mod message;
mod node;
mod object;
mod parallel;
mod reader;
mod recover;
mod scan;
mod text;
mod transcript;
mod tree;

pub use chain::Chain;
pub use entry::{Entry, View};
pub use error::{Error, Result};
pub use fault::{Fault, FaultKind};
pub use folder_name::folder_name;
pub use message::{Block, Message, Role};
pub use node::Span;
pub use reader::Reader;
pub use transcript::Transcript;

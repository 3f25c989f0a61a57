//! Claude Code's own transcripts: find them, read them, follow them, and tell the truth about them.
//!
//! Nothing here prints, reads the environment, or writes to Claude Code's folder unless a call says so by its name.
#![warn(missing_docs)]

mod blocks;
mod catalog;
mod chain;
mod chain_index;
mod change;
mod checkpoint;
mod claude_folder;
mod copy;
mod count;
mod entry;
mod envelope;
mod error;
mod facts;
mod fault;
mod folder_name;
mod history;
mod key;
mod lines;
mod listing;
mod live;
mod message;
mod node;
mod object;
mod parallel;
mod project;
mod reader;
mod recent;
mod recover;
mod rewrite;
mod scan;
mod session;
mod sidechain;
mod skim;
mod subagent;
mod text;
mod text_flaw;
mod transcript;
mod trash;
mod tree;
mod walk;
mod watch;

pub use chain::Chain;
pub use change::Shelf;
pub use checkpoint::{FileDifference, KeptFile, NativeCheckpoint};
pub use claude_folder::{ClaudeFolder, Links, ListOptions};
pub use copy::{NativeFork, Written};
pub use count::Count;
pub use entry::{Entry, Typed, View};
pub use error::{Error, Result};
pub use fault::{Fault, FaultKind};
pub use folder_name::folder_name;
pub use history::History;
pub use listing::Listing;
pub use live::Live;
pub use message::{Block, Message, Role};
pub use node::Span;
pub use reader::Reader;
pub use session::{Directory, Health, Session};
pub use sidechain::Sidechain;
pub use subagent::Subagent;
pub use transcript::Transcript;
pub use trash::Trashed;
pub use watch::{Change, Event, From, Means, Watch};

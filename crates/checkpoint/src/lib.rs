//! What files were before an agent's turn, and how to get back there: capture, plan, rewind, undo.
//!
//! A [`Checkpointer`] records captures in a session's log and contents as blobs of its store, so it works on every
//! backend. A [`Plan`] says what a rewind would do, as data; applying one is all or nothing, survives a crash at any
//! call, and gives a receipt by which it can be undone. Nothing here needs git, runs it or touches what is git's.
#![warn(missing_docs)]

mod ancestry;
mod cache;
mod capture;
mod checkpointer;
mod contents;
mod defect;
mod error;
mod expand;
mod fold;
mod folder_names;
mod folder_queue;
mod gathering;
mod hands;
mod ignored;
mod kept;
mod known;
mod leftover;
mod lines;
mod log;
mod look;
mod mark;
mod moved;
mod name;
mod pack;
mod path;
mod plan;
mod planner;
mod point;
mod record;
mod recorder;
mod result;
mod retention;
mod rewind;
mod root;
mod settings;
mod settle;
mod span;
mod stand;
mod state;
mod tracker;
mod tree;
mod verify;
mod walk;
mod work;

pub use capture::Moment;
pub use checkpointer::Checkpointer;
pub use error::{Error, Result};
pub use hands::{Hands, RealHands};
pub use kept::{Read, read_contents};
pub use lines::unified_diff;
pub use moved::{note_folder, noted_folders};
pub use path::TreePath;
pub use plan::{Action, Choices, Conflict, Plan, Reason, Skipped, Step};
pub use point::Point;
pub use record::{Change, Checkpoint, LeftOut, Outcome, Source, What};
pub use result::Rewound;
pub use retention::{Keep, Retention, Retired, retire};
pub use rewind::Recovered;
pub use settings::{Settings, Switch};
pub use settle::{Interrupted, interrupted};
pub use span::{Changed, Changes, Span};
pub use state::{File, Place, Present, State, Target};
pub use tree::Window;
pub use verify::{Looked, Lost, verify};
pub use work::Tell;

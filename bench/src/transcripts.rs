//! Claude Code's own transcripts: listed, read and followed, against the official SDKs and bare system calls.

mod follow;
mod history;
mod listing;
pub(crate) mod made;
mod official;
mod task;

use crate::area::Trial;

pub(crate) use official::{Ask, typescript};
pub(crate) use task::{Task, run};

/// Everything that is tried of the transcripts.
pub(crate) const TRIALS: &[Trial] = &[
    Trial { name: "list", run: listing::run },
    Trial { name: "history", run: history::run },
    Trial { name: "follow", run: follow::run },
];

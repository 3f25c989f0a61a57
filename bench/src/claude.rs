//! Driving the Claude Code CLI: what it says, read and passed on, against the official SDK and a bare pipe.

mod agent;
mod capture;
mod memory;
mod parsing;
mod talking;
mod task;

use crate::area::Trial;

pub(crate) use agent::serve_if_asked;
pub(crate) use task::{Task, run};

/// Everything that is tried of the driver.
pub(crate) const TRIALS: &[Trial] = &[
    Trial { name: "parse", run: parsing::run },
    Trial { name: "talk", run: talking::run },
    Trial { name: "memory", run: memory::run },
];

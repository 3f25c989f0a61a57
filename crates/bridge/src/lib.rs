//! Between the two homes of a session: Claude Code's folder and a store.
//!
//! [`bring_in`] copies one of Claude Code's own sessions into a store, again and again: only what is new is added.
//! A [`Shadow`] does the same while the session grows, and reads no more than what it grew by. [`write_out`] makes a
//! stored session one of Claude Code's own, or brings the one that is there up to date.
#![warn(missing_docs)]

mod branches;
mod error;
mod incoming;
mod outgoing;
mod shadow;
mod steps;

pub use error::{Error, Result};
pub use incoming::{Brought, bring_in};
pub use outgoing::{Outcome, export, write_out};
pub use shadow::Shadow;

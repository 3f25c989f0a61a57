//! One binary, so that the real CLI plays each scenario once.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod archived;
mod belongings;
mod changes;
mod damage;
mod discovery;
mod history;
mod official;
mod projection;
mod replay;
mod resume;
mod swapped;
mod texts;
mod watch;

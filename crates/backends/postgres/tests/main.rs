//! The backend against its contract, on a real server, and against what may go wrong between the two.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contract;
mod crashes;
mod database;
mod encryption;
mod hints;
mod kit;
mod lost_answers;
mod overheard;
mod proxy;

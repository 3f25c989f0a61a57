//! The backend against its contract, on a real server, and against what may go wrong between the two.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod blobs;
mod contract;
mod deaths;
mod kit;
mod leases;
mod lost_answers;
mod merging;
mod requests;
mod server;

//! Checkpoints, seen from outside.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod checklist;
mod crash;
mod defects;
#[path = "../../store/tests/fire/effort.rs"]
#[expect(dead_code, reason = "shared with other test binaries")]
mod effort;
mod fire;
mod kit;
mod lineage;
mod mortal;
#[path = "../../cli/tests/fire/mounted.rs"]
#[expect(dead_code, reason = "shared with other test binaries")]
mod mounted;
mod promises;
mod recorder;
mod spans;
mod ticks;
mod trees;

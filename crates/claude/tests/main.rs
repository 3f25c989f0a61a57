//! The crate against the real CLI, and against agents that misbehave.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod by_hand;
mod choices;
mod controls;
mod conversation;
mod effects;
mod elicitation;
mod examples;
mod files;
mod frames;
mod hooks;
mod in_memory;
mod kit;
mod launching;
mod official;
mod older_faults;
mod options;
mod permissions;
mod requests;
mod servers;
mod servers_afar;
#[cfg(feature = "sessions")]
mod sessions_door;
mod sessions_on_disk;
mod steering;
mod streams;
mod subagents;
mod surroundings;
mod tools;

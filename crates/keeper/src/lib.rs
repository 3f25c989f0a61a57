//! The keeper: one daemon for all sessions. It shows every session it can find, keeps clients up to date, and drives
//! the user's own Claude Code CLI when it is asked to.
//!
//! An approval is code execution, so security comes first: [`Settings`] says where a keeper listens, and there is no
//! switch that turns authentication off. Nothing here prints, reads the environment, or touches credentials.
#![warn(missing_docs)]

/// The target of spans that say how long things took: requests, turns, captures. Whoever wants them subscribes to it.
pub const TRACES: &str = "rethread_keeper_traces";

/// The version of the API that a keeper speaks, as in `/api/v1`.
pub const API: u32 = 1;

mod attention;
mod audit;
mod capture;
mod card;
mod catalogue;
mod claude_files;
mod client;
mod connections;
mod counting;
mod credentials;
mod defect;
mod demonstration;
mod door;
mod drive;
mod driving;
mod error;
mod excerpt;
mod extract;
mod failures;
mod folders;
mod follow;
mod frame;
mod gate;
mod hidden;
mod hosts;
mod hub;
mod item;
mod keeper;
mod merge;
mod metrics;
mod mirror;
mod new_ids;
mod open_files;
mod page;
mod peer;
mod pending;
mod position;
mod private_file;
mod problem;
mod prompts;
mod recent;
mod roots;
mod routes;
mod run;
mod scope;
mod search;
mod server;
mod settings;
mod shared;
mod sketch;
mod stream;
mod tls;
mod tokens;
mod topic;
mod ui;
mod wire;

pub use attention::{Attention, AttentionState, Shown};
pub use audit::AuditEntry;
pub use card::{HealthStatus, Home, SessionCard, SessionHealth, SessionState};
pub use client::Client;
pub use demonstration::Demonstration;
pub use error::{Error, Result};
pub use hidden::is_hidden;
pub use item::MessageItem;
pub use keeper::{COMPANION, is_companion};
pub use open_files::allow_many_open_files;
pub use problem::Problem;
pub use routes::{openapi, route_table};
pub use server::Running;
pub use settings::{Agent, Bypass, PORT, Settings};
pub use tls::Tls;
pub use tokens::TokenGrant;
pub use ui::{KeeperUrl, RunningUi, UI_PORT, UiSettings};

// Here, since its samples use the store and the driver, and nobody else has both.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

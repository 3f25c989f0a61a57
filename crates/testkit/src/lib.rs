//! What tests run against: the real Claude Code CLI in a home of its own, a Messages API that answers as its prompts
//! say, a real PostgreSQL server and a real S3 server.
//!
//! Nothing here touches a person's own configuration: the CLI gets an empty environment, a temporary home and an
//! address on the loopback.
#![warn(missing_docs)]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot begin has failed")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod agent;
mod api;
mod claude;
mod conversation;
mod fixture;
mod garage;
mod home;
mod http;
mod long_names;
mod memory_folder;
mod postgres;
mod program;
mod s3;
mod s3_proxy;
mod scenario;
mod script;
mod stream;
mod two_at_a_time;

pub use agent::{Behaviour, ScriptedAgent};
pub use api::{Request, ScriptedApi};
pub use claude::{Claude, Ran};
pub use conversation::Conversation;
pub use fixture::{Fixture, PROBE};
pub use garage::Garage;
pub use home::Home;
pub use memory_folder::memory_folder;
pub use postgres::Postgres;
pub use program::{PINNED, Program, PythonSdk, Sdk, package};
pub use s3::{Access, S3};
pub use s3_proxy::{Mishap, S3Proxy};
pub use scenario::{SCENARIOS, Scenario};
pub use script::{HALF_A_CHARACTER, Prompt, Reply};
pub use two_at_a_time::two_at_a_time;

/// Says in one line that a test cannot be made here; in CI that is a failure.
pub fn cannot(what: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{what}");
    eprintln!("skipped: {what}");
}

/// Says in one line that a version of Claude Code lacks what a test is about; in CI the pinned one must not.
pub fn not_in_this_version(what: &str) {
    match std::env::var("CLAUDE_VERSION") {
        Ok(version) if version != PINNED => eprintln!("skipped: {what}"),
        _ => cannot(what),
    }
}

//! Agents that misbehave and hosts that are killed. This program is the test, the host, the guard and the agent.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "processes/host.rs"]
mod host;
#[path = "processes/killed_host.rs"]
mod killed_host;
#[path = "processes/misbehaviour.rs"]
mod misbehaviour;
#[path = "processes/remains.rs"]
mod remains;
#[path = "processes/seed.rs"]
#[rustfmt::skip] // word for word
mod seed;

// The name that the guide's programs know it by.
extern crate rethread_claude as rusty_claw;

use std::io::Write as _;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use rethread_testkit::ScriptedAgent;

fn main() -> ExitCode {
    let is_scripted = std::env::args().nth(1).as_deref() == Some(host::GUARDED_BY_SCRIPT);
    if !is_scripted {
        rethread_claude::guard::init();
    }
    // A host passes on to its agent what makes it one, and is none itself.
    if host::serve_if_asked() || seed::serve_if_asked() || ScriptedAgent::serve_if_asked() {
        return ExitCode::SUCCESS;
    }
    let mut trials: Vec<Trial> = misbehaviour::trials();
    trials.extend(killed_host::trials());
    trials.extend(seed::trials());
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    let left = remains::of_this_process();
    if !left.is_empty() {
        drop(writeln!(std::io::stderr(), "children that nobody waited for: {left:?}"));
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

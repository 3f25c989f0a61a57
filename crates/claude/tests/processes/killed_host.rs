//! Hosts that are killed: nothing that they started may live on.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use rethread_testkit::{Behaviour, Home, Prompt, ScriptedAgent};
use serde_json::json;

use crate::host::{self, GUARDED_BY_ITSELF, GUARDED_BY_SCRIPT};

/// How often a host is killed.
const ROUNDS: usize = 100;
/// How often one with the real CLI, which takes longer to begin.
const REAL_ROUNDS: usize = 12;
/// Within what time everything is gone, on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(300);

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for guarded in [GUARDED_BY_ITSELF, GUARDED_BY_SCRIPT] {
        trials.push(Trial::test(format!("killed_host::nothing_survives_a_{guarded}"), move || {
            scripted(guarded)
        }));
        trials.push(Trial::test(format!("killed_host::no_tool_survives_a_{guarded}"), move || real(guarded)));
    }
    trials
}

fn scripted(guarded: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    for round in 0..ROUNDS {
        let agent = ScriptedAgent::new(Behaviour::Prolific, folder.path().join(round.to_string()));
        let mut host =
            host::start(guarded, &std::env::current_exe()?, "").envs(agent.environment()).spawn()?;
        host::wait_until_ready(&mut host);
        let before = agent.survivors();
        if before.len() != 4 {
            return Err(format!("the agent and its three children should live: {before:?}").into());
        }
        host.kill()?;
        host.wait()?;
        gone(|| agent.survivors())?;
    }
    Ok(())
}

fn real(guarded: &str) -> Result<(), Failed> {
    let Some(home) = Home::new() else {
        rethread_testkit::cannot("Claude Code cannot be installed");
        return Ok(());
    };
    for round in 0..REAL_ROUNDS {
        let family = home.path().join(format!("family-{round}"));
        let sleeps = |how: &str| format!("{how} sh -c 'echo $$ >> {}; exec sleep 600'", family.display());
        let command = format!("{} & {} & {}", sleeps(""), sleeps("setsid -f"), sleeps("setsid"));
        let input = json!({ "command": command, "description": "d" });
        let prompt = Prompt::new("Sleep").calls("Bash", input).to_string();
        let mut host = host::start(guarded, &home.program().path, &prompt);
        let mut host = host.env_clear().envs(home.environment()).current_dir(home.project()).spawn()?;
        host::wait_until_ready(&mut host);
        let tools = || survivors(&family);
        within(SOON, || tools().len() == 3)
            .map_err(|()| format!("the tools did not begin: {:?}", tools()))?;
        host.kill()?;
        host.wait()?;
        gone(tools)?;
    }
    Ok(())
}

fn survivors(family: &Path) -> Vec<u32> {
    ScriptedAgent::new(Behaviour::Polite, family).survivors()
}

fn gone(survivors: impl Fn() -> Vec<u32>) -> Result<(), Failed> {
    within(SOON, || survivors().is_empty()).map_err(|()| format!("still alive: {:?}", survivors()).into())
}

fn within(limit: Duration, holds: impl Fn() -> bool) -> Result<(), ()> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > limit {
            return Err(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

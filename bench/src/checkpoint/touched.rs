//! Capturing the one file that a tool is about to change.

use std::process::{Command, Stdio};

use rethread_checkpoint::Moment;

use super::forest::Forest;
use super::shadow_git::ShadowGit;
use super::{open, program};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::stopwatch::seconds;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (count, bar) in [(bench.scale.small_tree, 15.0), (bench.scale.large_tree, 100.0)] {
        let forest = Forest::plant(&bench.fresh()?, count)?;
        let (plain, tuned) = (
            ShadowGit::plain(&bench.fresh()?, &forest.root)?,
            ShadowGit::tuned(&bench.fresh()?, &forest.root)?,
        );
        plain.capture()?;
        tuned.capture()?;
        let store = bench.fresh()?;
        let checkpoints = open(&store, &forest.root)?;
        let path = forest.some(3)[1].clone();
        let touched = std::slice::from_ref(&path);
        let git = |git: &ShadowGit| {
            forest.edit(touched)?;
            Ok(seconds(|| git.capture())?.0 * 1e3)
        };
        let capture = || {
            forest.edit(touched)?;
            Ok(seconds(|| Ok(pollster::block_on(checkpoints.before(Moment::default(), touched))?))?.0 * 1e3)
        };
        let what = format!("capture of 1 touched file of {count}, durable, library call");
        let contest = Contest::new(what, Unit::Milliseconds, |_| capture());
        let contest =
            contest.peer("git add -A && write-tree, shadow", Bar::AtMost(1.0 / bar), |_| git(&plain));
        let contest = contest.peer("the same, tuned", Bar::Shown, |_| git(&tuned));
        rows.push(contest.run(bench)?);
        if count == bench.scale.large_tree {
            let program = program()?;
            let call = || {
                forest.edit(touched)?;
                let mut command = Command::new(&program);
                command.args(["checkpoint", "s"]).arg(&path).env("RETHREAD_HOME", &store);
                command.current_dir(&forest.root).stdout(Stdio::null());
                Ok(seconds(|| Ok(command.status()?.success().then_some(()).ok_or("rethread failed")?))?.0
                    * 1e3)
            };
            let what = format!("capture of 1 touched file of {count}, durable, as a command");
            let contest = Contest::new(what, Unit::Milliseconds, |_| call());
            let contest =
                contest.peer("git add -A && write-tree, shadow", Bar::AtMost(1.0 / 20.0), |_| git(&plain));
            rows.push(contest.run(bench)?);
        }
    }
    Ok(rows)
}

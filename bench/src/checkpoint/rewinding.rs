//! Taking files back.

use rethread_checkpoint::{Choices, Moment, Point};

use super::forest::Forest;
use super::open;
use super::shadow_git::ShadowGit;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::stopwatch::seconds;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let count = bench.scale.large_tree;
    let forest = Forest::plant(&bench.fresh()?, count)?;
    let small = Forest::plant(&bench.fresh()?, bench.scale.small_tree)?;
    let git = ShadowGit::tuned(&bench.fresh()?, &forest.root)?;
    git.commit()?;
    let (store, other) = (bench.fresh()?, bench.fresh()?);
    let (checkpoints, few) = (open(&store, &forest.root)?, open(&other, &small.root)?);
    let rewind = |checkpoints: &rethread_checkpoint::Checkpointer, forest: &Forest, number: usize| {
        let paths = forest.some(number);
        let before = pollster::block_on(checkpoints.before(Moment::default(), &paths))?;
        forest.edit(&paths)?;
        pollster::block_on(checkpoints.after(Moment::default(), &paths))?;
        let rewound = seconds(|| {
            let plan =
                pollster::block_on(checkpoints.plan(&Point::At(before.id.clone()), &Choices::default()))?;
            Ok(pollster::block_on(checkpoints.apply(&plan))?)
        })?;
        match rewound.1.files_changed.len() == number {
            true => Ok(rewound.0 * 1e3),
            false => Err("a rewind did something else".into()),
        }
    };
    let reset = |number: usize| {
        forest.edit(&forest.some(number))?;
        Ok(seconds(|| git.reset())?.0 * 1e3)
    };
    let mut rows = Vec::new();
    for (number, bar) in [(1, 50.0), (100.min(bench.scale.small_tree / 2), 3.0)] {
        let what =
            format!("rewind of {number} of {count} files, journalled, durable and verified, library call");
        let row = Contest::new(what, Unit::Milliseconds, |_| rewind(&checkpoints, &forest, number))
            .peer("git reset --hard", Bar::AtMost(1.0 / bar), |_| reset(number))
            .peer(format!("rethread, of {} files", bench.scale.small_tree), Bar::AtMost(2.0), |_| {
                rewind(&few, &small, number)
            })
            .run(bench)?;
        rows.push(row);
    }
    Ok(rows)
}

//! What many checkpoints weigh, beside the contents that they keep.

use std::path::Path;

use rethread_checkpoint::{Moment, Window};

use super::forest::Forest;
use super::open;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::ui::Progress;

pub(super) fn run(bench: &Bench) -> Outcome<Row> {
    let (files, number) = (bench.scale.small_tree, bench.scale.checkpoints);
    let what =
        format!("{number} checkpoints that each change 1 of {files} files: bytes of each outside blobs");
    let progress = Progress::begin(what.clone());
    let forest = Forest::plant(&bench.fresh()?, files)?;
    let store = bench.fresh()?;
    let checkpoints = open(&store, &forest.root)?;
    pollster::block_on(checkpoints.tree(Moment::default(), Window::Idle))?;
    let (before, folders) = (outside_blobs(&store)?, folders_outside_blobs(&store)?);
    let paths = forest.some(number.min(files));
    for round in 0..number {
        forest.edit(&paths[round % paths.len()..][..1])?;
        pollster::block_on(checkpoints.tree(Moment::default().tool("t"), Window::Tools))?;
    }
    let each = (outside_blobs(&store)? - before) as f64 / number as f64 / 1024.0;
    if folders_outside_blobs(&store)? != folders {
        return Err("checkpoints made folders".into());
    }
    progress.end();
    let limit = [1.0].into_iter().collect();
    Ok(Row::new(what, Unit::Kibibytes, [each].into_iter().collect()).against(
        "the limit",
        &limit,
        Bar::AtMost(1.0),
    ))
}

fn outside_blobs(store: &Path) -> Outcome<u64> {
    sum(store, &|path| Ok(std::fs::symlink_metadata(path)?.len() * u64::from(!path.is_dir())))
}

fn folders_outside_blobs(store: &Path) -> Outcome<u64> {
    sum(store, &|path| Ok(u64::from(path.is_dir())))
}

fn sum(folder: &Path, of: &dyn Fn(&Path) -> Outcome<u64>) -> Outcome<u64> {
    let mut all = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.ends_with("blobs") || path.ends_with("cache") {
            continue;
        }
        all += of(&path)?;
        if path.is_dir() {
            all += sum(&path, of)?;
        }
    }
    Ok(all)
}

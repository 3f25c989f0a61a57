//! A file that is larger than memory should be, captured and restored byte for byte.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use rethread_checkpoint::{Choices, Moment, Point};

use super::open;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::ui::Progress;

pub(super) fn run(bench: &Bench) -> Outcome<Row> {
    let size = bench.scale.huge_file;
    let what =
        format!("a file of {} MiB captured and restored: memory beyond that of a small one", size >> 20);
    let progress = Progress::begin(what.clone());
    let memory = |size: u64| -> Outcome<f64> {
        let errand = Errand::Huge { folder: bench.fresh()?, size };
        Ok(errand.send(size)?.peak_mebibytes)
    };
    let more = memory(size)? - memory(1 << 20)?;
    progress.end();
    let limit = [64.0].into_iter().collect();
    let ours = [more.max(0.0)].into_iter().collect();
    Ok(Row::new(what, Unit::Mebibytes, ours).against("the limit", &limit, Bar::AtMost(1.0)))
}

/// Captures a file, spoils it, rewinds, and reads it again.
pub(crate) fn work(folder: &Path, size: u64) -> Outcome<Answer> {
    let (root, path) = (folder.join("tree"), folder.join("tree/huge"));
    std::fs::create_dir(&root)?;
    write(&path, size)?;
    let checkpoints = open(&folder.join("store"), &root)?;
    let before = pollster::block_on(checkpoints.before(Moment::default(), &["huge"]))?;
    std::fs::write(&path, "spoilt")?;
    let plan = pollster::block_on(checkpoints.plan(&Point::At(before.id), &Choices::default()))?;
    pollster::block_on(checkpoints.apply(&plan))?;
    let found = read(&path)?;
    std::fs::remove_dir_all(folder.join("store/blobs"))?;
    Ok(Answer { found, ..Answer::default() })
}

fn piece(number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    std::iter::repeat_with(|| random.u8(..)).take(4096).collect::<Vec<_>>().repeat(256)
}

fn write(path: &Path, size: u64) -> Outcome<()> {
    let mut file = File::create(path)?;
    (0..size >> 20).try_for_each(|number| file.write_all(&piece(number)))?;
    Ok(())
}

/// Returns how many bytes are as they were written.
fn read(path: &Path) -> Outcome<u64> {
    let (mut file, mut buffer, mut right) = (File::open(path)?, vec![0; 1 << 20], 0);
    for number in 0.. {
        match file.read_exact(&mut buffer) {
            Ok(()) if buffer == piece(number) => right += buffer.len() as u64,
            Ok(()) => return Err("the file came back differently".into()),
            Err(_) => break,
        }
    }
    Ok(right)
}

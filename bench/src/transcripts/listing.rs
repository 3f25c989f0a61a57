//! Finding sessions among many.

use std::fs::File;
use std::path::Path;

use super::official::{Ask, python, typescript};
use super::{Task, made};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::Errand;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::ui::Progress;

/// Rounds: the SDKs take many seconds each.
const ROUNDS: usize = 3;
/// How many sessions somebody sees first.
const FIRST: usize = 20;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let (config, count) = (bench.fresh()?, bench.scale.sessions);
    let progress = Progress::begin(format!("making {count} sessions of Claude Code's"));
    made::many(&config, count)?;
    bench.ground.settle()?;
    progress.end();
    let (config, index) = (&*config, bench.fresh()?.join("index"));
    let expected = count as u64;
    let ours = |index: Option<&Path>, limit: usize| {
        let task = Task::List { index: index.map(Into::into), limit };
        let found = if limit > 0 { expected.min(limit as u64) } else { expected };
        Errand::Transcripts { task, place: config.to_owned() }.send(found)
    };
    let theirs = |answer: Outcome<crate::errand::Answer>| -> Outcome<f64> {
        let answer = answer?;
        match answer.found == expected {
            true => Ok(answer.seconds * 1e3),
            false => Err(format!("an SDK found {} sessions of {expected}", answer.found).into()),
        }
    };
    let cached =
        Contest::new(format!("list of {count} sessions, no index, files cached"), Unit::Milliseconds, |_| {
            Ok(ours(None, 0)?.seconds * 1e3)
        })
        .peer("Python SDK: list_sessions", Bar::AtMost(0.05), |_| theirs(python(config, Ask::List(None))))
        .peer("TypeScript SDK: listSessions", Bar::AtMost(0.02), |_| {
            theirs(typescript(config, Ask::List(None)))
        })
        .run_rounds(ROUNDS, bench)?;
    let cold = Contest::new(
        format!("list of {count} sessions, no index, files not cached"),
        Unit::Milliseconds,
        |_| {
            forget(config)?;
            Ok(ours(None, 0)?.seconds * 1e3)
        },
    )
    .peer("Python SDK: list_sessions", Bar::AtMost(0.083), |_| {
        forget(config)?;
        theirs(python(config, Ask::List(None)))
    })
    .peer("TypeScript SDK: listSessions", Bar::AtMost(0.05), |_| {
        forget(config)?;
        theirs(typescript(config, Ask::List(None)))
    })
    .run_rounds(ROUNDS, bench)?;
    ours(Some(&index), 0)?;
    let walk = |_: &Path| {
        let errand = Errand::Transcripts { task: Task::Walk, place: config.to_owned() };
        Ok(errand.send(expected)?.seconds * 1e3)
    };
    let warm = Contest::new(format!("list of {count} sessions, index warm"), Unit::Milliseconds, |_| {
        Ok(ours(Some(&index), 0)?.seconds * 1e3)
    })
    .peer("bare folder walk with stat", Bar::AtMost(2.5), walk)
    .run(bench)?;
    let first = Contest::new(format!("first {FIRST} of {count} sessions"), Unit::Milliseconds, |_| {
        Ok(ours(Some(&index), FIRST)?.seconds * 1e3)
    })
    .peer("TypeScript SDK with a limit", Bar::AtMost(0.2), |_| {
        Ok(typescript(config, Ask::List(Some(FIRST)))?.seconds * 1e3)
    })
    .run(bench)?;
    let memory = Contest::new("peak memory of the list without an index", Unit::Mebibytes, |_| {
        Ok(ours(None, 0)?.peak_mebibytes)
    })
    .peer("100 MB", Bar::AtMost(1.0), |_| Ok(100e6 / 1024.0 / 1024.0))
    .run_rounds(ROUNDS, bench)?;
    Ok(vec![cached, cold, warm, first, memory])
}

/// Has the system forget what is in the files.
fn forget(config: &Path) -> Outcome<()> {
    for folder in std::fs::read_dir(config.join("projects"))? {
        for file in std::fs::read_dir(folder?.path())? {
            let file = File::open(file?.path())?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}

//! What a long conversation takes of the host's memory.

use super::agent::Speech;
use super::{Task, capture};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::Errand;
use crate::failure::Outcome;
use crate::row::{Row, Unit};

/// How much more a hundred times as many frames may take.
const ALLOWED_MEBIBYTES: f64 = 16.0;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let capture = bench.fresh()?.join("capture");
    capture::record(&capture)?;
    let peak = |bytes: u64| {
        let speech = Speech { capture: capture.clone(), bytes };
        let frames = speech.frames()?;
        Ok(Errand::Claude(Task::Talk(speech)).send(frames)?.peak_mebibytes)
    };
    let bytes = bench.scale.spoken;
    let what = format!("peak memory while {} MB of frames pass", bytes / 1_000_000);
    let row = Contest::new(what, Unit::Mebibytes, |_| peak(bytes))
        .peer("a hundredth of that, and 16 MiB", Bar::AtMost(1.0), |_| {
            Ok(peak(bytes / 100)? + ALLOWED_MEBIBYTES)
        })
        .run_rounds(bench.scale.few_rounds, bench)?;
    Ok(vec![row])
}

//! A whole conversation: what it costs the host.

use super::agent::Speech;
use super::{Task, capture};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::Errand;
use crate::failure::Outcome;
use crate::row::{Row, Unit};

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let capture = bench.fresh()?.join("capture");
    let recorded = capture::record(&capture)?;
    let size = std::fs::metadata(&capture)?.len();
    let speech = Speech { capture, bytes: size * (bench.scale.frames / recorded).max(1) as u64 };
    let frames = speech.frames()?;
    let cost = |task: Task| Ok(Errand::Claude(task).send(frames)?.seconds * 1e6 / frames as f64);
    let row = Contest::new("host's processor time per frame of a conversation", Unit::Microseconds, |_| {
        cost(Task::Talk(speech.clone()))
    })
    .peer("bare pipe: lines and serde_json::Value", Bar::AtMost(1.5), |_| cost(Task::Listen(speech.clone())))
    .run(bench)?;
    Ok(vec![row])
}

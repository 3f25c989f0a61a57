//! What a keeper costs that knows many sessions, and of which nobody wants anything.

use std::time::{Duration, Instant};

use super::served::Served;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::transcripts::made;
use crate::ui::Progress;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let (home, config, count) = (bench.fresh()?, bench.fresh()?, bench.scale.sessions);
    let watched = Duration::from_secs(if bench.scale.judged { 60 } else { 1 });
    let progress = Progress::begin(format!("a keeper with {count} sessions, left alone for {watched:?}"));
    made::many(&config, count)?;
    let mut served = Served::start(&home, &config, None)?;
    served.get("/sessions?limit=50")?;
    // First it counts the messages of all these sessions, which is work and has an end.
    std::thread::sleep(watched);
    let (before, begun) = (ticks(served.pid())?, Instant::now());
    std::thread::sleep(watched);
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let share = (ticks(served.pid())? - before) as f64 / per_second / begun.elapsed().as_secs_f64() * 100.0;
    let memory = resident(served.pid())?;
    progress.end();
    let one = |figure: f64| -> Samples { [figure].into_iter().collect() };
    let mebibytes = 100e6 / 1024.0 / 1024.0;
    Ok(vec![
        Row::new(format!("idle keeper, {count} sessions: memory"), Unit::Mebibytes, one(memory)).against(
            "100 MB",
            &one(mebibytes),
            Bar::AtMost(1.0),
        ),
        Row::new(format!("idle keeper, {count} sessions: share of a core"), Unit::Percent, one(share))
            .against("0.1 %", &one(0.1), Bar::AtMost(1.0)),
    ])
}

/// Returns how much time a process had, in the system's ticks.
fn ticks(pid: u32) -> Outcome<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Ok(number(11) + number(12))
}

fn resident(pid: u32) -> Outcome<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the kernel tells no memory")?;
    let kibibytes = line.split_whitespace().next().ok_or("the kernel tells no memory")?;
    Ok(kibibytes.parse::<f64>()? / 1024.0)
}

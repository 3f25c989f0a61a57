//! Eight processes on one session, of which some are killed and some are stopped for a while.

use std::time::Duration;

use rustix::process::Signal;

use super::appender::{Appender, Pace};
use super::effort::{Effort, torture_seconds};
use super::ledger::{Ledger, Run};
use crate::kit::Home;

const PROCESSES: usize = 8;
const ENTRIES: usize = 2_000;
const ENTRIES_IN_TORTURE: std::ops::RangeInclusive<usize> = 10_000..=100_000;
/// As many are acknowledged in a second, at the least.
const A_SECOND: usize = 100;
/// Of so many entries one is where its process is killed, and one where it is stopped.
const ONE_IN: usize = 50;

#[test]
fn a_crowd_of_which_some_are_killed_and_some_are_stopped_loses_nothing_and_mixes_nothing_up() {
    let in_time = |seconds: u64| (seconds as usize).saturating_mul(A_SECOND);
    let (fewest, most) = ENTRIES_IN_TORTURE.into_inner();
    let entries = torture_seconds().map_or(ENTRIES, |seconds| in_time(seconds).clamp(fewest, most));
    for round in Effort::new("8 processes on one session, thousands of entries each", 1) {
        let home = Home::new();
        home.answer(&["new", "--id", "s"]);
        let mut ledger = Ledger::new("s");
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..PROCESSES)
                .map(|writer| {
                    let (home, mut rng) = (&home, round.rng());
                    rng.seed(round.seed ^ writer as u64);
                    scope.spawn(move || write(home, writer, entries, &mut rng))
                })
                .collect();
            for writer in writers {
                writer.join().unwrap().into_iter().for_each(|run| ledger.add(run));
            }
        });
        ledger.check(&home);
        assert_eq!(ledger.acknowledged(), PROCESSES * entries);
        assert!(ledger.runs() > PROCESSES * 10, "only {} processes were needed", ledger.runs());
    }
}

/// Has its entries appended by one process after the other, until all of them are acknowledged.
fn write(home: &Home, writer: usize, entries: usize, rng: &mut fastrand::Rng) -> Vec<Run> {
    let (mut runs, mut left) = (Vec::new(), entries);
    while left > 0 {
        // Most wait for each acknowledgement: where many come at once, none comes between two of them.
        let (pace, most) = if rng.u8(..4) == 0 { (Pace::Flood, ONE_IN) } else { (Pace::Lockstep, left) };
        // Of all lengths, so that records begin and end anywhere in a block.
        let sizes: Vec<usize> = (0..left.min(most)).map(|_| rng.usize(..400)).collect();
        let run = Run::new(format!("w{writer}r{}", runs.len()), sizes);
        let appender = Appender::start(home.command(&["append", "s"]), run, pace);
        let ended = accompany(appender, left.min(most), rng);
        left -= ended.acknowledged.len();
        runs.push(ended);
    }
    runs
}

/// Stops a process now and then, until it has ended or is killed.
fn accompany(appender: Appender, lines: usize, rng: &mut fastrand::Rng) -> Run {
    loop {
        let next = appender.acknowledged() + rng.usize(1..ONE_IN);
        appender.wait_for(next, Duration::from_secs(60));
        if appender.acknowledged() >= lines || appender.has_ended() {
            let ended = appender.end();
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            return ended.run;
        }
        if rng.bool() {
            return appender.kill().run;
        }
        appender.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(rng.u64(1..40)));
        appender.signal(Signal::CONT);
    }
}

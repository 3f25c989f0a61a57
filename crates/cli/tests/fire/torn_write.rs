//! A write that really ends in the middle of a line: the file may not grow beyond a limit.

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::ledger::{Ledger, Run};
use super::side_by_side::side_by_side;
use crate::kit::{Home, cannot};

/// What the process does when its write is cut: it dies, as is usual, or it is told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Dies,
    IsTold,
}

#[test]
fn a_write_that_ends_in_the_middle_of_a_line_loses_nothing_and_merges_with_nothing() {
    let works = std::process::Command::new("prlimit").args(["--fsize=9999", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return cannot("the size of files cannot be limited here: that needs prlimit");
    }
    side_by_side(Effort::new("a write ends in the middle of a line", 96), 32, |round| {
        let (home, mut rng) = (Home::in_memory(), round.rng());
        home.answer(&["new", "--id", "s"]);
        let mut ledger = Ledger::new("s");
        // More than the page of the lock, which must not be what the limit hits.
        let ended = append(home.command(&["append", "s"]), Run::new("before", [2000; 3]));
        assert_eq!(ended.0, Some(0));
        let length = std::fs::metadata(home.log("s")).map_or(0, |log| log.len());
        ledger.add(ended.1);
        let then = if rng.bool() { Then::Dies } else { Then::IsTold };
        let run = Run::new("cut", (0..8).map(|_| rng.usize(..300)));
        let limit = length + rng.u64(..run.lines.iter().map(|line| line.len() as u64 + 30).sum::<u64>());
        let trap = if then == Then::Dies { "" } else { "trap '' XFSZ; " };
        let script = format!("{trap}exec prlimit --fsize={limit} \"$@\"");
        let ended = append(home.through(&["sh", "-c", &script, "sh"], &["append", "s"]), run);
        match then {
            Then::Dies => assert!([None, Some(0)].contains(&ended.0), "{ended:?}"),
            Then::IsTold => assert!([Some(1), Some(0)].contains(&ended.0), "{ended:?}"),
        }
        ledger.add(ended.1);
        ledger.check(&home);
        let ended = append(home.command(&["append", "s"]), Run::new("after", [20; 3]));
        assert_eq!((ended.0, ended.1.acknowledged.len()), (Some(0), 3));
        ledger.add(ended.1);
        ledger.check(&home);
    });
}

fn append(command: std::process::Command, run: Run) -> (Option<i32>, Run) {
    let ended = Appender::start(command, run, Pace::Flood).end();
    (ended.code, ended.run)
}

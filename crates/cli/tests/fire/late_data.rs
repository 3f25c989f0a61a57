//! A power cut on ext4 that writes data later than sizes: ends of NUL bytes, and worse.
//!
//! A write that nobody has waited for may then leave anything behind, in any order. So only what was acknowledged is
//! asked for here.

use std::time::{Duration, Instant};

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::ledger::{self, Ledger, Run};
use super::mounted::{Cut, Image};
use super::strace;
use crate::kit::Home;

const LATE: &str = "data=writeback,nodelalloc";

#[test]
fn what_was_acknowledged_survives_a_power_cut_on_ext4_that_writes_data_late() {
    let Some(_) = Image::new("ext4", LATE) else { return };
    for round in Effort::new("power cut on ext4, data=writeback", 50) {
        let mut rng = round.rng();
        // A new one each time: this mode hands out what files that are gone have left in their blocks.
        let image = Image::new("ext4", LATE).unwrap();
        let mut home = Home::new();
        home.move_to("disk/home/store");
        let mut disk = image.mount(&home.path().join("disk"));
        home.answer(&["new", "--id", "s"]);
        let mut ledger = Ledger::new("s");
        for cut in 0..3 {
            let running: Vec<Appender> = (0..rng.usize(1..3))
                .map(|writer| {
                    let run = Run::new(format!("c{cut}w{writer}"), (0..200).map(|_| rng.usize(..4000)));
                    Appender::start(home.command(&["append", "s"]), run, Pace::Flood)
                })
                .collect();
            running[0].wait_for(rng.usize(..150), Duration::from_millis(50));
            std::thread::sleep(Duration::from_micros(rng.u64(..3000)));
            running.iter().for_each(Appender::stop);
            disk.cut(if rng.u8(..4) == 0 { Cut::AtOnce } else { Cut::AfterTheJournal });
            running.into_iter().for_each(|appender| ledger.add(appender.kill().run));
            drop(disk);
            disk = image.mount(&home.path().join("disk"));
            ledger.check_acknowledged(&home);
        }
    }
}

#[test]
fn a_tail_of_nul_bytes_is_set_aside_and_nothing_before_it_is_lost() {
    let Some(image) = Image::new("ext4", LATE) else { return };
    if !strace::works() {
        return;
    }
    let mut home = Home::new();
    home.move_to("disk/store");
    let disk = image.mount(&home.path().join("disk"));
    home.answer(&["new", "--id", "s"]);
    let mut ledger = Ledger::new("s");
    // Its third sync comes so late that the power is gone before it.
    let command = strace::tampered(&home, "fdatasync:delay_enter=60000000:when=3", &["append", "s"]);
    let appender = Appender::start(command, Run::new("r", [5000; 3]), Pace::Lockstep);
    let begun = Instant::now();
    while std::fs::metadata(home.log("s")).map_or(0, |log| log.len()) < 15_000 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the third entry is never written");
        std::thread::sleep(Duration::from_millis(5));
    }
    disk.cut(Cut::AfterTheJournal);
    ledger.add(appender.kill().run);
    drop(disk);
    let _disk = image.mount(&home.path().join("disk"));
    assert_eq!(ledger::problems(&home, "s").len(), 1, "the log has a bad end");
    ledger.check(&home);
    let ended = Appender::start(home.command(&["append", "s"]), Run::new("q", [10; 3]), Pace::Flood).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("a copy is in the quarantine"), "{}", ended.err);
    ledger.add(ended.run);
    ledger.check(&home);
    assert!(ledger::problems(&home, "s")[0].contains("NUL bytes"), "{:?}", ledger::problems(&home, "s"));
}

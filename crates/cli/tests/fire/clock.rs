//! Clocks that jump: back to 2001, on to 2040, between runs and within one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::ledger::{Ledger, Run};
use super::world::{Verb, World};
use crate::kit::{Home, cannot, uuid_in};

/// Times as libfaketime reads them; an empty one is the right time.
const TIMES: [&str; 6] =
    ["2001-09-09 01:46:40", "1970-01-02 00:00:00", "", "2040-01-01 00:00:00", "-2y", "+400d"];

#[test]
fn a_clock_that_jumps_between_runs_changes_neither_the_order_nor_the_latest_session() {
    let Some(library) = library() else { return };
    for round in Effort::new("the clock jumps between runs", 6) {
        let (mut home, mut world, mut rng) = (Home::in_memory(), World::default(), round.rng());
        // Of one that was never appended to nothing but the clock tells how old it is.
        for session in ["a", "b", "c"] {
            set_clock(&mut home, &library, rng.choice(TIMES).unwrap());
            assert_eq!(world.act(&home, Verb::New, session, "").code, 0);
            append(&home, &mut world, session);
        }
        for _ in 0..16 {
            set_clock(&mut home, &library, rng.choice(TIMES).unwrap());
            let session = rng.choice(["a", "b", "c"]).unwrap();
            let (verb, undo) = rng
                .choice([
                    (Verb::Archive, Verb::Unarchive),
                    (Verb::Delete, Verb::Restore),
                    (Verb::Fork, Verb::Archive),
                ])
                .unwrap();
            let made = if verb == Verb::Fork { world.name("f") } else { session.to_owned() };
            assert_eq!(world.act(&home, verb, &made, session).code, 0);
            set_clock(&mut home, &library, rng.choice(TIMES).unwrap());
            assert_eq!(world.act(&home, undo, &made, session).code, 0);
            let last = append(&home, &mut world, session);
            home.answer(&["list", "--all"]);
            let latest = home.answer(&["show", "--latest", "--json"]);
            assert_eq!(latest.lines().last(), Some(last.as_str()), "the latest is what was appended to last");
        }
        set_clock(&mut home, &library, "");
        world.check(&home);
        times_are_sane(&home);
    }
}

#[test]
fn a_clock_that_jumps_in_the_middle_of_a_run_changes_nothing() {
    let Some(library) = library() else { return };
    for round in Effort::new("the clock jumps within a run", 4) {
        let (mut home, mut rng) = (Home::in_memory(), round.rng());
        home.answer(&["new", "--id", "s"]);
        let clock = home.path().join("clock");
        fs::write(&clock, "+0").unwrap();
        home.set([
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]);
        let appenders: Vec<Appender> = (0..3)
            .map(|writer| {
                let run = Run::new(format!("w{writer}"), [80; 150]);
                Appender::start(home.command(&["append", "s"]), run, Pace::Lockstep)
            })
            .collect();
        while appenders.iter().any(|appender| !appender.has_ended()) {
            // Replaced whole: a time that is half written is no time.
            let next = home.path().join("next");
            fs::write(
                &next,
                Some(rng.choice(TIMES).unwrap()).filter(|time| !time.is_empty()).unwrap_or("+0"),
            )
            .unwrap();
            fs::rename(next, &clock).unwrap();
            std::thread::sleep(Duration::from_millis(rng.u64(1..15)));
        }
        let mut ledger = Ledger::new("s");
        for ended in appenders.into_iter().map(Appender::end) {
            assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 150), "{}", ended.err);
            ledger.add(ended.run);
        }
        home.set([]);
        ledger.check(&home);
        times_are_sane(&home);
    }
}

#[test]
fn what_gets_an_id_while_the_clock_stands_still_or_goes_back_gets_one_of_its_own() {
    let Some(library) = library() else { return };
    let mut home = Home::in_memory();
    home.answer(&["new", "--id", "s"]);
    let (mut ids, mut made) = (HashSet::new(), 0);
    for time in ["2001-09-09 01:46:40", "1999-09-09 01:46:40", "2001-09-09 01:46:40"] {
        set_clock(&mut home, &library, time);
        for _ in 0..10 {
            ids.insert(home.answer(&["new"]).trim_end().to_owned());
        }
        let said = home.feed(&["append", "s"], "{\"without\":\"an id\"}\n".repeat(500));
        ids.extend(said.out.lines().filter_map(uuid_in).map(str::to_owned));
        made += 10 + 500;
    }
    assert_eq!(ids.len(), made);
}

#[test]
fn clearing_away_with_a_wrong_clock_takes_nothing_from_those_at_work() {
    let Some(library) = library() else { return };
    for _ in Effort::new("gc with a wrong clock beside writers", 3) {
        let (mut cleaner, mut world) = (Home::in_memory(), World::default());
        // The one that clears away works on the same store with a clock of its own.
        let mut home = Home::in_memory();
        home.move_to(cleaner.store());
        std::thread::scope(|scope| {
            let cleaning = scope.spawn(|| {
                for number in 0..60 {
                    set_clock(&mut cleaner, &library, TIMES[number % TIMES.len()]);
                    let said = cleaner.run(&["gc"]);
                    assert_eq!(said.code, 0, "{}", said.err);
                }
            });
            while !cleaning.is_finished() {
                let session = world.name("s");
                let said = world.act(&home, Verb::New, &session, "");
                // A folder without a record looks old to it, and may go before its first record comes.
                assert!(said.code == 0 || said.err.starts_with("error: cannot "), "{}", said.err);
                if said.code == 0 {
                    append(&home, &mut world, &session);
                    append(&home, &mut world, &session);
                }
            }
        });
        world.check(&home);
    }
}

/// What was deleted while the clock stood at 2001 had been in the trash for decades, and was purged at once.
#[test]
fn what_was_deleted_with_a_wrong_clock_is_not_purged_before_its_time() {
    let Some(library) = library() else { return };
    for time in TIMES {
        let mut home = Home::in_memory();
        home.conversation("s", 2);
        set_clock(&mut home, &library, time);
        assert_eq!(home.run(&["delete", "s"]).code, 0);
        set_clock(&mut home, &library, "");
        assert_eq!(
            home.run(&["gc", "--trash-after", "1"]).out,
            "",
            "deleted just now, with the clock at {time}"
        );
        assert_eq!(home.run(&["restore", "s"]).code, 0);
        assert_eq!(home.answer(&["show", "s", "--json"]).lines().count(), 2);
    }
}

/// Appends to a session. Returns the last entry.
fn append(home: &Home, world: &mut World, session: &str) -> String {
    let run = Run::new(world.name("r"), [20, 50]);
    let ended = Appender::start(home.command(&["append", session]), run, Pace::Lockstep).end();
    assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 2), "{}", ended.err);
    let last = ended.run.lines[1].clone();
    world.add(session, ended.run);
    last
}

/// When a session was last appended to is told by its file or its entries, not by a clock that was wrong.
fn times_are_sane(home: &Home) {
    let now = jiff::Timestamp::now();
    for line in home.answer(&["list", "--all", "--json"]).lines() {
        let metadata: serde_json::Value = serde_json::from_str(line).unwrap();
        let updated: jiff::Timestamp = metadata["updated_at"].as_str().unwrap().parse().unwrap();
        let appended_to = metadata["entry_count"] != 0;
        let age = now.duration_since(updated).unsigned_abs();
        assert!(!appended_to || age < Duration::from_secs(600), "{line}");
    }
}

fn set_clock(home: &mut Home, library: &Path, time: &str) {
    match time {
        "" => home.set([]),
        _ => home.set([
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("FAKETIME", time),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]),
    }
}

/// Finds libfaketime, and makes sure that it works.
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().filter_map(Result::ok);
    let candidates = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    let works = |library: &PathBuf| {
        let mut date = Command::new("date");
        date.arg("+%Y").env("LD_PRELOAD", library).env("FAKETIME", TIMES[0]);
        date.output().is_ok_and(|output| output.stdout == b"2001\n")
    };
    let found = candidates.into_iter().find(works);
    if found.is_none() {
        cannot("the clock cannot be set for a process here: that needs libfaketime");
    }
    found
}

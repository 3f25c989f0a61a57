//! `kill -9` at a random time, the acknowledgements piped to this process.

use std::time::Duration;

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::kept::Kept;
use super::ledger::{Ledger, Run};
use super::world::{Outcome, Verb, World};
use crate::kit::Home;

/// How often the same session is killed before another one is begun: reading it back must stay cheap.
const KILLS_A_SESSION: u64 = 16;

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed_at_a_random_time() {
    kill_at_random_times(&Home::new(), Effort::new("kill -9 at a random time", 500));
}

#[test]
fn nothing_acknowledged_is_lost_in_sqlite_either_when_the_process_is_killed_at_a_random_time() {
    let mut home = Home::new();
    Kept::InSqlite.beneath("kept", &mut home);
    kill_at_random_times(&home, Effort::new("kill -9 at a random time, in SQLite", 100));
}

#[test]
fn what_is_done_to_a_session_in_sqlite_is_done_wholly_or_not_at_all_when_the_process_is_killed() {
    let (mut home, mut world) = (Home::new(), World::default());
    Kept::InSqlite.beneath("kept", &mut home);
    for round in Effort::new("kill -9 of a command, in SQLite", 60) {
        let mut rng = round.rng();
        let (open, trash) = (world.open(), world.trash());
        let Some(one) = rng.choice(open.clone()) else {
            let name = world.name("n");
            assert_eq!(world.act(&home, Verb::New, &name, "").code, 0);
            continue;
        };
        let run = Run::new(world.name("r"), (0..3).map(|_| rng.usize(..5000)));
        world.add(&one, Appender::start(home.command(&["append", &one]), run, Pace::Flood).end().run);
        let (verb, session) = match rng.u8(..9) {
            0 if open.len() < 6 => (Verb::New, world.name("n")),
            1 | 2 if open.len() < 6 => (Verb::Fork, world.name("f")),
            3 => (Verb::Archive, one.clone()),
            4 => (Verb::Unarchive, one.clone()),
            5 => (Verb::Materialize, one.clone()),
            6 if open.len() > 1 => (Verb::Delete, one.clone()),
            7 if !trash.is_empty() => (Verb::Restore, trash[0].clone()),
            // Which clears the whole trash.
            8 if trash.len() == 1 => (Verb::Gc, trash[0].clone()),
            8 if !trash.is_empty() => (Verb::Purge, trash[0].clone()),
            _ => (Verb::Export, one.clone()),
        };
        world.prepare(&home, verb, &session, &one);
        let mut child = home.start(&verb.words(&session, &one));
        std::thread::sleep(Duration::from_micros(rng.u64(..60_000)));
        drop(child.kill());
        let is_done = child.wait().unwrap().success();
        world.conclude(verb, &session, if is_done { Outcome::Done } else { Outcome::Unsure });
        world.check(&home);
    }
}

fn kill_at_random_times(home: &Home, effort: Effort) {
    let mut ledger = begin(home);
    for round in effort {
        let mut rng = round.rng();
        // So large that the kernel writes for a while, and a kill cuts a line.
        let large = rng.u8(..16) == 0;
        if large || (round.number > 0 && round.number % KILLS_A_SESSION == 0) {
            last_words(home, &mut ledger);
            ledger = begin(home);
        }
        let writers = if rng.u8(..5) == 0 { rng.usize(2..=3) } else { 1 };
        let running: Vec<Appender> = (0..writers)
            .map(|writer| start(home, &ledger, &format!("r{}w{writer}", round.number), large, &mut rng))
            .collect();
        wait(&running, &mut rng);
        for appender in running {
            let ended = appender.kill();
            assert!(ended.err.lines().all(|line| line.starts_with("warning: ")), "{}", ended.err);
            ledger.add(ended.run);
        }
        ledger.check(home);
        if large {
            last_words(home, &mut ledger);
            ledger = begin(home);
        }
    }
    last_words(home, &mut ledger);
}

fn begin(home: &Home) -> Ledger {
    Ledger::new(home.answer(&["new"]).trim_end())
}

fn start(home: &Home, ledger: &Ledger, name: &str, large: bool, rng: &mut fastrand::Rng) -> Appender {
    let sizes = match (large, rng.u8(..6)) {
        (true, _) => 150_000..600_000,
        (false, 0) => 2_000..6_000,
        (false, _) => 0..600,
    };
    let count = if large { 2 } else { 30 };
    let run = Run::new(name, (0..count).map(|_| rng.usize(sizes.clone())));
    let pace = if rng.u8(..3) == 0 { Pace::Lockstep } else { Pace::Flood };
    Appender::start(home.command(&["append", ledger.session()]), run, pace)
}

fn wait(running: &[Appender], rng: &mut fastrand::Rng) {
    if rng.bool() {
        // Near an acknowledgement, before or after: there the sync has just ended or just begun.
        running[0].wait_for(rng.usize(1..20), Duration::from_millis(30));
        std::thread::sleep(Duration::from_micros(rng.u64(..1500)));
    } else {
        std::thread::sleep(Duration::from_micros(rng.u64(..20_000)));
    }
}

/// A session that was killed often still takes entries, and a writer that is left alone gets all of them in.
fn last_words(home: &Home, ledger: &mut Ledger) {
    let run = Run::new("last", [10, 4000, 0]);
    let ended = Appender::start(home.command(&["append", ledger.session()]), run, Pace::Flood).end();
    assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 3), "{}", ended.err);
    ledger.add(ended.run);
    ledger.check(home);
}

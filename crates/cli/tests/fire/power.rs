//! Power cuts on real file systems: what was acknowledged is there when the machine comes back.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use rustix::process::Signal;

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::kept::Kept;
use super::ledger::{self, Ledger, Run};
use super::mounted::{Cut, Image, Mounted};
use super::stopped;
use super::strace;
use super::world::{Outcome, Verb, World};
use crate::kit::Home;

/// How many cuts one store lives through before another one is begun.
const CUTS_A_STORE: usize = 8;

#[test]
fn what_was_acknowledged_survives_a_power_cut_on_ext4() {
    cuts("ext4", Kept::InFiles, Effort::new("power cut on ext4", 50));
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_on_xfs() {
    cuts("xfs", Kept::InFiles, Effort::new("power cut on XFS", 50));
}

#[test]
fn what_was_acknowledged_in_sqlite_survives_a_power_cut_on_ext4() {
    cuts("ext4", Kept::InSqlite, Effort::new("power cut on ext4, in SQLite", 25));
}

#[test]
fn what_was_acknowledged_in_sqlite_survives_a_power_cut_on_xfs() {
    cuts("xfs", Kept::InSqlite, Effort::new("power cut on XFS, in SQLite", 25));
}

fn cuts(kind: &str, kept: Kept, effort: Effort) {
    let Some(image) = Image::new(kind, "defaults") else { return };
    let (mut home, mut world) = (Home::new(), World::default());
    let at = home.path().join("disk");
    let mut disk = image.mount(&at);
    for (number, round) in effort.enumerate() {
        let mut rng = round.rng();
        if number % CUTS_A_STORE == 0 {
            std::fs::remove_dir_all(at.join("home")).unwrap_or_default();
            // So deep that folders must be made, and made durable, on the way.
            kept.beneath(&format!("disk/home/{number}"), &mut home);
            world = World::default();
        }
        for _ in 0..rng.usize(1..4) {
            live(&home, &mut world, &mut rng);
        }
        break_off(&home, kept, &mut world, &disk, &mut rng);
        drop(disk);
        disk = image.mount(&at);
        world.check(&home);
    }
}

/// Does something that is acknowledged as a whole.
fn live(home: &Home, world: &mut World, rng: &mut fastrand::Rng) {
    let (open, trash) = (world.open(), world.trash());
    let Some(one) = rng.choice(open.clone()) else {
        let name = world.name("n");
        assert_eq!(world.act(home, Verb::New, &name, "").code, 0);
        return;
    };
    let (verb, session) = match rng.u8(..8) {
        0 if open.len() < 5 => (Verb::New, world.name("n")),
        1 if open.len() < 5 => (Verb::Fork, world.name("f")),
        2 => (Verb::Archive, one.clone()),
        3 => (Verb::Unarchive, one.clone()),
        4 if open.len() > 1 => (Verb::Delete, one.clone()),
        5 if !trash.is_empty() => (Verb::Restore, trash[0].clone()),
        _ => {
            let run = Run::new(world.name("r"), (0..4).map(|_| rng.usize(..3000)));
            let ended = Appender::start(home.command(&["append", &one]), run, Pace::Flood).end();
            assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 4), "{}", ended.err);
            return world.add(&one, ended.run);
        }
    };
    let said = world.act(home, verb, &session, &one);
    assert_eq!(said.code, 0, "{verb:?} {session}: {}", said.err);
}

/// Cuts the power while entries are appended, and often while something else is done as well.
fn break_off(home: &Home, kept: Kept, world: &mut World, disk: &Mounted, rng: &mut fastrand::Rng) {
    let open = world.open();
    let other = rng.bool().then(|| something(home, world, rng)).flatten();
    let mut appenders = Vec::new();
    for _ in 0..rng.usize(..3) {
        let Some(session) = rng.choice(&open) else { continue };
        let most = if rng.bool() { 500 } else { 6000 };
        let run = Run::new(world.name("r"), (0..200).map(|_| rng.usize(..most)));
        let pace = if rng.u8(..4) == 0 { Pace::Lockstep } else { Pace::Flood };
        appenders.push((session, Appender::start(home.command(&["append", session]), run, pace)));
    }
    let other = other.map(|(verb, session, one)| {
        world.prepare(home, verb, &session, &one);
        let child = home.start(&verb.words(&session, &one));
        (verb, session, child)
    });
    std::thread::sleep(Duration::from_micros(rng.u64(..25_000)));
    appenders.iter().for_each(|(_, appender)| appender.stop());
    other.iter().for_each(|(_, _, child)| stopped::stop(child));
    disk.cut(if rng.bool() { Cut::AtOnce } else { Cut::AfterTheJournal });
    let patient = rng.u8(..25) == 0;
    for (session, appender) in appenders {
        if !patient {
            world.add(session, appender.kill().run);
            continue;
        }
        // One that goes on without power must say that it cannot; what it says of its success is worth nothing.
        std::thread::sleep(Duration::from_millis(50));
        let before = appender.acknowledged();
        appender.signal(Signal::CONT);
        let mut ended = appender.end();
        // An input that was used up before the cut has ended well.
        let fine = ended.run.acknowledged.len() == ended.run.lines.len();
        // SQLite's processes share memory through a file, and the kernel ends whoever first writes there after the cut.
        let is_ended = ended.signal == Some(Signal::BUS.as_raw()) && kept == Kept::InSqlite;
        let how = (ended.code, ended.signal);
        assert!(is_ended || how == (Some(i32::from(!fine)), None), "{how:?}: {}", ended.err);
        assert!(is_ended || fine || ended.err.contains("\nhint: "), "{}", ended.err);
        ended.run.acknowledged.truncate(before);
        world.add(session, ended.run);
    }
    if let Some((verb, session, mut child)) = other {
        let _ = child.kill();
        let done = child.wait().unwrap().success();
        world.conclude(verb, &session, if done { Outcome::Done } else { Outcome::Unsure });
    }
}

/// Chooses what else is done, to which session, and out of which one.
fn something(home: &Home, world: &mut World, rng: &mut fastrand::Rng) -> Option<(Verb, String, String)> {
    let (one, trash) = (rng.choice(world.open())?, world.trash());
    let (verb, session) = match rng.u8(..10) {
        0 => (Verb::New, world.name("x")),
        1 | 2 => (Verb::Fork, world.name("x")),
        3 => {
            assert_eq!(home.run(&["export", &one, "-o", "bundle"]).code, 0);
            (Verb::Import, world.name("x"))
        }
        4 => (Verb::Archive, one.clone()),
        5 => (Verb::Materialize, one.clone()),
        6 if !trash.is_empty() => (Verb::Restore, trash[0].clone()),
        // Which clears the whole trash.
        7 if trash.len() == 1 => (Verb::Gc, trash[0].clone()),
        7 | 8 if !trash.is_empty() => (Verb::Purge, trash[0].clone()),
        _ => (Verb::Delete, one.clone()),
    };
    Some((verb, session, one))
}

/// A fork refers to its parent's last entry. If another process has written that and not yet synced it, an
/// acknowledged fork must not depend on it before it is durable.
#[test]
fn a_fork_of_an_entry_that_is_not_durable_yet_survives_a_power_cut_or_is_not_acknowledged() {
    let Some(image) = Image::new("ext4", "defaults") else { return };
    if !strace::works() {
        return;
    }
    let (mut home, mut world) = (Home::new(), World::default());
    home.move_to("disk/store");
    let disk = image.mount(&home.path().join("disk"));
    world.act(&home, Verb::New, "parent", "");
    let command = strace::tampered(&home, "fdatasync:delay_enter=3000000:when=2", &["append", "parent"]);
    let appender = Appender::start(command, Run::new("r", [100; 2]), Pace::Lockstep);
    appender.wait_for(1, Duration::from_secs(10));
    std::thread::sleep(Duration::from_millis(100));
    world.prepare(&home, Verb::Fork, "fork", "parent");
    let said = home.run(&Verb::Fork.words("fork", "parent"));
    let outcome = if said.code == 0 { Outcome::Done } else { Outcome::Unsure };
    world.conclude(Verb::Fork, "fork", outcome);
    disk.cut(Cut::AtOnce);
    world.add("parent", appender.kill().run);
    drop(disk);
    let _disk = image.mount(&home.path().join("disk"));
    world.check(&home);
}

/// If the same program with syncs that do nothing lost nothing, then the cuts above would prove nothing.
#[test]
fn a_power_cut_takes_what_was_only_said_to_be_synced() {
    if !strace::works() {
        return;
    }
    for kind in ["ext4", "xfs"] {
        let Some(image) = Image::new(kind, "defaults") else { return };
        let mut home = Home::new();
        home.move_to("disk/store");
        let disk = image.mount(&home.path().join("disk"));
        home.answer(&["new", "--id", "s"]);
        let mut ledger = Ledger::new("s");
        let command = strace::tampered(&home, "fsync,fdatasync:retval=0", &["append", "s"]);
        let ended = Appender::start(command, Run::new("r", [100; 20]), Pace::Lockstep).end();
        assert_eq!(ended.run.acknowledged.len(), 20, "{}", ended.err);
        ledger.add(ended.run);
        ledger.check(&home);
        disk.cut(Cut::AtOnce);
        drop(disk);
        let _disk = image.mount(&home.path().join("disk"));
        let broken = ledger.broken(&ledger::stored(&home, "s"));
        assert_eq!(broken, Err("r: 20 were acknowledged, 0 are there".into()), "{kind}");
    }
}

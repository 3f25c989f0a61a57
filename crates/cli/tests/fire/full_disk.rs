//! Disks that are full at every possible moment of a piece of work, and have room again afterwards.

use super::appender::{Appender, Ended, Pace};
use super::effort::{Effort, torture};
use super::kept::Kept;
use super::ledger::Run;
use super::mounted::Mounted;
use super::side_by_side::side_by_side;
use super::world::{Verb, World};
use crate::kit::{Home, Said};

/// A rung of the ladder: so much more room each time.
const STEP: u64 = 4096;
const STEPS: u64 = 128;
const STEPS_IN_TORTURE: u64 = 512;

#[test]
fn a_disk_that_is_full_at_any_step_loses_nothing_acknowledged_and_goes_on_with_room() {
    let steps = if torture() { STEPS_IN_TORTURE } else { STEPS };
    ladder(Kept::InFiles, "disk full, every 4 KiB", steps, |rung| format!("size={}", STEP * (1 + rung)));
}

#[test]
fn a_disk_without_room_for_another_file_loses_nothing_and_goes_on_with_room() {
    // The store with two sessions has about twenty files and folders.
    ladder(Kept::InFiles, "no room for another file", 24, |rung| format!("nr_inodes={}", 2 + rung));
}

#[test]
fn a_disk_that_is_full_beneath_sqlite_loses_nothing_acknowledged_and_goes_on_with_room() {
    // A page is twice as large, and what is appended is written to the log of the database first.
    let step = 6 * STEP;
    ladder(Kept::InSqlite, "disk full beneath SQLite, every 24 KiB", 64, |rung| {
        format!("size={}", step * (1 + rung))
    });
}

fn ladder(kept: Kept, row: &'static str, steps: u64, room: impl Fn(u64) -> String + Sync) {
    let tried = Home::new();
    let Some(_) = Mounted::tmpfs(&tried.path().join("disk"), "size=1m") else { return };
    side_by_side(Effort::new(row, steps), 32, |round| {
        let mut home = Home::new();
        kept.beneath("disk", &mut home);
        let Some(disk) = Mounted::tmpfs(&home.path().join("disk"), &room(round.turn(steps))) else { return };
        let (mut world, mut rng) = (World::default(), round.rng());
        // A longer ladder has more work to climb it.
        let many = (steps / STEPS).max(1);
        let work: Vec<Task> = vec![
            Task::Act(Verb::New, "a"),
            Task::Append("a", Run::new("a1", (0..70 * many).map(|_| rng.usize(..5000)))),
            Task::Act(Verb::Fork, "b"),
            Task::Append("b", Run::new("b1", (0..40 * many).map(|_| rng.usize(..5000)))),
            Task::Act(Verb::Archive, "a"),
            Task::Append("a", Run::new("a2", (0..30 * many).map(|_| rng.usize(..5000)))),
            Task::Act(Verb::Delete, "b"),
        ];
        let mut rest = Vec::new();
        for task in work {
            // What comes after the first failure waits for room.
            match rest.is_empty() {
                true => rest.extend(task.tried(&home, &mut world)),
                false => rest.push(task),
            }
        }
        // SQLite needs room beside the file to read it.
        if kept == Kept::InFiles {
            world.check(&home);
        }
        disk.remount("size=8m,nr_inodes=1000");
        for task in rest {
            assert!(task.tried(&home, &mut world).is_none(), "there is room now");
        }
        world.check(&home);
    });
}

#[derive(Debug)]
enum Task {
    Act(Verb, &'static str),
    Append(&'static str, Run),
}

impl Task {
    /// Does it, or says clearly why not; then returns what is left to be done.
    fn tried(self, home: &Home, world: &mut World) -> Option<Task> {
        match self {
            Task::Act(verb, session) => {
                let said = world.act(home, verb, session, "a");
                is_clear(&said);
                (said.code != 0).then_some(Task::Act(verb, session))
            }
            Task::Append(session, run) => {
                let command = home.command(&["append", session]);
                let Ended { run, code, err, .. } = Appender::start(command, run, Pace::Flood).end();
                is_clear(&Said { code: code.unwrap_or(-1), out: String::new(), err: err.clone() });
                let done = run.acknowledged.len();
                if done == run.lines.len() {
                    world.add(session, run);
                    return None;
                }
                let so_far = match done {
                    0 => "nothing was appended".to_owned(),
                    _ => format!("everything before line {} is durable", done + 1),
                };
                assert!(err.contains(&so_far), "{done} acknowledged: {err}");
                // What was not acknowledged may be there, so the rest goes by another name.
                let sizes = run.lines[done..].iter().map(String::len).collect::<Vec<_>>();
                let rest = Task::Append(session, Run::new(format!("{}again", run.name), sizes));
                world.add(session, run);
                Some(rest)
            }
        }
    }
}

/// One line says what is wrong, and one what to do.
fn is_clear(said: &Said) {
    match said.code {
        0 => assert!(!said.err.contains("error:"), "{}", said.err),
        _ => {
            let lines: Vec<&str> = said.err.lines().collect();
            let [error, hint] = lines[..] else { panic!("{}", said.err) };
            assert_eq!(said.code, 1, "{}", said.err);
            assert!(
                error.starts_with("error: no space left to ") && hint.starts_with("hint: "),
                "{}",
                said.err
            );
        }
    }
}

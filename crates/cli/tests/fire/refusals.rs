//! A system that refuses: too few open files, files that one may not touch. One clear error, and nothing lost.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::ledger::Run;
use super::side_by_side::side_by_side;
use super::strace::{self, everything_in};
use super::template::Template;
use super::world::{Outcome, Verb, World};
use crate::kit::{Home, cannot};

/// What is done, to which session, and out of which other one.
const SCRIPT: [(Verb, &str, &str); 8] = [
    (Verb::Append, "s", ""),
    (Verb::New, "n", ""),
    (Verb::Fork, "g", "s"),
    (Verb::Archive, "s", ""),
    (Verb::Restore, "t", ""),
    (Verb::Materialize, "f", ""),
    (Verb::Gc, "t", ""),
    (Verb::Import, "i", "s"),
];
/// What one may be kept from touching, beneath the store.
const PLACES: [&str; 9] = [
    "",
    "lock",
    "format.json",
    "sessions",
    "sessions/s",
    "sessions/s/lock",
    "sessions/s/messages.jsonl",
    "sessions/s/messages.1.jsonl",
    "sessions/s/metadata.json",
];
const NOBODY: u32 = 65534;

#[test]
fn too_few_open_files_are_one_clear_error_and_nothing_is_lost() {
    if !works("prlimit", &["--nofile=64:64", "true"]) {
        return cannot("the number of open files cannot be limited here: that needs prlimit");
    }
    let Some(template) = Template::new() else { return };
    // Below five the program cannot even be loaded; with twenty it has all that it needs.
    let limits = 5..20;
    let rounds = (limits.len() * SCRIPT.len()) as u64;
    side_by_side(Effort::new("too few open files", rounds), 4, |round| {
        let number = round.turn(rounds) as usize;
        let limit = format!("--nofile={0}:{0}", limits.start + number / SCRIPT.len() % limits.len());
        let (home, mut world) = template.copy();
        let command = |words: &[&str]| home.through(&["prlimit", &limit], words);
        tried(&home, &mut world, SCRIPT[number % SCRIPT.len()], command, &limit);
        goes_on(&home, &mut world, |words| home.command(words));
    });
}

#[test]
fn a_disk_that_fails_before_anything_was_written_is_one_clear_error_with_a_hint() {
    if !strace::works() {
        return;
    }
    let home = Home::new();
    home.answer(&["new", "--id", "s"]);
    let log = home.store().join("sessions/s/messages.jsonl");
    let command = strace::through(&home, "openat:error=EIO", "/dev/null", &[log], &["append", "s"]);
    let ended = Appender::start(command, Run::new("r", [100]), Pace::Flood).end();
    assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(1), 0), "{}", ended.err);
    assert!(ended.err.contains("Input/output error\nhint: the disk reports a failure"), "{}", ended.err);
}

#[test]
fn files_that_one_may_not_touch_are_one_clear_error_and_nothing_is_lost() {
    let as_nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !works("setpriv", &[&as_nobody[..], &["true"]].concat()) {
        return cannot("becoming somebody else needs root and setpriv");
    }
    let Some(template) = Template::new() else { return };
    // Where the tests are built is perhaps not open to everybody.
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), Permissions::from_mode(0o755)).unwrap();
    let path = program.path().join("rethread");
    // By another process: a program that this one has open for writing, and with it a child just forked, cannot run.
    assert!(works("cp", &[env!("CARGO_BIN_EXE_rethread"), path.to_str().unwrap()]));
    let modes = [0o000, 0o400, 0o500, 0o300];
    let rounds = (SCRIPT.len() * PLACES.len() * modes.len()) as u64;
    side_by_side(Effort::new("files that one may not touch", rounds), 4, |round| {
        let number = round.turn(rounds) as usize;
        let (home, mut world) = template.copy();
        everything_in(home.path()).iter().for_each(|path| chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
        let place = home.store().join(PLACES[number / SCRIPT.len() % PLACES.len()]);
        let mode = modes[number / SCRIPT.len() / PLACES.len() % modes.len()];
        let before = fs::metadata(&place).unwrap().permissions();
        let command = |words: &[&str]| {
            let mut runner = vec!["setpriv"];
            runner.extend(as_nobody);
            runner.extend([path.to_str().unwrap()]);
            home.instead(&runner, words)
        };
        fs::set_permissions(&place, Permissions::from_mode(mode)).unwrap();
        let told = format!("{} with {mode:o}", place.display());
        tried(&home, &mut world, SCRIPT[number % SCRIPT.len()], command, &told);
        fs::set_permissions(&place, before).unwrap();
        goes_on(&home, &mut world, command);
    });
}

#[test]
fn files_that_are_set_fast_are_one_clear_error_and_nothing_is_lost() {
    let tried_out = tempfile::NamedTempFile::new().unwrap();
    let Some(fast) = Fast::set(tried_out.path(), "i") else {
        return cannot(
            "no file can be set fast here: that needs root, chattr and a file system that knows it",
        );
    };
    drop(fast);
    let Some(template) = Template::new() else { return };
    let rounds = (SCRIPT.len() * PLACES.len() * 2) as u64;
    side_by_side(Effort::new("files that are set fast", rounds), 4, |round| {
        let number = round.turn(rounds) as usize;
        // Not every file system in memory knows the attribute.
        let (home, mut world) = template.copy_to(Home::new());
        let place = home.store().join(PLACES[number / SCRIPT.len() % PLACES.len()]);
        let attribute = ["i", "a"][number / SCRIPT.len() / PLACES.len() % 2];
        let fast = Fast::set(&place, attribute).unwrap();
        let told = format!("{} with +{attribute}", place.display());
        tried(&home, &mut world, SCRIPT[number % SCRIPT.len()], |words| home.command(words), &told);
        drop(fast);
        goes_on(&home, &mut world, |words| home.command(words));
    });
}

/// Runs one command that may be refused, and checks that it says so and that all the rest is as it was.
fn tried(
    home: &Home,
    world: &mut World,
    (verb, session, parent): (Verb, &str, &str),
    command: impl Fn(&[&str]) -> Command,
    told: &str,
) {
    world.prepare(home, verb, session, parent);
    let mut command = command(&verb.words(session, parent));
    let (code, err) = if verb == Verb::Append {
        let ended = Appender::start(command, Run::new("refused", [50; 3]), Pace::Flood).end();
        world.add(session, ended.run);
        (ended.code, ended.err)
    } else {
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let told = format!("{verb:?} {session}, {told}: {code:?} {err}");
    let errors = err.lines().filter(|line| line.starts_with("error: ")).count();
    match code {
        Some(0) => assert_eq!(errors, 0, "{told}"),
        Some(1) => assert!(errors == 1 || err.contains("warning: "), "{told}"),
        _ => panic!("{told}"),
    }
    world.conclude(verb, session, if code == Some(0) { Outcome::Done } else { Outcome::Unsure });
    world.broken(home).unwrap_or_else(|broken| panic!("{broken}: {told}"));
}

/// When nothing refuses any more, everything goes on.
fn goes_on(home: &Home, world: &mut World, command: impl Fn(&[&str]) -> Command) {
    let run = Run::new("afterwards", [10; 2]);
    let ended = Appender::start(command(&["append", "s"]), run, Pace::Flood).end();
    assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 2), "{}", ended.err);
    world.add("s", ended.run);
    world.check(home);
}

/// A file that cannot be changed (`i`) or only be added to (`a`), as long as this value lives.
struct Fast(PathBuf, &'static str);

impl Fast {
    fn set(path: &Path, attribute: &'static str) -> Option<Self> {
        let fast = Self(path.to_owned(), attribute);
        works("chattr", &[&format!("+{attribute}"), path.to_str().unwrap()]).then_some(fast)
    }
}

impl Drop for Fast {
    fn drop(&mut self) {
        works("chattr", &[&format!("-{}", self.1), self.0.to_str().unwrap_or_default()]);
    }
}

fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

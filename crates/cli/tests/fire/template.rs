//! A small store with some of everything, made once and copied for each try.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::path::Path;

use super::appender::{Appender, Pace};
use super::ledger::Run;
use super::strace;
use super::world::{Verb, World};
use crate::kit::Home;

/// A session `s` in two segments, its fork `f`, a session `t` in the trash, and the file `bundle` with `s` in it.
pub(crate) struct Template {
    home: Home,
    world: World,
}

impl Template {
    /// Makes it, if system calls can be tampered with here.
    pub(crate) fn new() -> Option<Self> {
        if !strace::works() {
            return None;
        }
        let (home, mut world) = (Home::in_memory(), World::default());
        for session in ["s", "t"] {
            world.act(&home, Verb::New, session, "");
        }
        append(&home, &mut world, "s", "first");
        append(&home, &mut world, "t", "trash");
        // A sync that failed once has left a second segment.
        let command = strace::tampered(&home, "fdatasync:error=EIO:when=1", &["append", "s"]);
        let ended = Appender::start(command, Run::new("second", [10, 20]), Pace::Flood).end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(home.log("s").with_file_name("messages.1.jsonl").try_exists().unwrap());
        world.add("s", ended.run);
        world.act(&home, Verb::Fork, "f", "s");
        append(&home, &mut world, "f", "fork");
        world.act(&home, Verb::Delete, "t", "");
        home.run(&["export", "s", "-o", "bundle"]);
        home.run(&["export", "f", "-o", "out"]);
        world.check(&home);
        Some(Self { home, world })
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Returns a copy of the store, and what must be in it.
    pub(crate) fn copy(&self) -> (Home, World) {
        self.copy_to(Home::in_memory())
    }

    pub(crate) fn copy_to(&self, home: Home) -> (Home, World) {
        copy_folder(self.home.path(), home.path());
        (home, self.world.clone())
    }
}

fn append(home: &Home, world: &mut World, session: &str, name: &str) {
    let run = Run::new(name, [5, 700, 30]);
    let ended = Appender::start(home.command(&["append", session]), run, Pace::Flood).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    world.add(session, ended.run);
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

//! A scenario that was played: what the CLI left on disk, and what it sends when it resumes that.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

use crate::home::Home;
use crate::program::Program;
use crate::scenario::{SCENARIOS, Scenario};
use crate::two_at_a_time::two_at_a_time;

/// The prompt that a session is resumed with, to see what comes before it.
pub const PROBE: &str = "What was said so far?";

/// A scenario that was played.
#[derive(Debug)]
pub struct Fixture {
    /// The scenario's name.
    pub name: &'static str,
    /// The session that came out.
    pub session: String,
    /// Claude's configuration folder as it was before anything was resumed.
    pub config: PathBuf,
    /// The messages of the first request when the session is resumed with [`PROBE`].
    pub sent: Vec<Value>,
    /// Where it was played, and where it was resumed.
    pub home: Home,
}

impl Fixture {
    /// Returns every scenario that the CLI can play, each played once in this process; none where there is no CLI.
    pub fn all() -> &'static [Fixture] {
        static ALL: LazyLock<Vec<Fixture>> = LazyLock::new(play_all);
        &ALL
    }

    /// Returns one that was played.
    pub fn named(name: &str) -> Option<&'static Fixture> {
        Self::all().iter().find(|fixture| fixture.name == name)
    }

    /// Plays one scenario, for a test that needs no other; `None` where there is no CLI.
    pub fn play_named(name: &str) -> Option<Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name).and_then(Self::play)
    }

    /// Plays a scenario.
    fn play(scenario: &Scenario) -> Option<Self> {
        let home = Home::new()?;
        let session = (scenario.act)(&home);
        let config = home.path().join("before");
        copy(&home.config(), &config);
        let place = working_directory(&home, &session);
        let sent = home.claude().bypassing().inside(&place).messages_on_resume(&session, PROBE);
        Some(Self { name: scenario.name, session, config, sent, home })
    }

    /// Has the CLI resume another session of this home, where this one worked, and returns the messages it sends.
    pub fn resume(&self, session: &str) -> Vec<Value> {
        self.home.claude().bypassing().inside(&self.directory()).messages_on_resume(session, PROBE)
    }

    /// Returns the folder that the session says it was begun in.
    pub fn directory(&self) -> PathBuf {
        working_directory(&self.home, &self.session)
    }

    /// Puts other bytes beside the session's transcript, and returns the id of the session they are.
    pub fn adopt(&self, bytes: &[u8]) -> String {
        let id = format!("{:08x}-0000-4000-8000-{:012x}", fastrand::u32(..), fastrand::u64(..) >> 16);
        let beside = self.home.transcript(&self.session).with_file_name(format!("{id}.jsonl"));
        fs::write(beside, bytes).unwrap();
        id
    }

    /// Returns the session's transcript as it was before anything was resumed.
    pub fn transcript(&self) -> PathBuf {
        let there = self.home.transcript(&self.session);
        self.config.join(there.strip_prefix(self.home.config()).unwrap())
    }
}

/// Plays them two at a time: each waits most of its life.
fn play_all() -> Vec<Fixture> {
    let Some(program) = Program::find() else {
        crate::cannot("Claude Code cannot be installed");
        return Vec::new();
    };
    let known: Vec<&Scenario> =
        SCENARIOS.iter().filter(|scenario| program.is_at_least(scenario.since)).collect();
    two_at_a_time(&known, |scenario| Fixture::play(scenario)).into_iter().flatten().collect()
}

/// Returns the folder that a session says it was begun in.
fn working_directory(home: &Home, session: &str) -> PathBuf {
    let text = fs::read_to_string(home.transcript(session)).unwrap();
    let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let cwd = entries.filter_map(|entry| entry["cwd"].as_str().map(PathBuf::from)).next();
    cwd.unwrap_or_else(|| home.project())
}

/// Copies a folder, with the times of its files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.as_ref().unwrap(), to.join(entry.as_ref().unwrap().file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), &to).unwrap();
            let modified = entry.metadata().unwrap().modified().unwrap();
            fs::File::options().append(true).open(&to).unwrap().set_modified(modified).unwrap();
        }
    }
}

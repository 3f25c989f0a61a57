//! What the tests share: a person's home in a temporary folder, and what the program said there.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot begin has failed")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rethread_testkit::{Postgres, S3};
use tempfile::TempDir;

/// A person's home with a store in it.
pub(crate) struct Home {
    folder: TempDir,
    store: PathBuf,
    variables: Vec<(String, String)>,
}

/// Returns stores of every kind, those that are files in a folder.
pub(crate) fn stores_in(folder: &Path) -> Vec<String> {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut stores = vec![path("other"), format!("sqlite:{}", path("other.db"))];
    match Postgres::shared() {
        Some(server) => stores.push(server.fresh()),
        None => cannot("PostgreSQL is not installed: apt-get install postgresql"),
    }
    stores.extend(s3());
    stores
}

/// Returns an empty store in S3; the program finds its way there.
pub(crate) fn s3() -> Option<String> {
    let Some(server) = S3::shared() else {
        cannot("there is no S3 server: scripts/setup s3");
        return None;
    };
    WAY_TO_S3.get_or_init(|| server.way().variables());
    Some(format!("s3://{}/team", server.bucket()))
}

/// Returns what the program's environment has to say of S3, where a test uses it.
pub(crate) fn way_to_s3() -> impl Iterator<Item = (&'static str, &'static str)> {
    WAY_TO_S3.get().into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()))
}

/// What the program's environment has where a test uses S3 beside other stores.
static WAY_TO_S3: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// What the program said, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }

    /// A home in memory, where a sync costs nothing; on disk if there is no such place.
    pub(crate) fn in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self::within(folder)
    }

    /// Homes whose sessions are in files, in SQLite and, where they are installed, in PostgreSQL and S3.
    pub(crate) fn of_every_kind() -> Vec<Self> {
        let (files, mut sqlite) = (Self::new(), Self::new());
        sqlite.set([("RETHREAD_STORE", "sqlite:sessions.db")]);
        let mut homes = vec![files, sqlite];
        match Postgres::shared() {
            None => cannot("PostgreSQL is not installed: apt-get install postgresql"),
            Some(server) => {
                let mut postgres = Self::new();
                postgres.set([("RETHREAD_STORE", &server.fresh())]);
                homes.push(postgres);
            }
        }
        match S3::shared() {
            None => cannot("there is no S3 server: scripts/setup s3"),
            Some(server) => {
                let mut s3 = Self::new();
                s3.set([("RETHREAD_STORE", &format!("s3://{}/team", server.bucket()))]);
                s3.add(server.way().variables());
                homes.push(s3);
            }
        }
        homes
    }

    /// The same, with a store that is encrypted.
    pub(crate) fn encrypted(mut self) -> Self {
        assert_eq!(self.run(&["key", "master.key"]).code, 0);
        let plain = self.variables.iter().position(|(name, _)| name == "RETHREAD_STORE");
        let plain = plain.map_or_else(|| "./store".to_owned(), |at| self.variables.swap_remove(at).1);
        self.variables.push(("RETHREAD_STORE".into(), format!("encrypted+{plain}")));
        self.variables.push(("RETHREAD_KEY_FILE".into(), "master.key".into()));
        self
    }

    /// Another home, with the same store.
    pub(crate) fn twin(&self) -> Self {
        let mut twin = Self::new();
        twin.variables = self.variables.clone();
        twin.store = self.store();
        // What is named by a path is where it is.
        for (name, value) in &mut twin.variables {
            *value = match name.as_str() {
                "RETHREAD_STORE" => value.replace(
                    "sqlite:sessions",
                    &format!("sqlite:{}", self.path().join("sessions").display()),
                ),
                "RETHREAD_KEY_FILE" => self.path().join(&value).display().to_string(),
                _ => continue,
            };
            *value = value.replace("encrypted+./store", &format!("encrypted+{}", self.store().display()));
        }
        twin
    }

    /// Returns what its store is called.
    pub(crate) fn store_url(&self) -> String {
        let named = self.variables.iter().find(|(name, _)| name == "RETHREAD_STORE");
        named.map_or_else(|| self.store().display().to_string(), |(_, url)| url.clone())
    }

    fn within(folder: TempDir) -> Self {
        Self { folder, store: "store".into(), variables: Vec::new() }
    }

    /// Sets what the program's environment has from now on.
    pub(crate) fn set<const N: usize>(&mut self, variables: [(&str, &str); N]) {
        self.variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    }

    /// Sets more of it.
    pub(crate) fn add(&mut self, variables: Vec<(String, String)>) {
        self.variables.extend(variables);
    }

    /// Has its store at another place in this home from now on.
    pub(crate) fn move_to(&mut self, store: impl Into<PathBuf>) {
        self.store = store.into();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join(&self.store)
    }

    pub(crate) fn log(&self, session: &str) -> PathBuf {
        self.store().join("sessions").join(session).join("messages.jsonl")
    }

    /// Returns the program, ready to be run in this home.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.through(&[], words)
    }

    /// Returns the program, to be run by another one.
    pub(crate) fn through(&self, runner: &[&str], words: &[&str]) -> Command {
        self.instead(&[runner, &[env!("CARGO_BIN_EXE_rethread")]].concat(), words)
    }

    /// Returns a program of the caller's, to be run in this home.
    pub(crate) fn instead(&self, runner: &[&str], words: &[&str]) -> Command {
        let mut line = runner.iter().chain(words).copied();
        let mut command = Command::new(line.next().unwrap());
        command.args(line).current_dir(self.path());
        command.env_remove("XDG_DATA_HOME").env_remove("NO_COLOR");
        // Nobody's own sessions.
        command.env_remove("CLAUDE_CONFIG_DIR").env_remove("XDG_CACHE_HOME").env_remove("RETHREAD_STORE");
        command.env("HOME", self.path()).env("RETHREAD_HOME", self.store());
        command.envs(way_to_s3());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end, without input.
    pub(crate) fn run(&self, words: &[&str]) -> Said {
        self.said(self.command(words).output().unwrap())
    }

    /// Runs the program to its end with input.
    pub(crate) fn feed(&self, words: &[&str], input: impl Display) -> Said {
        self.feed_to(self.command(words), input)
    }

    pub(crate) fn feed_to(&self, mut command: Command, input: impl Display) -> Said {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_string());
        // It may end before it has read everything, and it may answer before it has.
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let said = self.said(child.wait_with_output().unwrap());
        let _ = writer.join().unwrap();
        said
    }

    /// Starts the program with pipes at both ends.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdin(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the program, which must succeed, and returns its answer.
    #[track_caller]
    pub(crate) fn answer(&self, words: &[&str]) -> String {
        let said = self.run(words);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{words:?}");
        said.out
    }

    /// Begins a session with entries `u1` to `uN`.
    pub(crate) fn conversation(&self, id: &str, length: usize) {
        assert_eq!(self.answer(&["new", "--id", id]), format!("{id}\n"));
        let said = self.feed(&["append", id], (1..=length).map(entry).collect::<String>());
        assert_eq!((said.code, said.out.lines().count()), (0, length), "{}", said.err);
    }

    /// Spoils the entry `uN` of a session on disk.
    pub(crate) fn spoil(&self, session: &str, number: usize) {
        let log = self.log(session);
        let text = fs::read_to_string(&log).unwrap();
        let spoilt = text.replace(&format!("\"message {number}\""), &format!("\"massage {number}\""));
        assert_ne!(text, spoilt);
        fs::write(log, spoilt).unwrap();
    }

    /// Puts a line between two entries that no store has written.
    pub(crate) fn litter(&self, session: &str) {
        let log = self.log(session);
        let text = fs::read_to_string(&log).unwrap();
        let (before, after) = text.split_at(text.rfind("{\"uuid\"").unwrap());
        fs::write(log, [before, "{\"foreign\":true}\n", after].concat()).unwrap();
    }

    /// Returns what was said; messages name the temporary folder `HOME`.
    fn said(&self, output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program speaks UTF-8");
        let code = output.status.code().expect("the program was not killed");
        let err = text(output.stderr).replace(self.path().to_str().unwrap(), "HOME");
        Said { code, out: text(output.stdout), err }
    }
}

impl Said {
    /// An answer, and nothing else.
    pub(crate) fn answer(out: impl Into<String>) -> Self {
        Self { code: 0, out: out.into(), err: String::new() }
    }

    /// Something told, and nothing answered.
    pub(crate) fn told(err: impl Into<String>) -> Self {
        Self { code: 0, out: String::new(), err: err.into() }
    }

    /// An error and its hint.
    pub(crate) fn error(code: i32, message: &str, hint: &str) -> Self {
        Self { code, out: String::new(), err: format!("error: {message}\nhint: {hint}\n") }
    }
}

/// The n-th entry of a conversation, as a line.
pub(crate) fn entry(number: usize) -> String {
    let role = if number % 2 == 1 { "user" } else { "assistant" };
    format!("{{\"uuid\":\"u{number}\",\"role\":\"{role}\",\"content\":\"message {number}\"}}\n")
}

/// The acknowledgement of an entry.
pub(crate) fn ack(uuid: &str, position: u64) -> String {
    format!("{{\"uuid\":\"{uuid}\",\"position\":{position},\"durable\":true}}\n")
}

/// Returns the `uuid` that a line of JSON begins with.
pub(crate) fn uuid_in(line: &str) -> Option<&str> {
    line.strip_prefix(r#"{"uuid":""#)?.split('"').next()
}

/// Says in one line that a test cannot be made here; in CI that is a failure.
pub(crate) fn cannot(what: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{what}");
    eprintln!("skipped: {what}");
}

/// Waits for something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    // Long, for machines that have a lot to do: only a test that fails waits to its end.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(180) {
        if let Some(found) = is() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never came to be: {what}")
}

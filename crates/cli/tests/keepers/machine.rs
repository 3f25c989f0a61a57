//! A machine with a keeper of its own, on a store that others have too.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use rethread_keeper::{Attention, Client};
use rethread_testkit::{Home as RealHome, Postgres, S3};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A store that machines share, and what their environment has to say about it.
#[derive(Clone, Default)]
pub(super) struct Place {
    store: String,
    environment: Vec<(String, String)>,
}

impl Place {
    pub(super) fn at(store: String) -> Self {
        Self { store, ..Self::default() }
    }

    pub(super) fn postgres(server: &Postgres) -> Self {
        Self::at(server.fresh())
    }

    pub(super) fn s3(server: &S3) -> Self {
        let store = format!("s3://{}/team", server.bucket());
        Self { store, environment: server.way().variables() }
    }

    /// The same, encrypted with a key that every machine has.
    pub(super) fn encrypted(self, folder: &Path) -> Self {
        let key = folder.join("master.key").to_str().unwrap().to_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
        command.args(["key", &key]).env("RETHREAD_HOME", folder.join("rethread"));
        assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
        let mut environment = self.environment;
        environment.push(("RETHREAD_KEY_FILE".into(), key));
        Self { store: format!("encrypted+{}", self.store), environment }
    }
}

/// A machine with a keeper: what Claude Code has there is its own, the store is everybody's.
pub(super) struct Machine {
    pub(super) home: PathBuf,
    claude: PathBuf,
    agent: PathBuf,
    store: String,
    environment: Vec<(String, String)>,
    keeper: Mutex<Option<Child>>,
}

impl Machine {
    pub(super) fn new(home: &Path, claude: PathBuf, agent: PathBuf, place: &Place) -> Self {
        let Place { store, environment } = place.clone();
        fs::create_dir_all(claude.join("projects")).unwrap();
        Self { home: home.to_owned(), claude, agent, store, environment, keeper: Mutex::default() }
    }

    /// One with the real CLI.
    pub(super) fn real(home: &RealHome, place: &Place) -> Self {
        let mut machine = Self::new(home.path(), home.config(), home.program().path.clone(), place);
        let said =
            |(name, value): (&str, std::ffi::OsString)| (name.to_owned(), value.into_string().unwrap());
        machine.environment.extend(home.environment().into_iter().map(said));
        machine
    }

    pub(super) fn start(&self) {
        self.start_by(Command::new(env!("CARGO_BIN_EXE_rethread")));
    }

    /// Starts it on what others take for another host, where they cannot tell whether a process lives.
    pub(super) fn start_on(&self, host: &str) {
        let mut command = Command::new("unshare");
        let rename = "hostname \"$0\" && exec \"$@\"";
        command.args(["--uts", "sh", "-c", rename, host, env!("CARGO_BIN_EXE_rethread")]);
        self.start_by(command);
    }

    pub(super) fn start_by(&self, mut command: Command) {
        command.args(["--store", &self.store, "serve", "--listen", "127.0.0.1:0", "--claude-bin"]);
        command.arg(&self.agent).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
        command.env("HOME", &self.home).env("RETHREAD_HOME", self.home.join("rethread"));
        command.env("CLAUDE_CONFIG_DIR", &self.claude);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("The keeper is ready"), "{line:?}");
        *self.keeper.lock().unwrap() = Some(child);
    }

    /// Ends it as a power cut would.
    pub(super) fn kill(&self) {
        if let Some(mut keeper) = self.keeper.lock().unwrap().take() {
            drop(keeper.kill());
            drop(keeper.wait());
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let keeper = self.keeper.lock().unwrap();
        kill_process(Pid::from_child(keeper.as_ref().unwrap()), signal).unwrap();
    }

    pub(super) fn ask<T>(
        &self,
        work: impl AsyncFnOnce(Client) -> rethread_keeper::Result<T>,
    ) -> rethread_keeper::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Client::new(&self.home.join("rethread/keeper"));
        runtime.block_on(work(client))
    }

    pub(super) fn get(&self, path: &str) -> rethread_keeper::Result<Value> {
        self.ask(async |client| client.get(path).await)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> rethread_keeper::Result<Value> {
        self.ask(async |client| client.post(path, body).await)
    }

    pub(super) fn begin(&self, cwd: &Path, prompt: &str) -> String {
        let card = self.post("/sessions", &json!({ "cwd": cwd, "prompt": prompt })).unwrap();
        card["session_id"].as_str().unwrap().to_owned()
    }

    /// Sends a message; returns its id, where it was taken.
    pub(super) fn send(&self, session: &str, text: &str) -> rethread_keeper::Result<String> {
        let id = format!("{:08x}-3333-4333-8333-{:012x}", fastrand::u32(..), fastrand::u64(..) >> 16);
        let parts = json!([{ "type": "text", "text": text }]);
        let body = json!({ "client_message_id": id, "mode": "start", "parts": parts });
        self.post(&format!("/sessions/{session}/turns"), &body).map(|_| id)
    }

    pub(super) fn requests(&self) -> Vec<Attention> {
        let page = self.get("/attention").unwrap();
        serde_json::from_value(page["items"].clone()).unwrap()
    }

    pub(super) fn decide(&self, attention: &Attention, decision: &str) -> rethread_keeper::Result<Value> {
        let body = json!({ "decision": decision, "shown_digest": attention.digest });
        self.post(&format!("/attention/{}/decision", attention.shown.id), &body)
    }

    pub(super) fn state(&self, session: &str) -> Option<String> {
        let card = self.get(&format!("/sessions/{session}")).ok()?;
        card["state"].as_str().map(str::to_owned)
    }

    /// The conversation, by the ids of its messages.
    pub(super) fn said(&self, session: &str) -> Vec<String> {
        let Ok(page) = self.get(&format!("/sessions/{session}/messages?limit=500")) else {
            return Vec::new();
        };
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["uuid"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Whether a message is on a line of a transcript here, whatever became of the session elsewhere.
    pub(super) fn has_written(&self, session: &str, message: &str) -> bool {
        self.transcripts(session)
            .filter_map(|path| fs::read_to_string(path).ok())
            .any(|text| text.contains(message))
    }

    /// Whether a message waits here until somebody goes on with its session.
    pub(super) fn has_waiting(&self, session: &str, message: &str) -> bool {
        let prompts = fs::read_dir(self.home.join("rethread/keeper/prompts").join(session));
        let mut names = prompts.into_iter().flatten().map(|prompt| prompt.unwrap().file_name());
        names.any(|name| name.to_str().unwrap().ends_with(&format!("-{message}.json")))
    }

    /// Writes a message into a session's transcript, behind another one, as a program does that knows of no keeper.
    pub(super) fn write(&self, session: &str, uuid: &str, parent: &str) {
        let path = self.transcripts(session).find(|path| path.try_exists().unwrap()).unwrap();
        let line = json!({
            "parentUuid": parent, "isSidechain": false, "type": "user", "uuid": uuid, "sessionId": session,
            "message": { "role": "user", "content": "Said in a terminal." }, "timestamp": "2026-01-02T03:04:05.000Z",
        });
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn transcripts(&self, session: &str) -> impl Iterator<Item = PathBuf> {
        let projects = fs::read_dir(self.claude.join("projects")).unwrap();
        let name = format!("{session}.jsonl");
        projects.map(move |project| project.unwrap().path().join(&name))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
        drop(LogIfFailed(self.home.clone()));
    }
}

/// Prints what the keeper of a home has written down, if it is dropped because something failed.
pub(super) struct LogIfFailed(pub(super) PathBuf);

impl Drop for LogIfFailed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.0.join("rethread/keeper/log.jsonl")).unwrap_or_default();
            eprintln!("{}:\n{log}", self.0.display());
        }
    }
}

/// A program that is the agent of machines without Claude Code, and notes when it runs twice at once for one session.
pub(super) fn agent(folder: &Path) -> PathBuf {
    let (path, program, folder) =
        (folder.join("agent"), env!("CARGO_BIN_EXE_rethread"), folder.to_str().unwrap());
    let script = format!(
        r#"#!/bin/sh
for word in "$@"; do
  case "$before" in --session-id|--resume) id="$word";; esac
  case "$word" in --session-id=*|--resume=*) id="${{word#*=}}";; esac
  before="$word"
done
if [ -n "$id" ]; then
  exec 9>>"{folder}/driving-$id"
  flock -n 9 || echo "$id" >> "{folder}/driven-twice"
fi
exec "{program}" __demo_agent "$@"
"#
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

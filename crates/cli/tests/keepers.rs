//! Many keepers on one store: each on a machine of its own, with files of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rethread_keeper::{Attention, AttentionState, Client, Error};
use rethread_testkit::{Home as RealHome, PROBE, Postgres, Prompt, cannot};
use serde_json::{Value, json};

/// A machine with a keeper: what Claude Code has there is its own, the store is everybody's.
struct Machine {
    home: PathBuf,
    claude: PathBuf,
    agent: PathBuf,
    store: String,
    environment: Vec<(String, String)>,
    keeper: Mutex<Option<Child>>,
}

impl Machine {
    fn new(home: &Path, claude: PathBuf, agent: PathBuf, store: &str) -> Self {
        let (home, store) = (home.to_owned(), store.to_owned());
        fs::create_dir_all(claude.join("projects")).unwrap();
        Self { home, claude, agent, store, environment: Vec::new(), keeper: Mutex::default() }
    }

    /// One with the real CLI.
    fn real(home: &RealHome, store: &str) -> Self {
        let mut machine = Self::new(home.path(), home.config(), home.program().path.clone(), store);
        let tmp = home.path().join("tmp").to_str().unwrap().to_owned();
        let pairs = [
            ("CLAUDE_CODE_TMPDIR", tmp),
            ("ANTHROPIC_API_KEY", "sk-ant-dummy".into()),
            ("ANTHROPIC_BASE_URL", home.api().url()),
        ];
        let switches = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "IS_SANDBOX",
            "CLAUDE_CODE_MAX_RETRIES",
        ];
        let pairs = pairs.into_iter().chain(switches.map(|switch| (switch, "1".to_owned())));
        machine.environment = pairs.map(|(name, value)| (name.to_owned(), value)).collect();
        machine
    }

    fn start(&self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
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
    fn kill(&self) {
        if let Some(mut keeper) = self.keeper.lock().unwrap().take() {
            drop(keeper.kill());
            drop(keeper.wait());
        }
    }

    fn ask<T>(
        &self,
        work: impl AsyncFnOnce(Client) -> rethread_keeper::Result<T>,
    ) -> rethread_keeper::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Client::new(&self.home.join("rethread/keeper"));
        runtime.block_on(work(client))
    }

    fn get(&self, path: &str) -> rethread_keeper::Result<Value> {
        self.ask(async |client| client.get(path).await)
    }

    fn post(&self, path: &str, body: &Value) -> rethread_keeper::Result<Value> {
        self.ask(async |client| client.post(path, body).await)
    }

    fn begin(&self, cwd: &Path, prompt: &str) -> String {
        let card = self.post("/sessions", &json!({ "cwd": cwd, "prompt": prompt })).unwrap();
        card["session_id"].as_str().unwrap().to_owned()
    }

    fn send(&self, session: &str, text: &str) -> rethread_keeper::Result<Value> {
        let id = format!("{:08x}-3333-4333-8333-{:012x}", fastrand::u32(..), fastrand::u64(..) >> 16);
        let parts = json!([{ "type": "text", "text": text }]);
        let body = json!({ "client_message_id": id, "mode": "start", "parts": parts });
        self.post(&format!("/sessions/{session}/turns"), &body)
    }

    fn requests(&self) -> Vec<Attention> {
        let page = self.get("/attention").unwrap();
        serde_json::from_value(page["items"].clone()).unwrap()
    }

    fn decide(&self, attention: &Attention, decision: &str) -> rethread_keeper::Result<Value> {
        let body = json!({ "decision": decision, "shown_digest": attention.digest });
        self.post(&format!("/attention/{}/decision", attention.shown.id), &body)
    }

    fn state(&self, session: &str) -> Option<String> {
        let card = self.get(&format!("/sessions/{session}")).ok()?;
        card["state"].as_str().map(str::to_owned)
    }

    /// The conversation, by the ids of its messages.
    fn said(&self, session: &str) -> Vec<String> {
        let Ok(page) = self.get(&format!("/sessions/{session}/messages?limit=500")) else {
            return Vec::new();
        };
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["uuid"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.home.join("rethread/keeper/log.jsonl")).unwrap_or_default();
            eprintln!("{}:\n{log}", self.home.display());
        }
    }
}

#[track_caller]
fn until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    // Long, for machines that have a lot to do: only a test that fails waits to its end.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        if let Some(found) = is() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never came to be: {what}")
}

fn refusal(answer: rethread_keeper::Result<Value>) -> String {
    match answer {
        Err(Error::Refused(problem)) => problem.code.to_string(),
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_session_is_seen_approved_and_gone_on_with_through_any_keeper_of_the_store() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let (Some(here), Some(there)) = (RealHome::new(), RealHome::new()) else {
        return cannot("Claude Code cannot be installed");
    };
    let store = postgres.fresh();
    let (one, other) = (Machine::real(&here, &store), Machine::real(&there, &store));
    one.start();
    other.start();
    let project = here.project().canonicalize().unwrap();
    let file = project.join("made.txt");
    let make = Prompt::new("Make it.").calls("Write", json!({ "file_path": file, "content": "made\n" }));
    let id = one.begin(&project, &make.says("It is made.").to_string());

    // Seen there while it waits, and decided there.
    let request = until("the other keeper shows the request", || {
        other.requests().into_iter().find(|it| it.state == AttentionState::Pending)
    });
    assert_eq!((request.shown.session_id.as_str(), request.shown.tool_name.as_str()), (id.as_str(), "Write"));
    until("and the session that waits", || (other.state(&id)? == "waiting").then_some(()));
    assert!(!file.try_exists().unwrap());
    let forged = Attention { digest: "0".repeat(64), ..request.clone() };
    assert_eq!(refusal(other.decide(&forged, "allow")), "not-what-was-shown");
    let decided = other.decide(&request, "allow").unwrap();
    assert_eq!(decided["state"], "allowed");
    assert!(decided["decided_by"].as_str().unwrap().contains(" at "), "{decided}");
    assert_eq!(refusal(one.decide(&request, "deny")), "already-decided");
    assert_eq!(refusal(other.decide(&request, "deny")), "already-decided");
    until("it is made", || fs::read_to_string(&file).ok().filter(|text| text == "made\n"));
    until("the turn ends", || (one.state(&id)? == "idle").then_some(()));
    until("both show the same", || {
        let said = one.said(&id);
        (said.len() >= 4 && said == other.said(&id)).then_some(())
    });
    let listed = other.get("/sessions").unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["items"][0]["home"], "stored");
    assert_eq!(one.get("/sessions").unwrap()["items"].as_array().unwrap().len(), 1);

    // As long as it is driven here it is not driven there. When its keeper dies it is, with all that was said.
    assert_eq!(refusal(other.send(&id, "x")), "held");
    one.kill();
    other.send(&id, &Prompt::new("Go on.").says("I went on.").to_string()).unwrap();
    until("the turn ends there", || (other.state(&id)? == "idle").then_some(()));
    let said = other.said(&id);
    assert!(said.len() >= 6, "{said:?}");
    let sent = serde_json::to_string(&there.claude().messages_on_resume(&id, PROBE)).unwrap();
    for part in ["Make it.", "It is made.", "I went on."] {
        assert!(sent.contains(part), "{part} is not in {sent}");
    }

    // And back, where the transcript is behind by now.
    one.start();
    other
        .ask(async |client| {
            client.post::<Value>(&format!("/sessions/{id}/lease"), &json!({ "action": "release" })).await
        })
        .unwrap();
    until("it goes on where it was begun", || {
        one.send(&id, &Prompt::new("Back.").says("I am back.").to_string()).ok()
    });
    until("the turn ends here", || (one.state(&id)? == "idle").then_some(()));
    let back = one.said(&id);
    assert!(back.starts_with(&said) && back.len() >= said.len() + 2, "{said:?} {back:?}");
    assert_eq!(back.iter().collect::<HashSet<_>>().len(), back.len());
    until("and is seen there", || {
        let stored = other.said(&format!("stored:{id}"));
        (stored == back).then_some(())
    });
}

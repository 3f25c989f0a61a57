//! Many keepers on one store: each on a machine of its own, with files of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what a keeper of a failed test says, and how to repeat it")]

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
use rethread_testkit::{Home as RealHome, PROBE, Postgres, Prompt, S3, cannot};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A store that machines share, and what their environment has to say about it.
#[derive(Clone, Default)]
struct Place {
    store: String,
    environment: Vec<(String, String)>,
}

impl Place {
    fn postgres(server: &Postgres) -> Self {
        Self { store: server.fresh(), ..Self::default() }
    }

    fn s3(server: &S3) -> Self {
        let store = format!("s3://{}/team", server.bucket());
        Self { store, environment: server.way().variables() }
    }

    /// The same, encrypted with a key that every machine has.
    fn encrypted(self, folder: &Path) -> Self {
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
struct Machine {
    home: PathBuf,
    claude: PathBuf,
    agent: PathBuf,
    store: String,
    environment: Vec<(String, String)>,
    keeper: Mutex<Option<Child>>,
}

impl Machine {
    fn new(home: &Path, claude: PathBuf, agent: PathBuf, place: &Place) -> Self {
        let Place { store, environment } = place.clone();
        fs::create_dir_all(claude.join("projects")).unwrap();
        Self { home: home.to_owned(), claude, agent, store, environment, keeper: Mutex::default() }
    }

    /// One with the real CLI.
    fn real(home: &RealHome, place: &Place) -> Self {
        let mut machine = Self::new(home.path(), home.config(), home.program().path.clone(), place);
        let said =
            |(name, value): (&str, std::ffi::OsString)| (name.to_owned(), value.into_string().unwrap());
        machine.environment.extend(home.environment().into_iter().map(said));
        machine
    }

    fn start(&self) {
        self.start_by(Command::new(env!("CARGO_BIN_EXE_rethread")));
    }

    /// Starts it on what others take for another host, where they cannot tell whether a process lives.
    fn start_on(&self, host: &str) {
        let mut command = Command::new("unshare");
        let rename = "hostname \"$0\" && exec \"$@\"";
        command.args(["--uts", "sh", "-c", rename, host, env!("CARGO_BIN_EXE_rethread")]);
        self.start_by(command);
    }

    fn start_by(&self, mut command: Command) {
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

    fn signal(&self, signal: Signal) {
        let keeper = self.keeper.lock().unwrap();
        kill_process(Pid::from_child(keeper.as_ref().unwrap()), signal).unwrap();
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
    while begun.elapsed() < Duration::from_secs(180) {
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
    goes_on_through_any_keeper(&Place::postgres(postgres));
}

#[test]
fn a_session_in_an_encrypted_database_goes_on_through_any_keeper_that_has_the_key() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let folder = tempfile::tempdir().unwrap();
    goes_on_through_any_keeper(&Place::postgres(postgres).encrypted(folder.path()));
}

#[test]
fn a_session_in_s3_goes_on_through_any_keeper_although_nobody_gives_hints() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    goes_on_through_any_keeper(&Place::s3(server));
}

/// A session is begun through one keeper, approved through another, and goes on there when the first one dies.
fn goes_on_through_any_keeper(place: &Place) {
    let (Some(here), Some(there)) = (RealHome::new(), RealHome::new()) else {
        return cannot("Claude Code cannot be installed");
    };
    let (one, other) = (Machine::real(&here, place), Machine::real(&there, place));
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
    let card = other.get(&format!("/sessions/{id}")).unwrap();
    assert!(card["state"] == "elsewhere" && card["driver_host"].is_string(), "{card}");
    one.kill();
    until("the other keeper knows that it is free", || (other.state(&id)? == "idle").then_some(()));
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
    until("and is seen there", || (other.said(&id) == back).then_some(()));
}

#[test]
fn whoever_takes_over_from_a_keeper_that_lives_waits_until_the_agent_there_has_ended() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::postgres(postgres));
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = two_machines(&folder, &place);
    let id = one.begin(&project(&folder, 0), "Begin.");
    // In the middle of a turn, which waits for somebody.
    let asked = until("somebody is asked", || other.requests().into_iter().next());
    let taken = other.post(&format!("/sessions/{id}/lease"), &json!({ "action": "take_over" })).unwrap();
    assert_eq!(taken["ours"], true);
    other.send(&id, "Go on.").unwrap();
    assert_eq!(fs::read_to_string(folder.join("driven-twice")).unwrap_or_default(), "");
    let again = until("it asks again there", || {
        other.requests().into_iter().find(|it| it.state == AttentionState::Pending)
    });
    assert_ne!(again.shown.id, asked.shown.id);
    until("what was asked before is over", || {
        let is_over = |it: &Attention| it.shown.id == asked.shown.id && it.state != AttentionState::Pending;
        one.requests().iter().any(is_over).then_some(())
    });
    // And the former driver shows it, and can decide what the new one asks.
    until("it is driven elsewhere", || (one.state(&id)? == "waiting").then_some(()));
    let again = until("it is seen where it was", || {
        one.requests().into_iter().find(|it| it.shown.id == again.shown.id)
    });
    assert_eq!(one.decide(&again, "deny").unwrap()["state"], "denied");
    assert_eq!(fs::read_to_string(folder.join("driven-twice")).unwrap_or_default(), "");
}

#[test]
fn a_keeper_that_froze_on_another_host_is_followed_once_its_lease_lapsed_and_does_nothing_when_it_thaws() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    frozen_on_another_host(&Place::postgres(postgres));
}

#[test]
fn a_keeper_that_froze_on_another_host_does_nothing_to_what_is_in_s3_when_it_thaws() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    frozen_on_another_host(&Place::s3(server));
}

fn frozen_on_another_host(place: &Place) {
    let apart = Command::new("unshare").args(["--uts", "hostname", "elsewhere"]).output();
    if !apart.is_ok_and(|ended| ended.status.success()) {
        return cannot("no other host can be made up here: that needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = ["one", "other"].map(|name| {
        let home = folder.join(name);
        fs::create_dir_all(&home).unwrap();
        Machine::new(&home, home.join("claude"), agent(&home), place)
    });
    one.start_on("elsewhere");
    other.start();
    let project = project(&folder, 0);
    let id = one.begin(&project, "Begin.");
    let asked = until("somebody is asked", || other.requests().into_iter().next());
    let before = contents(&project);
    one.signal(Signal::STOP);
    let frozen = Instant::now();

    // It may be alive: nobody drives in its place, and nobody decides.
    assert_eq!(refusal(other.send(&id, "Go on.")), "held");
    let undecided = other.decide(&asked, "allow");
    assert!(undecided.is_err(), "{undecided:?}");
    let lease = format!("/sessions/{id}/lease");
    until("its lease lapses", || other.post(&lease, &json!({ "action": "acquire" })).ok());
    assert!(frozen.elapsed() > Duration::from_secs(20), "after {:?}", frozen.elapsed());

    // It thaws with a decision before it that counted a moment ago.
    one.signal(Signal::CONT);
    until("it knows that it drives no more", || {
        let is_over = |it: &Attention| it.shown.id == asked.shown.id && it.state != AttentionState::Pending;
        one.requests().iter().any(is_over).then_some(())
    });
    assert!(one.decide(&asked, "allow").is_err());
    assert_eq!(contents(&project), before);
    until("it goes on there", || other.send(&id, "Go on.").ok());
    until("it asks there", || {
        let is_new = |it: &Attention| it.state == AttentionState::Pending && it.shown.id != asked.shown.id;
        other.requests().into_iter().find(is_new)
    });
    until("everything comes to an end there", || {
        for attention in other.requests().iter().filter(|it| it.state == AttentionState::Pending) {
            drop(other.decide(attention, "deny"));
        }
        (other.state(&id)? == "idle").then_some(())
    });
    let said = until("both show the same", || {
        let said = other.said(&id);
        (one.said(&id) == said).then_some(said)
    });
    assert_eq!(said.iter().collect::<HashSet<_>>().len(), said.len(), "{said:?}");
    // What was allowed while it was frozen, and denied where it was asked again, was not done.
    assert_eq!(contents(&project), before);
}

/// Returns the files of a folder, and what they hold.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// A program that is the agent of machines without Claude Code, and notes when it runs twice at once for one session.
fn agent(folder: &Path) -> PathBuf {
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

/// Two machines with such an agent, and a keeper on each.
fn two_machines(folder: &Path, place: &Place) -> [Machine; 2] {
    let agent = agent(folder);
    ["one", "other"].map(|name| {
        let home = folder.join(name);
        fs::create_dir_all(&home).unwrap();
        let machine = Machine::new(&home, home.join("claude"), agent.clone(), place);
        machine.start();
        machine
    })
}

/// A directory that is on both.
fn project(folder: &Path, number: usize) -> PathBuf {
    let project = folder.join(format!("project-{number}"));
    fs::create_dir_all(&project).unwrap();
    project
}

/// Somebody who looks at everything a keeper shows, for as long as it is there and when it is there again.
#[derive(Default)]
struct Watcher {
    /// What is known to have been said, by session.
    said: BTreeMap<String, Vec<String>>,
    /// How often each message was told as final since the last look at the whole, by keeper's life.
    told: HashMap<(String, String, String), usize>,
    epoch: String,
    after: Option<String>,
}

impl Watcher {
    /// Hears what is new; reads everything where that is not told any more.
    fn look(&mut self, machine: &Machine) {
        let after = self.after.clone().map(|after| format!("&after={after}")).unwrap_or_default();
        let Ok(page) = machine.get(&format!("/events?topics=all&wait=1{after}")) else {
            std::thread::sleep(Duration::from_millis(50));
            return;
        };
        let is_first = self.after.is_none();
        self.after = page["after"].as_str().map(str::to_owned);
        if is_first || page["resync"] == true {
            self.epoch =
                self.after.as_deref().unwrap_or_default().split(':').next().unwrap_or_default().to_owned();
            return self.read_all(machine);
        }
        for event in page["items"].as_array().unwrap() {
            let (kind, data) = (event["type"].as_str().unwrap(), &event["data"]);
            let session =
                event["topic"].as_str().unwrap_or_default().trim_start_matches("session:").to_owned();
            let uuid = data["uuid"].as_str().unwrap_or_default().to_owned();
            match kind {
                "message.upsert" => {
                    let said = self.said.entry(session.clone()).or_default();
                    if !said.contains(&uuid) {
                        said.push(uuid.clone());
                    }
                    if data["provisional"] == false {
                        *self.told.entry((self.epoch.clone(), session, uuid)).or_default() += 1;
                    }
                }
                "message.dropped" => self.said.entry(session).or_default().retain(|known| *known != uuid),
                _ => {}
            }
        }
    }

    fn read_all(&mut self, machine: &Machine) {
        let Ok(listed) = machine.get("/sessions?limit=500") else {
            self.after = None;
            return;
        };
        self.said.clear();
        for card in listed["items"].as_array().unwrap() {
            let id = card["session_id"].as_str().unwrap();
            self.said.insert(id.to_owned(), machine.said(id));
        }
    }
}

#[test]
fn keepers_that_die_at_any_moment_lose_nothing_double_nothing_and_never_drive_a_session_twice() {
    let Some(postgres) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let seed = std::env::var("RETHREAD_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("RETHREAD_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::postgres(postgres));
    let folder = folder.path().canonicalize().unwrap();
    let machines = two_machines(&folder, &place).map(Arc::new);
    let is_over = Arc::new(AtomicBool::new(false));
    let watchers = machines.clone().map(|machine| {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let mut watcher = Watcher::default();
            while !is_over.load(Ordering::Acquire) {
                watcher.look(&machine);
            }
            // Whatever was told last is heard.
            for _ in 0..3 {
                watcher.look(&machine);
            }
            watcher
        })
    });
    let sessions: Vec<String> =
        (0..20).map(|number| machines[number % 2].begin(&project(&folder, number), "Begin.")).collect();
    // Somebody answers whatever is asked, through whichever keeper.
    let mut killed = 0;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        let machine = random.choice(&machines).unwrap();
        match random.u8(..100) {
            0..3 if killed < 6 => {
                killed += 1;
                machine.kill();
                std::thread::sleep(Duration::from_millis(random.u64(..1500)));
                machine.start();
            }
            0..20 => {
                // Refused where it is driven elsewhere, or busy.
                drop(machine.send(random.choice(&sessions).unwrap(), "Go on."));
            }
            _ => {
                let Ok(page) = machine.get("/attention?state=pending") else { continue };
                let pending: Vec<Attention> = serde_json::from_value(page["items"].clone()).unwrap();
                if let Some(attention) = random.choice(&pending) {
                    drop(machine.decide(attention, if random.bool() { "allow" } else { "deny" }));
                } else {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }
    assert!(killed > 0, "nobody was killed");
    // Whatever still waits is answered, until nothing is going on any more.
    until("everything comes to an end", || {
        for machine in &machines {
            for attention in machine.requests().iter().filter(|it| it.state == AttentionState::Pending) {
                drop(machine.decide(attention, "deny"));
            }
        }
        // One that is driven elsewhere does something there, or nothing.
        let is_quiet = |machine: &Arc<Machine>| {
            let listed = machine.get("/sessions?limit=500").unwrap();
            let items = listed["items"].as_array().unwrap();
            let busy = |it: &Value| matches!(it["state"].as_str(), Some("running" | "waiting"));
            items.len() == sessions.len() && !items.iter().any(busy)
        };
        machines.iter().all(is_quiet).then_some(())
    });
    let mut answered = 0;
    for session in &sessions {
        let said = until("both keepers show the same", || {
            let said = machines.each_ref().map(|machine| machine.said(session));
            (said[0] == said[1]).then(|| said[0].clone())
        });
        assert_eq!(said.iter().collect::<HashSet<_>>().len(), said.len(), "{session}: {said:?}");
        // An agent that dies with its keeper may have said nothing yet, and nobody need have sent it anything since.
        assert!(!said.is_empty(), "{session} lost its first prompt");
        answered += usize::from(said.len() >= 2);
    }
    assert!(answered > sessions.len() / 2, "only {answered} of {} were answered", sessions.len());
    std::thread::sleep(Duration::from_secs(4));
    is_over.store(true, Ordering::Release);
    for (watcher, machine) in watchers.into_iter().zip(&machines) {
        let watcher = watcher.join().unwrap();
        for session in &sessions {
            let mut known = watcher.said.get(session).cloned().unwrap_or_default();
            let mut said = machine.said(session);
            known.sort();
            said.sort();
            assert_eq!(known, said, "{} knows of {session} what it shows", machine.home.display());
        }
        let doubled: Vec<_> = watcher.told.iter().filter(|(_, times)| **times > 1).collect();
        assert!(doubled.is_empty(), "{} told twice: {doubled:?}", machine.home.display());
    }
    let twice = fs::read_to_string(folder.join("driven-twice")).unwrap_or_default();
    assert_eq!(twice, "", "these were driven twice at once");
}

#[test]
fn a_database_that_is_away_takes_nothing_from_what_is_driven_here_and_misses_nothing_of_it() {
    let Some(postgres) = Postgres::start(&[], &[]) else { return cannot("PostgreSQL is not installed") };
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::postgres(&postgres));
    let folder = folder.path().canonicalize().unwrap();
    let [one, other] = two_machines(&folder, &place);
    let id = one.begin(&project(&folder, 0), "Begin.");
    until("it is seen there", || (other.state(&id)? == "waiting").then_some(()));
    postgres.kill();
    // Whoever is asked here answers here, and the turn goes on to its end.
    until("the turn ends without the database", || {
        for attention in one.requests().iter().filter(|it| it.state == AttentionState::Pending) {
            one.decide(attention, "deny").unwrap();
        }
        let listed = one.get("/sessions").unwrap();
        (listed["items"][0]["state"] == "idle").then_some(())
    });
    let said = one.said(&id);
    assert!(said.len() >= 6, "{said:?}");
    assert_eq!(
        other.get("/sessions").unwrap()["items"].as_array().unwrap().len(),
        1,
        "what was known is shown"
    );
    postgres.restart();
    until("what was missed is seen there", || (other.said(&id) == said).then_some(()));
    until("and what it does", || (other.state(&id)? == "elsewhere").then_some(()));
}

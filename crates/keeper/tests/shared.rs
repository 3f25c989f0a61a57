//! Two keepers on one store that can be away, slow or damaged.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rethread_keeper::{Agent, Settings};
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, Position,
    Put, Space, Target,
};
use rethread_store::{
    BlobId, Entry, Error, Line, MemoryBackend, Metadata, NewSession, Options, Result, SessionId, Store,
};
use rethread_testkit::{Home, Prompt, cannot};
use serde_json::{Value, json};

use crate::driving::{environment, until_state, wait_for_request};
use crate::kit::{Answer, Kept, Socket};

/// How long a lease holds here.
const LEASE: Duration = Duration::from_secs(3);

/// A place that many machines share.
#[derive(Debug, Default)]
struct Shared {
    inner: MemoryBackend,
    is_away: AtomicBool,
    hangs: AtomicBool,
    /// A session that cannot be read.
    damaged: Mutex<Option<SessionId>>,
}

impl Shared {
    fn store(self: &Arc<Self>) -> Store {
        Store::on(Arc::clone(self) as Arc<dyn Backend>, Options::default())
    }

    fn reach(&self) -> Result<()> {
        while self.hangs.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let source = Arc::new(std::io::Error::other("nobody answers"));
        match self.is_away.load(Ordering::Acquire) {
            true => Err(Error::Backend { backend: "shared", action: "answer", source }),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Backend for Shared {
    fn capabilities(&self) -> Capabilities {
        Capabilities { across_hosts: true, ..self.inner.capabilities() }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        self.reach()?;
        self.inner.get(key).await
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        self.reach()?;
        self.inner.put(key, bytes, expect).await
    }

    async fn append(&self, log: &LogKey, at: Position, lines: &[Line], mode: Durability) -> Result<Append> {
        self.reach()?;
        self.inner.append(log, at, lines, mode).await
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        self.reach()?;
        let source = Arc::new(std::io::Error::other("it is damaged"));
        let is_damaged = self.damaged.lock().unwrap().as_ref() == Some(&log.session);
        match is_damaged {
            true => Err(Error::Backend { backend: "shared", action: "read from", source }),
            false => self.inner.read(log, from, max_bytes).await,
        }
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        self.reach()?;
        self.inner.put_blob(blob, content).await
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        self.reach()?;
        self.inner.get_blob(blob, range).await
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        self.reach()?;
        self.inner.list(space, after, limit).await
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        self.reach()?;
        self.inner.remove(target).await
    }
}

/// A machine with a keeper.
struct Machine {
    home: Home,
    kept: Kept,
}

impl Machine {
    fn new(shared: &Arc<Shared>) -> Option<Self> {
        let Some(home) = Home::new() else {
            cannot("Claude Code cannot be installed");
            return None;
        };
        let mut settings = Settings::new(home.path().join("keeper"), shared.store());
        settings.listen = "127.0.0.1:0".parse().unwrap();
        settings.claude_folder = Some(home.config());
        let program = slow(&home);
        settings.agent = Some(Agent { program, environment: environment(&home) });
        settings.lease = LEASE;
        let kept = Kept::start(settings);
        Some(Self { home, kept })
    }

    /// Has agents take their time to start.
    fn slow_down(&self) {
        fs::write(self.home.path().join("slowly"), "").unwrap();
    }

    fn begin(&self, prompt: &Prompt) -> String {
        let cwd = self.home.project().canonicalize().unwrap();
        let created = self.kept.post("/sessions", json!({ "cwd": cwd, "prompt": prompt.to_string() }));
        created.good()["session_id"].as_str().unwrap().to_owned()
    }

    fn send(&self, session: &str, prompt: &Prompt) -> Answer {
        let id = format!("{:08x}-4444-4444-8444-{:012x}", fastrand::u32(..), fastrand::u64(..) >> 16);
        let parts = json!([{ "type": "text", "text": prompt.to_string() }]);
        let turn = json!({ "client_message_id": id, "mode": "start", "parts": parts });
        self.kept.post(&format!("/sessions/{session}/turns"), turn)
    }

    fn lease(&self, session: &str, action: &str) {
        self.kept.post(&format!("/sessions/{session}/lease"), json!({ "action": action })).good();
    }

    fn said(&self, session: &str) -> Vec<String> {
        let page = self.kept.get(&format!("/sessions/{session}/messages?limit=500")).good();
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["uuid"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn listed(&self) -> usize {
        self.kept.get("/sessions").good()["items"].as_array().unwrap().len()
    }

    fn pending(&self) -> usize {
        self.kept.get("/attention?state=pending").good()["items"].as_array().unwrap().len()
    }
}

/// The CLI, which takes seconds to start when a file says so.
fn slow(home: &Home) -> PathBuf {
    let (path, flag) = (home.path().join("agent"), home.path().join("slowly"));
    let program = home.program().path.display();
    let script = format!("#!/bin/sh\n[ -e '{}' ] && sleep 4\nexec '{program}' \"$@\"\n", flag.display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn asks(home: &Home) -> Prompt {
    let file = home.project().join("made.txt");
    Prompt::new("Make it.").calls("Write", json!({ "file_path": file, "content": "made" })).says("Made.")
}

fn says(text: &str) -> Prompt {
    Prompt::new(text).says(format!("{text} indeed"))
}

fn code(answer: &Answer) -> Value {
    answer.json()["code"].clone()
}

#[test]
fn a_keeper_that_the_store_hears_nothing_of_ends_its_agent_before_others_may_begin_one() {
    let shared: Arc<Shared> = Arc::default();
    let (Some(one), Some(other)) = (Machine::new(&shared), Machine::new(&shared)) else { return };
    let id = one.begin(&says("First."));
    until_state(&one.kept, &id, "idle");
    one.send(&id, &asks(&one.home)).good();
    wait_for_request(&one.kept);
    other.kept.until("the other keeper sees it", || (other.pending() == 1).then_some(()));
    shared.is_away.store(true, Ordering::Release);
    one.kept.until("nobody is asked any more", || (one.pending() == 0).then_some(()));
    one.kept.until("nothing is driven that nobody holds", || {
        let answer = one.send(&id, &says("Now."));
        assert_ne!(answer.status, 202);
        (code(&answer) == "failed").then_some(())
    });
    shared.is_away.store(false, Ordering::Release);
    // What was said meanwhile is told when the store is there again, and whoever goes on has it.
    let said = one.said(&id);
    other.kept.until("the store has all of it", || (other.said(&id) == said).then_some(()));
    other.kept.until("it goes on there", || (other.send(&id, &says("On.")).status == 202).then_some(()));
    until_state(&other.kept, &id, "idle");
    assert!(other.said(&id).starts_with(&said));
}

#[test]
fn a_lease_that_lapsed_while_no_agent_ran_is_renewed_before_one_does() {
    let shared: Arc<Shared> = Arc::default();
    let (Some(one), Some(other)) = (Machine::new(&shared), Machine::new(&shared)) else { return };
    let id = one.begin(&says("First."));
    until_state(&one.kept, &id, "idle");
    one.lease(&id, "release");
    one.lease(&id, "acquire");
    other.kept.until("it is seen there", || (other.listed() == 1).then_some(()));
    assert_eq!(code(&other.send(&id, &says("Mine."))), "held");
    std::thread::sleep(LEASE + Duration::from_millis(200));
    one.slow_down();
    std::thread::scope(|scope| {
        scope.spawn(|| one.send(&id, &says("Second.")).good());
        std::thread::sleep(Duration::from_secs(1));
        let answer = other.send(&id, &says("Mine."));
        assert_eq!(code(&answer), "held", "two agents at once");
    });
}

#[test]
fn a_session_that_cannot_be_read_hides_no_other() {
    let shared: Arc<Shared> = Arc::default();
    let store = shared.store();
    let entry = |number: usize| {
        let line = json!({ "type": "user", "uuid": format!("u{number}"), "message": { "content": "x" } });
        Entry::parse(line.to_string()).unwrap()
    };
    let sessions = ["a-damaged", "b-fine"].map(|id| {
        let new = NewSession::at("/tmp").id(id.parse().unwrap());
        pollster::block_on(store.create(new)).unwrap()
    });
    let Some(machine) = Machine::new(&shared) else { return };
    let add = |number: usize| {
        for session in &sessions {
            pollster::block_on(async { session.append(entry(number)).await.unwrap().await }).unwrap();
        }
    };
    add(1);
    assert_eq!((machine.said("a-damaged").len(), machine.said("b-fine").len()), (1, 1));
    let mut socket = Socket::open(&machine.kept);
    socket.subscribe("session:b-fine", None);
    socket.until("caught_up");
    add(2);
    *shared.damaged.lock().unwrap() = Some(sessions[0].id().clone());
    assert_eq!(socket.until("message.upsert").1["data"]["uuid"], "u2");
}

/// A client was told twice that a request was lost: once when its keeper had died, and again when a second one that went on
/// with the session spoke of it, whose first words had been about nothing.
#[test]
fn that_a_request_is_over_is_told_once_however_many_go_on_with_its_session_and_speak_of_it() {
    let shared: Arc<Shared> = Arc::default();
    let new = NewSession::at("/tmp").id("asked".parse().unwrap());
    let session = pollster::block_on(shared.store().create(new)).unwrap();
    let Some(machine) = Machine::new(&shared) else { return };
    let mut socket = Socket::open(&machine.kept);
    socket.subscribe("session:asked", None);
    socket.until("caught_up");
    let mut told = Vec::new();
    let mut hear = |keeper: &str, requests: &[(&str, &str)]| {
        let requests: Vec<Value> = requests.iter().map(|(id, state)| request(id, state)).collect();
        let driven = json!({
            "keeper": keeper, "place": "elsewhere", "host": "h", "state": "waiting", "attention": requests,
        });
        // With a message, so that one can see when it was heard.
        let uuid = format!("{keeper}-{}", told.len());
        let line = json!({ "type": "user", "uuid": uuid, "message": { "content": "x" } });
        let says =
            move |metadata: &mut Metadata| drop(metadata.extra.insert("driven".into(), driven.clone()));
        let entry = Entry::parse(line.to_string()).unwrap();
        let ticket = pollster::block_on(session.append_and_save(entry, says)).unwrap();
        ticket.wait().unwrap();
        let (before, last) = socket.until("message.upsert");
        assert_eq!(last["data"]["uuid"], uuid);
        let kinds = before.iter().filter_map(|event| event["type"].as_str());
        told.push(kinds.filter(|kind| kind.starts_with("attention.")).map(str::to_owned).collect::<Vec<_>>());
    };
    hear("a", &[("x", "pending")]);
    hear("b", &[]);
    hear("b", &[("x", "lost")]);
    hear("c", &[]);
    hear("a", &[("x", "lost")]);
    // What is asked is told behind what is said: the last of these only shows that nothing comes behind the one before it.
    hear("a", &[("x", "lost"), ("y", "pending")]);
    hear("a", &[("x", "lost"), ("y", "pending")]);
    let heard: Vec<&str> = told.iter().flatten().map(String::as_str).collect();
    assert_eq!(heard, ["attention.requested", "attention.lost", "attention.requested"], "{told:?}");
}

/// Returns a request as a keeper speaks of it.
fn request(id: &str, state: &str) -> Value {
    let now = jiff::Timestamp::now();
    json!({
        "shown": { "id": id, "session_id": "asked", "cwd": "/tmp", "tool_name": "Bash", "input": {} },
        "digest": "", "state": state, "tool_use_id": id, "requested_at": now,
        "decided_at": (state != "pending").then_some(now), "hidden_characters": false, "suggestions": [],
    })
}

#[test]
fn a_native_session_is_read_while_the_store_hangs() {
    let shared: Arc<Shared> = Arc::default();
    let Some(machine) = Machine::new(&shared) else { return };
    let id = machine.begin(&says("First."));
    until_state(&machine.kept, &id, "idle");
    machine.lease(&id, "release");
    machine.kept.until("it is written down", || (machine.said(&id).len() >= 2).then_some(()));
    shared.hangs.store(true, Ordering::Release);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(20));
            shared.hangs.store(false, Ordering::Release);
        });
        assert!(machine.said(&id).len() >= 2);
        assert!(shared.hangs.swap(false, Ordering::AcqRel), "it waited for the store");
    });
}

#[test]
fn a_session_that_is_thrown_away_asks_nobody_is_not_replaced_by_its_copy_and_comes_back_whole() {
    let shared: Arc<Shared> = Arc::default();
    let (Some(one), Some(other)) = (Machine::new(&shared), Machine::new(&shared)) else { return };
    let id = one.begin(&asks(&one.home));
    let pending = |count: usize| {
        other.kept.until("the other keeper hears of it", || (other.pending() == count).then_some(()));
    };
    pending(1);
    // Not while somebody drives it, wherever that is.
    assert_eq!(code(&other.kept.delete(&format!("/sessions/{id}"))), "in-use");
    // Whoever does it nevertheless, at the store itself, is not asked about it any more.
    pollster::block_on(shared.store().delete(&id.parse().unwrap())).unwrap();
    pending(0);
    one.lease(&id, "release");
    one.send(&id, &says("Again.")).good();
    until_state(&one.kept, &id, "idle");
    one.lease(&id, "release");
    other.kept.until("it is there again", || (other.listed() == 1).then_some(()));

    one.kept.delete(&format!("/sessions/{id}")).good();
    assert_eq!(one.listed(), 0);
    other.kept.until("it is gone everywhere", || (other.listed() == 0).then_some(()));
    one.kept.post(&format!("/sessions/{id}/restore"), json!({})).good();
    assert_eq!(one.listed(), 1);
    other.kept.until("and back everywhere", || (other.listed() == 1).then_some(()));
}

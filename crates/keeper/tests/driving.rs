//! Sessions driven with the real CLI against a scripted API.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rethread_keeper::{Agent, Settings};
use rethread_store::{FileBackend, Options, Store};
use rethread_testkit::{Home, Prompt, Reply, cannot};
use serde_json::{Value, json};

use crate::kit::{Kept, Socket};

/// A person's home with the real CLI in it, and a keeper.
pub(crate) struct Desk {
    home: Home,
    settings: Settings,
}

impl Desk {
    pub(crate) fn new() -> Option<Self> {
        let Some(home) = Home::new() else {
            cannot("Claude Code cannot be installed");
            return None;
        };
        let settings = Self::settings(&home);
        Some(Self { home, settings })
    }

    fn settings(home: &Home) -> Settings {
        let store = Store::new(FileBackend::new(home.path().join("store")), Options::default());
        let mut settings = Settings::new(home.path().join("keeper"), store);
        settings.listen = "127.0.0.1:0".parse().unwrap();
        settings.claude_folder = Some(home.config());
        settings.agent = Some(Agent { program: home.program().path.clone(), environment: environment(home) });
        settings
    }

    pub(crate) fn keeper(&self) -> Kept {
        let mut settings = Self::settings(&self.home);
        settings.idle = self.settings.idle;
        Kept::start(settings)
    }

    /// A file of its own, whose being there lets a reply come.
    pub(crate) fn gate(&self) -> PathBuf {
        self.home.path().join(format!("gate-{}", new_id()))
    }

    /// How often the model was asked.
    pub(crate) fn requests(&self) -> usize {
        self.home.api().requests().len()
    }

    /// Starts a keeper that is otherwise set up.
    pub(crate) fn keeper_with(&self, change: impl FnOnce(&mut Settings)) -> Kept {
        let mut settings = Self::settings(&self.home);
        change(&mut settings);
        Kept::start(settings)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.home.project().canonicalize().unwrap()
    }

    pub(crate) fn transcript(&self, session: &str) -> PathBuf {
        self.home.transcript(session)
    }
}

pub(crate) fn environment(home: &Home) -> Vec<(String, String)> {
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    let mut all = vec![
        ("HOME".into(), path(home.path().into())),
        ("CLAUDE_CONFIG_DIR".into(), path(home.config())),
        ("CLAUDE_CODE_TMPDIR".into(), path(home.path().join("tmp"))),
        ("ANTHROPIC_API_KEY".into(), "sk-ant-dummy".into()),
        ("ANTHROPIC_BASE_URL".into(), home.api().url()),
    ];
    for switch in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "IS_SANDBOX",
        "CLAUDE_CODE_MAX_RETRIES",
    ] {
        all.push((switch.into(), "1".into()));
    }
    all
}

pub(crate) fn new_id() -> String {
    format!("{:08x}-2222-4222-8222-{:012x}", fastrand::u32(..), fastrand::u64(..) >> 16)
}

pub(crate) fn turn(kept: &Kept, session: &str, prompt: &Prompt, mode: &str) -> (String, Value) {
    let id = new_id();
    let body = json!({
        "client_message_id": id, "mode": mode, "parts": [{ "type": "text", "text": prompt.to_string() }],
    });
    let answer = kept.post(&format!("/sessions/{session}/turns"), body);
    assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(&answer.body));
    (id, answer.json())
}

pub(crate) fn create(kept: &Kept, desk: &Desk, prompt: &Prompt) -> String {
    let body = json!({ "cwd": desk.project(), "prompt": prompt.to_string(), "name": "A try" });
    let created = kept.post("/sessions", body);
    assert_eq!(created.status, 201, "{}", String::from_utf8_lossy(&created.body));
    let id = created.json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(created.header("location"), Some(format!("/api/v1/sessions/{id}").as_str()));
    id
}

pub(crate) fn state(kept: &Kept, session: &str) -> String {
    kept.get(&format!("/sessions/{session}")).good()["state"].as_str().unwrap().to_owned()
}

#[track_caller]
pub(crate) fn until_state(kept: &Kept, session: &str, wanted: &str) {
    let seen = RefCell::new(String::new());
    kept.until_or(
        || format!("{session} is {wanted}, and not {}", seen.borrow()),
        || {
            seen.replace(state(kept, session));
            (*seen.borrow() == wanted).then_some(())
        },
    );
}

pub(crate) fn pending(kept: &Kept) -> Vec<Value> {
    kept.get("/attention?state=pending").good()["items"].as_array().unwrap().clone()
}

#[track_caller]
pub(crate) fn wait_for_request(kept: &Kept) -> Value {
    kept.until("somebody is asked", || pending(kept).first().cloned())
}

pub(crate) fn decide(kept: &Kept, request: &Value, decision: &str) -> crate::kit::Answer {
    let id = request["shown"]["id"].as_str().unwrap();
    let body = json!({ "decision": decision, "shown_digest": request["digest"] });
    kept.post(&format!("/attention/{id}/decision"), body)
}

/// Returns what was said, once all of it is on disk: the agent may write it down after it has said it.
pub(crate) fn texts(kept: &Kept, session: &str) -> Vec<String> {
    let items = kept.until("all that was said is written down", || {
        let page = kept.get(&format!("/sessions/{session}/messages?limit=500")).good();
        let items = page["items"].as_array().unwrap().clone();
        let is_written = !items.is_empty() && items.iter().all(|item| item["provisional"] == false);
        is_written.then_some(items)
    });
    items.iter().map(|item| item["content"].to_string()).collect()
}

#[test]
fn a_session_is_created_streamed_and_the_same_on_disk() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    socket.until("caught_up");
    let id = create(&kept, &desk, &Prompt::new("Say hello.").says("Hello from the model."));
    let (before, _) = socket.until("turn.completed");
    let kinds: Vec<&str> = before.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"session.created") && kinds.contains(&"turn.started"), "{kinds:?}");
    assert!(kinds.contains(&"message.delta") && kinds.contains(&"message.upsert"), "{kinds:?}");
    assert!(
        before.iter().filter(|frame| frame["type"] == "message.delta").all(|frame| frame["seq"].is_null())
    );
    until_state(&kept, &id, "idle");
    let card = kept.get(&format!("/sessions/{id}")).good();
    assert_eq!(card["name"], "A try");
    kept.until("all of it is on disk", || {
        let page = kept.get(&format!("/sessions/{id}/messages")).good();
        let items = page["items"].as_array().unwrap().clone();
        (items.len() == 2 && items.iter().all(|item| item["provisional"] == false)).then_some(())
    });
    assert!(texts(&kept, &id)[1].contains("Hello from the model."));
    // A client that only followed the stream knows the same messages by the same ids.
    let page = kept.get(&format!("/sessions/{id}/messages")).good();
    let on_disk: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["uuid"].as_str().unwrap()).collect();
    let streamed: std::collections::BTreeSet<&str> = before
        .iter()
        .filter(|frame| frame["type"] == "message.upsert")
        .map(|frame| frame["data"]["uuid"].as_str().unwrap())
        .collect();
    assert!(streamed.iter().all(|uuid| on_disk.contains(uuid)), "{streamed:?} {on_disk:?}");
}

#[test]
fn a_tool_runs_when_it_is_allowed_and_not_when_it_is_denied() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let path = desk.project().join("new.txt");
    let write = |text: &str| {
        let input = json!({ "file_path": path, "content": text });
        Prompt::new("Write a file.").calls("Write", input).says("Done.")
    };
    let id = create(&kept, &desk, &write("denied"));
    let request = wait_for_request(&kept);
    assert_eq!(
        (&request["shown"]["tool_name"], &request["shown"]["session_id"]),
        (&json!("Write"), &json!(id))
    );
    until_state(&kept, &id, "waiting");
    // A forged one, and one of something else.
    let forged = json!({ "decision": "allow", "shown_digest": "0".repeat(64) });
    let answer =
        kept.post(&format!("/attention/{}/decision", request["shown"]["id"].as_str().unwrap()), forged);
    assert_eq!((answer.status, answer.json()["code"].as_str()), (409, Some("not-what-was-shown")));
    assert_eq!(
        kept.post("/attention/nobody/decision", json!({ "decision": "allow", "shown_digest": "" })).status,
        404
    );
    assert_eq!(decide(&kept, &request, "deny").good()["state"], "denied");
    until_state(&kept, &id, "idle");
    assert!(!path.try_exists().unwrap());
    // A replay of the decision, or another one, finds it decided.
    let replayed = decide(&kept, &request, "allow");
    assert_eq!(
        (replayed.status, replayed.json()["about"]["attention"]["state"].as_str()),
        (409, Some("denied"))
    );
    turn(&kept, &id, &write("allowed"), "start");
    let request = wait_for_request(&kept);
    assert_eq!(decide(&kept, &request, "allow").good()["decided_by"], "token");
    until_state(&kept, &id, "idle");
    assert_eq!(fs::read_to_string(&path).unwrap(), "allowed");
    assert_eq!(kept.list("/attention")["items"].as_array().unwrap().len(), 2);
    let audit = fs::read_to_string(kept.home.join("audit.jsonl")).unwrap();
    assert_eq!(audit.matches("\"decision\"").count(), 2, "{audit}");
    for refused in ["not-what-was-shown", "not-found", "already-decided"] {
        assert_eq!(audit.matches(refused).count(), 1, "{refused}: {audit}");
    }
}

#[test]
fn a_picture_reaches_the_agent_and_one_that_is_none_is_refused_before_a_turn_begins() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let id = create(&kept, &desk, &Prompt::new("First.").says("One."));
    until_state(&kept, &id, "idle");
    // The smallest PNG there is: one transparent pixel.
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let send = |media_type: &str| {
        let words = Prompt::new("What is this?").says("A pixel.").to_string();
        let picture = json!({ "type": "image", "media_type": media_type, "data": png });
        let parts = json!([picture, { "type": "text", "text": words }]);
        kept.post(&format!("/sessions/{id}/turns"), json!({ "client_message_id": new_id(), "parts": parts }))
    };
    let refused = send("image/jpeg");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (422, Some("bad-picture")));
    assert_eq!(state(&kept, &id), "idle");
    assert_eq!(send("image/png").status, 202);
    kept.until("the picture was looked at", || {
        let all = texts(&kept, &id);
        (all.iter().any(|text| text.contains("A pixel.")) && all.iter().any(|text| text.contains(png)))
            .then_some(())
    });
}

#[test]
fn a_turn_is_interrupted_and_the_session_goes_on() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    let id = create(&kept, &desk, &Prompt::new("Think.").reply(Reply::text("Half of it").hanging()));
    socket.until("message.delta");
    // Whoever comes in the middle is shown what was said so far.
    let mut late = Socket::open(&kept);
    late.subscribe(&format!("session:{id}"), None);
    let (_, partial) = late.until("message.partial");
    assert!(partial["data"]["blocks"][0]["text"].as_str().unwrap().starts_with("Half"), "{partial}");
    assert_eq!(kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good()["interrupted"], true);
    socket.until("turn.interrupted");
    until_state(&kept, &id, "idle");
    turn(&kept, &id, &Prompt::new("Go on.").says("Gone on."), "start");
    socket.until("turn.completed");
    kept.until("it is on disk", || {
        texts_or_none(&kept, &id)?.iter().any(|text| text.contains("Gone on.")).then_some(())
    });
    assert_eq!(kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good()["interrupted"], false);
}

fn texts_or_none(kept: &Kept, session: &str) -> Option<Vec<String>> {
    let page = kept.get(&format!("/sessions/{session}/messages?limit=500")).good();
    let items = page["items"].as_array().unwrap().clone();
    let settled = items.iter().all(|item| item["provisional"] == false);
    settled.then(|| items.iter().map(|item| item["content"].to_string()).collect())
}

#[test]
fn a_session_goes_on_after_the_keeper_was_started_again() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper();
    let id = create(&kept, &desk, &Prompt::new("Remember 7.").says("Seven."));
    until_state(&kept, &id, "idle");
    kept.end();
    let kept = desk.keeper();
    assert_eq!(state(&kept, &id), "idle");
    let before = desk.home.api().requests().len();
    turn(&kept, &id, &Prompt::new("Which number?").says("It was 7."), "start");
    desk.home.api().wait_for(before + 1);
    let sent = desk.home.api().requests()[before].body["messages"].to_string();
    assert!(sent.contains("Remember 7.") && sent.contains("Seven."), "{sent}");
    until_state(&kept, &id, "idle");
    // Renamed here, and known to the CLI by that name.
    kept.patch(&format!("/sessions/{id}"), json!({ "name": "Numbers" })).good();
    let listed =
        desk.home.claude().args(["--resume", "Numbers"]).ask(Prompt::new("Still there?").says("Yes."));
    assert_eq!(listed.code, 0, "{listed:?}");
}

#[test]
fn an_agent_that_rests_makes_way_for_a_terminal_and_the_next_one_knows_what_was_said_there() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let id = create(&kept, &desk, &Prompt::new("Begin.").says("Begun."));
    until_state(&kept, &id, "idle");
    let mut elsewhere =
        desk.home.claude().resume(&id).start(Prompt::new("Mine.").reply(Reply::text("Slow").hanging()));
    until_state(&kept, &id, "elsewhere");
    let body = json!({ "client_message_id": new_id(), "parts": [{ "type": "text", "text": "x" }] });
    let refused = kept.post(&format!("/sessions/{id}/turns"), body);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("driven-elsewhere")));
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
    until_state(&kept, &id, "idle");
    // Somebody came and went while nobody sent anything: what was said there is known here.
    let said = desk.home.claude().resume(&id).ask(Prompt::new("The number is 9.").says("Nine."));
    assert_eq!(said.code, 0, "{said:?}");
    let before = desk.home.api().requests().len();
    turn(&kept, &id, &Prompt::new("Which number?").says("It was 9."), "start");
    desk.home.api().wait_for(before + 1);
    let sent = desk.home.api().requests()[before].body["messages"].to_string();
    assert!(sent.contains("The number is 9."), "{sent}");
}

#[test]
fn a_session_that_a_terminal_drives_is_not_driven_twice() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let id = create(&kept, &desk, &Prompt::new("Begin.").says("Begun."));
    until_state(&kept, &id, "idle");
    kept.post(&format!("/sessions/{id}/lease"), json!({ "action": "release" })).good();
    let mut elsewhere =
        desk.home.claude().resume(&id).start(Prompt::new("Mine.").reply(Reply::text("Slow").hanging()));
    until_state(&kept, &id, "elsewhere");
    let body = json!({ "client_message_id": new_id(), "parts": [{ "type": "text", "text": "x" }] });
    let refused = kept.post(&format!("/sessions/{id}/turns"), body);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("driven-elsewhere")));
    assert_eq!(refused.json()["about"]["choices"], json!(["watch", "fork", "take_over"]));
    // A fork goes on at once.
    let fork = kept.post(&format!("/sessions/{id}/fork"), json!({ "name": "Another way" })).good();
    let fork = fork["session_id"].as_str().unwrap().to_owned();
    turn(&kept, &fork, &Prompt::new("And?").says("Forked."), "start");
    until_state(&kept, &fork, "idle");
    assert!(kept.get(&format!("/sessions/{id}")).good()["forks"].to_string().contains(&fork));
    // Taking over is a decision.
    kept.post(&format!("/sessions/{id}/lease"), json!({ "action": "take_over" })).good();
    turn(&kept, &id, &Prompt::new("Ours now.").says("Yours."), "start");
    kept.until("it was answered", || {
        texts_or_none(&kept, &id)?.iter().any(|text| text.contains("Yours.")).then_some(())
    });
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
}

#[test]
fn an_agent_that_dies_in_the_middle_of_a_turn_leaves_no_ghosts() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    // Nothing but what hangs: a turn that ends before the agent is killed does not fail.
    let id = create(&kept, &desk, &Prompt::new("Long.").reply(Reply::text("Never finished").hanging()));
    socket.until("message.delta");
    let live = kept.until("the CLI is registered", || live_pid(&desk, &id));
    assert!(std::process::Command::new("kill").args(["-9", &live.to_string()]).status().unwrap().success());
    let (before, failed) = socket.until("turn.failed");
    assert!(failed["data"]["errors"][0].is_string(), "{failed}");
    until_state(&kept, &id, "failed");
    assert_eq!(pending(&kept).len(), 0);
    drop(before);
    // What never got to disk is taken back, and the session can go on.
    kept.until("nothing is provisional", || texts_or_none(&kept, &id).map(drop));
    turn(&kept, &id, &Prompt::new("Again.").says("Better."), "start");
    kept.until("it was answered", || {
        texts_or_none(&kept, &id)?.iter().any(|text| text.contains("Better.")).then_some(())
    });
}

pub(crate) fn live_pid(desk: &Desk, session: &str) -> Option<u32> {
    let files = fs::read_dir(desk.home.config().join("sessions")).ok()?.flatten();
    let texts = files
        .filter(|file| file.path().extension().is_some_and(|it| it == "json"))
        .filter_map(|file| fs::read(file.path()).ok());
    let mut all = texts.filter_map(|text| serde_json::from_slice::<Value>(&text).ok());
    all.find(|it| it["sessionId"] == session)?["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
}

#[test]
fn writes_edits_and_shell_changes_are_taken_back_and_forth() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let at = |name: &str| desk.project().join(name);
    fs::write(at("kept.txt"), "as it was\n").unwrap();
    fs::write(at("edited.txt"), "one\ntwo\n").unwrap();
    let prompt = Prompt::new("Change things.")
        .calls("Write", json!({ "file_path": at("written.txt"), "content": "new\n" }))
        .calls("Read", json!({ "file_path": at("edited.txt") }))
        .calls("Edit", json!({ "file_path": at("edited.txt"), "old_string": "two", "new_string": "2" }))
        .calls("Bash", json!({ "command": "echo by the shell > shell.txt; echo gone >> kept.txt", "description": "shell" }))
        .says("Changed.");
    let body = json!({ "cwd": desk.project(), "name": "Files" });
    let id = kept.post("/sessions", body).good()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(state(&kept, &id), "pending");
    let (message, _) = turn(&kept, &id, &prompt, "start");
    for _ in 0..3 {
        let request = wait_for_request(&kept);
        decide(&kept, &request, "allow").good();
    }
    until_state(&kept, &id, "idle");
    assert_eq!(fs::read_to_string(at("edited.txt")).unwrap(), "one\n2\n");
    assert!(fs::read_to_string(at("kept.txt")).unwrap().contains("gone"));
    let checkpoints = kept.list(&format!("/sessions/{id}/checkpoints"));
    assert!(!checkpoints["items"].as_array().unwrap().is_empty());
    let diff = kept.get(&format!("/sessions/{id}/diff?turn={message}")).good();
    let changed: Vec<&str> =
        diff["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(changed, ["edited.txt", "kept.txt", "shell.txt", "written.txt"], "{diff}");
    assert!(diff["items"][0]["diff"].as_str().unwrap().ends_with("-two\n+2\n"), "{diff}");
    let rewind = |body: Value| kept.post(&format!("/sessions/{id}/rewind"), body);
    let plan = rewind(json!({ "to": message, "dry_run": true })).good();
    assert_eq!(plan["result"]["canRewind"], true, "{plan}");
    let blind = rewind(json!({ "to": message }));
    assert_eq!((blind.status, blind.json()["code"].as_str()), (409, Some("changed")));
    let done = rewind(json!({ "to": message, "expect_digest": plan["digest"] })).good();
    assert_eq!(fs::read_to_string(at("kept.txt")).unwrap(), "as it was\n");
    assert_eq!(fs::read_to_string(at("edited.txt")).unwrap(), "one\ntwo\n");
    assert!(!at("written.txt").try_exists().unwrap() && !at("shell.txt").try_exists().unwrap(), "{done}");
    let undo = done["undo"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    // Where somebody's own work is in the way nothing is undone, and nobody is told that it was.
    let undone = || {
        let audit = kept.get("/audit").good();
        audit["items"].as_array().unwrap().iter().filter(|line| line["what"] == "undo").count()
    };
    fs::write(at("shell.txt"), "mine\n").unwrap();
    let refused = kept.post(undo, json!({})).good();
    assert_eq!((refused["result"]["canRewind"].as_bool(), undone()), (Some(false), 0), "{refused}");
    fs::remove_file(at("shell.txt")).unwrap();
    kept.post(undo, json!({})).good();
    assert_eq!((fs::read_to_string(at("shell.txt")).unwrap().as_str(), undone()), ("by the shell\n", 1));
    assert_eq!(rewind(json!({ "to": "nowhere", "dry_run": true })).status, 404);
}

#[test]
fn a_rewind_forks_the_conversation_before_the_same_message() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let file = desk.project().join("greeting.txt");
    fs::write(&file, "hello\n").unwrap();
    let id = create(&kept, &desk, &Prompt::new("Remember 7.").says("Seven."));
    until_state(&kept, &id, "idle");
    let input = json!({ "command": "echo goodbye > greeting.txt", "description": "change it" });
    let (message, _) =
        turn(&kept, &id, &Prompt::new("Change it.").calls("Bash", input).says("Changed."), "start");
    decide(&kept, &wait_for_request(&kept), "allow").good();
    kept.until("all of it is on disk", || {
        let texts = texts_or_none(&kept, &id)?;
        (texts.iter().any(|text| text.contains("Changed.")) && state(&kept, &id) == "idle").then_some(())
    });
    assert_eq!(fs::read_to_string(&file).unwrap(), "goodbye\n");
    let rewind = |body: Value| kept.post(&format!("/sessions/{id}/rewind"), body).good();
    let plan = rewind(json!({ "to": message, "dry_run": true }));
    let done = rewind(json!({ "to": message, "expect_digest": plan["digest"], "fork": true }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "hello\n");
    // Files and words go together: the fork knows nothing of the change, and goes on.
    let fork = done["fork"].as_str().unwrap().to_owned();
    let said = texts(&kept, &fork).join(" ");
    assert!(said.contains("Seven.") && !said.contains("Changed."), "{said}");
    assert!(texts(&kept, &id).join(" ").contains("Changed."), "the old conversation is as it was");
    let before = desk.home.api().requests().len();
    turn(&kept, &fork, &Prompt::new("Which number?").says("It was 7."), "start");
    desk.home.api().wait_for(before + 1);
    let sent = desk.home.api().requests()[before].body["messages"].to_string();
    assert!(sent.contains("Remember 7.") && !sent.contains("Changed."), "{sent}");
    until_state(&kept, &fork, "idle");
    // The first message changed nothing: what came after it is taken back. It has nothing before it to fork after.
    fs::write(&file, "goodbye\n").unwrap();
    let first = kept.get(&format!("/sessions/{id}/messages")).good()["items"][0]["uuid"].clone();
    let plan = rewind(json!({ "to": first, "dry_run": true, "force": ["greeting.txt"] }));
    assert_eq!(plan["steps"][0]["path"], "greeting.txt", "{plan}");
    let body =
        json!({ "to": first, "expect_digest": plan["digest"], "force": ["greeting.txt"], "fork": true });
    let refused = kept.post(&format!("/sessions/{id}/rewind"), body);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("nothing-before")));
    assert_eq!(fs::read_to_string(&file).unwrap(), "goodbye\n", "nothing was touched");
}

#[test]
fn a_request_that_waits_when_the_keeper_is_ended_is_withdrawn_and_allows_nothing() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper();
    let file = desk.project().join("never.txt");
    let write = || {
        let input = json!({ "file_path": file, "content": "written" });
        Prompt::new("Write it.").calls("Write", input).says("Done.")
    };
    let id = create(&kept, &desk, &write());
    let request = wait_for_request(&kept);
    kept.end();
    assert!(live_pid(&desk, &id).is_none(), "the agent has ended");
    assert!(!file.try_exists().unwrap());
    let kept = desk.keeper();
    assert_eq!(pending(&kept).len(), 0);
    let all = kept.get("/attention").good()["items"].as_array().unwrap().clone();
    assert_eq!((all.len(), &all[0]["state"]), (1, &json!("withdrawn")));
    assert_eq!(decide(&kept, &request, "allow").status, 409);
    // The session goes on, and asks anew.
    turn(&kept, &id, &write(), "start");
    decide(&kept, &wait_for_request(&kept), "allow").good();
    until_state(&kept, &id, "idle");
    assert_eq!(fs::read_to_string(&file).unwrap(), "written");
}

#[test]
fn what_a_person_edits_while_an_approval_waits_is_not_lost() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let file = desk.project().join("shared.txt");
    fs::write(&file, "before\n").unwrap();
    let prompt = Prompt::new("Overwrite it.")
        .calls("Bash", json!({ "command": "echo agent > shared.txt", "description": "overwrite" }))
        .says("Done.");
    let body = json!({ "cwd": desk.project() });
    let id = kept.post("/sessions", body).good()["session_id"].as_str().unwrap().to_owned();
    let (message, _) = turn(&kept, &id, &prompt, "start");
    let request = wait_for_request(&kept);
    fs::write(&file, "a person's own work\n").unwrap();
    decide(&kept, &request, "allow").good();
    until_state(&kept, &id, "idle");
    assert_eq!(fs::read_to_string(&file).unwrap(), "agent\n");
    // Going back over it is never silent: the person's edit is in the way until they say so.
    let rewind = |body: Value| kept.post(&format!("/sessions/{id}/rewind"), body).good();
    let plan = rewind(json!({ "to": message, "dry_run": true }));
    assert_eq!(plan["result"]["canRewind"], false, "{plan}");
    // The state just before the tool ran has it.
    let checkpoints = kept.list(&format!("/sessions/{id}/checkpoints"));
    let all = checkpoints["items"].as_array().unwrap().clone();
    let after_edit = all.iter().rev().find(|it| it["tool_use"].as_array().is_none_or(Vec::is_empty)).unwrap();
    let plan = rewind(json!({ "to": after_edit["id"], "dry_run": true }));
    assert_eq!(plan["result"]["canRewind"], true, "{plan}");
    rewind(json!({ "to": after_edit["id"], "expect_digest": plan["digest"] }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "a person's own work\n");
}

/// Claude Code does not say that a call is over which nobody allowed.
#[test]
fn what_a_person_edits_after_a_denied_or_interrupted_call_is_theirs() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let rules = desk.project().join(".claude/settings.json");
    fs::create_dir_all(rules.parent().unwrap()).unwrap();
    for way in ["a person", "an interruption", "a rule"] {
        let denied = if way == "a rule" { vec!["Bash(echo never:*)"] } else { vec![] };
        fs::write(&rules, json!({ "permissions": { "deny": denied } }).to_string()).unwrap();
        let file = desk.project().join(format!("shared by {way}.txt"));
        fs::write(&file, "before\n").unwrap();
        let bash = |command: &str| {
            let input = json!({ "command": command, "description": "change something" });
            Prompt::new("Change it.").calls("Bash", input).says("Done.")
        };
        let body = json!({ "cwd": desk.project() });
        let id = kept.post("/sessions", body).good()["session_id"].as_str().unwrap().to_owned();
        let (message, _) = turn(&kept, &id, &bash("echo never > never.txt"), "start");
        match way {
            "a person" => drop(decide(&kept, &wait_for_request(&kept), "deny").good()),
            "an interruption" => {
                wait_for_request(&kept);
                kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good();
            }
            _ => {}
        }
        until_state(&kept, &id, "idle");
        fs::write(&file, "a person's own work\n").unwrap();
        let write = json!({ "file_path": desk.project().join("agent.txt"), "content": way });
        turn(&kept, &id, &Prompt::new("Write.").calls("Write", write).says("Done."), "start");
        decide(&kept, &wait_for_request(&kept), "allow").good();
        until_state(&kept, &id, "idle");
        let rewind = |body: Value| kept.post(&format!("/sessions/{id}/rewind"), body).good();
        let plan = rewind(json!({ "to": message, "dry_run": true }));
        assert_eq!(plan["result"]["canRewind"], false, "{way}: it would take back a person's edit: {plan}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "a person's own work\n");
    }
}

#[test]
fn an_agent_is_ended_when_it_is_idle_and_started_when_it_is_needed() {
    let Some(mut desk) = Desk::new() else { return };
    desk.settings.idle = Duration::from_millis(300);
    let kept = desk.keeper();
    let id = create(&kept, &desk, &Prompt::new("One.").says("1."));
    until_state(&kept, &id, "idle");
    kept.until("its agent ended", || live_pid(&desk, &id).is_none().then_some(()));
    turn(&kept, &id, &Prompt::new("Two.").says("2."), "start");
    kept.until("it was answered", || {
        texts_or_none(&kept, &id)?.iter().any(|text| text.contains("2.")).then_some(())
    });
}

/// Claudekeeper's fault 6: modes that nobody knows, a mode that is not heard, and one that a resumed session has forgotten.
#[test]
fn a_permission_mode_is_one_that_there_is_and_holds_when_the_session_goes_on() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper();
    let refused = |body: Value| {
        let answer = kept.post("/sessions", body);
        (answer.status, answer.json()["code"].as_str().unwrap().to_owned())
    };
    let cwd = desk.project();
    for mode in ["dangerously-skip-permissions", "acceptedits", ""] {
        let code = refused(json!({ "cwd": cwd, "permission_mode": mode }));
        assert_eq!(code, (400, "bad-request".into()), "{mode}");
    }
    // Nothing that is not understood is passed over in silence, and nobody runs unasked by saying so.
    assert_eq!(refused(json!({ "cwd": cwd, "permissionMode": "plan" })).0, 400);
    assert_eq!(refused(json!({ "cwd": cwd, "config": { "permission_mode": "plan" } })).0, 400);
    let bypass = refused(json!({ "cwd": cwd, "permission_mode": "bypassPermissions" }));
    assert_eq!(bypass, (403, "bypass-refused".into()));
    assert!(fs::read_to_string(kept.home.join("audit.jsonl")).unwrap().contains("bypass-refused"));

    let write = |name: &str| {
        let input = json!({ "file_path": cwd.join(name), "content": name });
        Prompt::new("Write it.").calls("Write", input).says("Done.")
    };
    let body = json!({ "cwd": cwd, "permission_mode": "acceptEdits", "name": "Trusted", "prompt": write("one").to_string() });
    let id = kept.post("/sessions", body).good()["session_id"].as_str().unwrap().to_owned();
    until_state(&kept, &id, "idle");
    assert_eq!(fs::read_to_string(cwd.join("one")).unwrap(), "one");
    assert_eq!(kept.get(&format!("/sessions/{id}")).good()["name"], "Trusted");
    // The next keeper knows it too.
    kept.end();
    let kept = desk.keeper();
    turn(&kept, &id, &write("two"), "start");
    kept.until("it is written", || fs::read_to_string(cwd.join("two")).ok().filter(|text| text == "two"));
    until_state(&kept, &id, "idle");
    assert_eq!(kept.get("/attention").good()["items"], json!([]), "nobody was asked");
}

//! A session with everything in it, by the real CLI, and clients that are cut off at every event of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rethread_testkit::{Prompt, Reply};
use serde_json::{Value, json};

use crate::driving::{Desk, create, decide, live_pid, state, texts, turn, until_state, wait_for_request};
use crate::kit::{Kept, Socket, append};

/// Every numbered event that a session can have at one keeper once it has begun. What is lost is told by the next
/// one: the tests of `rethread serve` kill the first.
const KINDS: [&str; 20] = [
    "attention.decided",
    "attention.requested",
    "attention.withdrawn",
    "checkpoint.created",
    "health.changed",
    "message.dropped",
    "message.upsert",
    "queue.changed",
    "rewind.applied",
    "rewind.undone",
    "session.created",
    "session.removed",
    "session.state",
    "session.updated",
    "subagent.completed",
    "subagent.started",
    "turn.completed",
    "turn.failed",
    "turn.interrupted",
    "turn.started",
];

/// What a client has: messages by their ids, and where it is.
#[derive(Clone)]
struct Client {
    items: BTreeMap<String, Value>,
    head: Value,
}

impl Client {
    fn read(kept: &Kept, id: &str) -> Self {
        let mut client = Self { items: BTreeMap::new(), head: Value::Null };
        client.read_after(kept, id, "");
        client
    }

    fn read_after(&mut self, kept: &Kept, id: &str, after: &str) {
        let page = kept.get(&format!("/sessions/{id}/messages?branch=all&limit=500{after}")).good();
        if page["page"]["reset"] == true {
            self.items.clear();
        }
        for item in page["items"].as_array().unwrap() {
            self.items.insert(item["uuid"].as_str().unwrap().to_owned(), item.clone());
        }
        self.head = page["head"].clone();
    }

    fn take(&mut self, event: &Value) {
        let uuid = || event["data"]["uuid"].as_str().unwrap();
        match event["type"].as_str().unwrap() {
            // What subagents say is in their own transcripts.
            "message.upsert" if event["data"]["agent_id"].is_string() => {}
            "message.upsert" => drop(self.items.insert(uuid().to_owned(), event["data"].clone())),
            "message.dropped" => drop(self.items.remove(uuid())),
            _ => {}
        }
    }

    /// Forgets what was never on disk, as a client does that has to read anew.
    fn forget_provisional(&mut self) {
        self.items.retain(|_, item| item["provisional"] == false);
    }
}

/// Everything that can happen to a session, one after the other.
fn play(kept: &Kept, desk: &Desk, id: &str) {
    let shell = |command: &str| json!({ "command": command, "description": "change something" });
    let tools = Prompt::new("Work.")
        .reply(Reply::default().thinking("How?").says("So.").tool("Bash", shell("echo one > one.txt")))
        .calls("Bash", shell("echo two > two.txt"))
        .says("Worked.");
    let (worked, _) = turn(kept, id, &tools, "start");
    decide(kept, &wait_for_request(kept), "allow").good();
    decide(kept, &wait_for_request(kept), "deny").good();
    until_state(kept, id, "idle");

    let gate = desk.gate();
    turn(kept, id, &Prompt::new("Wait.").reply(Reply::text("Waited.").once(&gate)), "start");
    turn(kept, id, &Prompt::new("continue").says("Next."), "queue");
    let (unwanted, _) = turn(kept, id, &Prompt::new("never").says("Never."), "queue");
    turn(kept, id, &Prompt::new("continue").says("And next."), "queue");
    kept.delete(&format!("/sessions/{id}/queue/{unwanted}"));
    fs::write(gate, "").unwrap();
    kept.until("all that waited was answered", || {
        (texts(kept, id).join(" ").contains("And next.") && state(kept, id) == "idle").then_some(())
    });

    let inner = Prompt::new("Look around.").says("There is nothing.").to_string();
    let input = json!({ "description": "Look", "prompt": inner, "subagent_type": "general-purpose" });
    turn(kept, id, &Prompt::new("Ask somebody.").calls("Agent", input).says("Nobody knows."), "start");
    until_state(kept, id, "idle");

    let interrupt = || drop(kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good());
    turn(kept, id, &Prompt::new("Talk.").reply(Reply::text("On and on and on.").hanging()), "start");
    kept.until("it talks", || {
        let mut socket = Socket::open(kept);
        socket.subscribe(&format!("session:{id}"), None);
        let before = socket.until("caught_up").0;
        before.iter().any(|frame| frame["type"] == "message.partial").then_some(())
    });
    interrupt();
    until_state(kept, id, "idle");

    turn(kept, id, &Prompt::new("Ask.").calls("Bash", shell("echo three > three.txt")), "start");
    wait_for_request(kept);
    interrupt();
    until_state(kept, id, "idle");

    turn(kept, id, &Prompt::new("Fail.").reply(Reply::status(400)), "start");
    kept.until("it failed", || (state(kept, id) == "failed").then_some(()));

    // What the CLI says before a message is whole is on no disk when it dies.
    let half = Reply::default().thinking("A whole thought.").says("Half of").hanging();
    turn(kept, id, &Prompt::new("Die.").reply(half), "start");
    kept.until("a thought was told", || {
        let page = kept.get(&format!("/sessions/{id}/messages?limit=50")).good();
        let items = page["items"].as_array().unwrap();
        items.iter().any(|item| item["provisional"] == true && item["role"] == "assistant").then_some(())
    });
    let pid = kept.until("the CLI is registered", || live_pid(desk, id));
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    kept.until("it died", || (state(kept, id) == "failed").then_some(()));

    let rewind = |body: Value| kept.post(&format!("/sessions/{id}/rewind"), body).good();
    let plan = rewind(json!({ "to": worked, "dry_run": true }));
    let done = rewind(json!({ "to": worked, "expect_digest": plan["digest"] }));
    kept.post(done["undo"].as_str().unwrap().strip_prefix("/api/v1").unwrap(), json!({})).good();
    assert_eq!(kept.patch(&format!("/sessions/{id}"), json!({ "name": "All of it" })).status, 200);
    turn(kept, id, &Prompt::new("Last.").says("Over."), "start");
    until_state(kept, id, "idle");
    texts(kept, id);

    append(&desk.transcript(id), "no JSON\n");
    kept.until("it is damaged", || {
        let problems = kept.get(&format!("/sessions/{id}/problems")).good();
        (!problems["items"].as_array().unwrap().is_empty()).then_some(())
    });
    // What the keeper itself has of it stays in the store, under the same id.
    let is_native = || kept.get(&format!("/sessions/{id}")).json()["home"] == "native";
    kept.post(&format!("/sessions/{id}/lease"), json!({ "action": "release" })).good();
    kept.until("it may be deleted", || (kept.delete(&format!("/sessions/{id}")).status < 300).then_some(()));
    kept.until("it is gone", || (!is_native()).then_some(()));
    kept.post(&format!("/sessions/{id}/restore"), json!({})).good();
    kept.until("it is back", || is_native().then_some(()));
}

/// Hears one event at a time, each on a connection of its own, until there is nothing after the last one.
fn hear_one_by_one(kept: &Kept, topic: &str, head: &Value, last: &AtomicU64) -> Vec<Value> {
    let (mut head, mut heard) = (head.clone(), Vec::new());
    while head["seq"].as_u64().unwrap() < last.load(Ordering::SeqCst) {
        let mut socket = Socket::open(kept);
        socket.subscribe(topic, Some(&head));
        let event = loop {
            let frame = socket.next();
            let is_numbered = frame["seq"].is_u64() && frame["topic"] == topic;
            if is_numbered {
                break frame;
            }
            // Quiet for now; whether it stays so is asked again.
            if frame["type"] == "heartbeat" {
                break Value::Null;
            }
        };
        if event.is_null() {
            continue;
        }
        assert!(event["seq"].as_u64() > head["seq"].as_u64(), "{event} was known");
        head["seq"] = event["seq"].clone();
        heard.push(event);
    }
    heard
}

/// Says that nothing more comes when whoever makes it come fails, so that nobody waits for ever.
struct Finally<'a>(&'a AtomicU64);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        let _ = self.0.compare_exchange(u64::MAX, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Returns all numbered events of a session after a place, once nothing more happens.
fn recorded(kept: &Kept, topic: &str, head: &Value) -> Vec<Value> {
    let seq = || kept.get("/info").good()["seq"].as_u64().unwrap();
    kept.until("nothing more happens", || {
        let before = seq();
        thread::sleep(Duration::from_secs(1));
        (seq() == before).then_some(())
    });
    let after = format!("{}:{}", head["epoch"].as_str().unwrap(), head["seq"]);
    let page = kept.get(&format!("/events?topics={topic}&after={after}")).good();
    assert_eq!(page["resync"], false);
    page["items"].as_array().unwrap().clone()
}

#[test]
fn a_client_that_is_cut_off_at_every_event_of_a_session_ends_with_the_same_state() {
    let Some(desk) = Desk::new() else { return };
    let mut kept = desk.keeper_with(|settings| settings.heartbeat = Duration::from_millis(500));
    let id = create(&kept, &desk, &Prompt::new("First.").says("One."));
    until_state(&kept, &id, "idle");
    texts(&kept, &id);
    let topic = format!("session:{id}");
    let begun = Client::read(&kept, &id);
    let last = AtomicU64::new(u64::MAX);
    let (events, heard) = thread::scope(|scope| {
        let hearing = scope.spawn(|| hear_one_by_one(&kept, &topic, &begun.head, &last));
        let finally = Finally(&last);
        play(&kept, &desk, &id);
        let events = recorded(&kept, &topic, &begun.head);
        last.store(events.last().unwrap()["seq"].as_u64().unwrap(), Ordering::SeqCst);
        drop(finally);
        (events, hearing.join().unwrap())
    });
    let kinds: BTreeSet<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let missing: Vec<_> = KINDS.into_iter().filter(|kind| !kinds.contains(kind)).collect();
    assert!(missing.is_empty(), "the recording lacks {missing:?}, and has {kinds:?}");
    assert_eq!(heard, events, "whoever hears them one by one hears the same");
    // An agent's register is there before the agent has said who it is.
    let elsewhere = events.iter().find(|event| event["data"]["state"] == "elsewhere");
    assert_eq!(elsewhere, None, "only this keeper drives it");

    // What each client has that was cut off after so many events.
    let mut client = begun.clone();
    let cut: Vec<Client> = std::iter::once(begun.clone())
        .chain(events.iter().map(|event| {
            client.take(event);
            client.clone()
        }))
        .collect();
    assert_eq!(client.items, Client::read(&kept, &id).items, "nothing is missing, and nothing is left over");
    for (at, event) in events.iter().enumerate() {
        let mut socket = Socket::open(&kept);
        socket.subscribe(&topic, Some(&json!({ "epoch": begun.head["epoch"], "seq": event["seq"] })));
        let (mut missed, _) = socket.until("caught_up");
        missed.retain(|frame| frame["seq"].is_u64() && frame["topic"] == topic.as_str());
        assert_eq!(missed, events[at + 1..], "after {event}");
    }

    // The next keeper knows none of these numbers; the position of what was read still holds.
    kept.end();
    let kept = desk.keeper();
    let fresh = Client::read(&kept, &id);
    let position = begun.head["position"].as_str().unwrap();
    for (at, mut client) in cut.into_iter().enumerate() {
        let mut socket = Socket::open(&kept);
        socket.subscribe(&topic, Some(&begun.head));
        assert_eq!(socket.until("resync").1["reason"], "not-covered");
        client.forget_provisional();
        client.read_after(&kept, &id, &format!("&after={position}"));
        assert_eq!(client.items, fresh.items, "cut off after {at}");
    }
}

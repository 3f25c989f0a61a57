//! The stream: nothing twice, nothing missing, and nobody waits for anybody.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Home, Kept, Socket, append, line, session, uuid};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

/// What a client knows of a session: it upserts by id, and counts how often it was told.
#[derive(Default)]
struct Known {
    items: BTreeMap<String, Value>,
    told: BTreeMap<String, usize>,
    head: Value,
}

impl Known {
    fn read(&mut self, kept: &Kept, id: &str, after: &str) -> Value {
        let page = kept.get(&format!("/sessions/{id}/messages?limit=500{after}")).good();
        if page["page"]["reset"] == true {
            self.items.clear();
        }
        for item in page["items"].as_array().unwrap() {
            self.items.insert(item["uuid"].as_str().unwrap().to_owned(), item.clone());
        }
        self.head = page["head"].clone();
        page
    }

    /// Takes a frame; returns whether it was about a message.
    fn take(&mut self, frame: &Value) -> bool {
        if let Some(seq) = frame["seq"].as_u64() {
            let last = self.head["seq"].as_u64().unwrap();
            assert!(frame["type"] == "caught_up" || seq > last, "{frame} after {last}");
            self.head["seq"] = json!(seq.max(last));
        }
        match frame["type"].as_str().unwrap() {
            "message.upsert" => {
                let uuid = frame["data"]["uuid"].as_str().unwrap().to_owned();
                *self.told.entry(uuid.clone()).or_default() += 1;
                self.items.insert(uuid, frame["data"].clone());
                true
            }
            "message.dropped" => {
                self.items.remove(frame["data"]["uuid"].as_str().unwrap());
                false
            }
            _ => false,
        }
    }
}

/// How many lines are written before a client is cut off at the latest, and how many come after that.
const LINES: usize = 14;
const MORE: usize = 5;

fn write(home: &Home, id: &str, numbers: std::ops::Range<usize>) {
    let text: String = numbers.map(|number| line(id, "/tmp", number)).collect();
    append(&home.transcript("-project", id), &text);
}

/// Follows a session from what it knows until it has heard of so many messages.
fn follow(kept: &Kept, id: &str, known: &mut Known, messages: usize) -> Socket {
    let mut socket = Socket::open(kept);
    socket.subscribe(&format!("session:{id}"), Some(&known.head));
    let mut seen = 0;
    while seen < messages {
        seen += usize::from(known.take(&socket.next()));
    }
    socket
}

fn expect_all(kept: &Kept, id: &str, known: &Known, cut: usize) {
    let mut fresh = Known::default();
    fresh.read(kept, id, "");
    assert_eq!(fresh.items.len(), 2 + LINES + MORE);
    assert_eq!(known.items, fresh.items, "cut after {cut}");
    assert!(known.told.values().all(|times| *times == 1), "cut after {cut}: {:?}", known.told);
}

#[test]
fn a_client_that_is_killed_at_every_event_ends_with_the_same_state() {
    let home = Home::new();
    let ids: Vec<String> = (0..=LINES).map(|_| session()).collect();
    ids.iter().for_each(|id| drop(home.conversation(id, "/tmp", 2)));
    let kept = home.keeper();
    for (cut, id) in ids.iter().enumerate() {
        let mut known = Known::default();
        known.read(&kept, id, "");
        write(&home, id, 2..2 + LINES);
        drop(follow(&kept, id, &mut known, cut));
        write(&home, id, 2 + LINES..2 + LINES + MORE);
        follow(&kept, id, &mut known, LINES + MORE - cut);
        expect_all(&kept, id, &known, cut);
    }
}

/// The same, and the keeper is another one when the client comes back: it goes on by the position of what it read.
#[test]
fn a_client_that_is_killed_at_every_event_survives_a_restart_of_the_keeper() {
    let home = Home::new();
    for cut in 0..=LINES {
        let id = session();
        home.conversation(&id, "/tmp", 2);
        let mut kept = home.keeper();
        let mut known = Known::default();
        known.read(&kept, &id, "");
        write(&home, &id, 2..2 + LINES);
        drop(follow(&kept, &id, &mut known, cut));
        kept.end();
        write(&home, &id, 2 + LINES..1 + LINES + MORE);
        let kept = home.keeper();
        let mut socket = Socket::open(&kept);
        socket.subscribe(&format!("session:{id}"), Some(&known.head));
        assert_eq!(socket.until("resync").1["reason"], "not-covered");
        socket.until("caught_up");
        let position = known.head["position"].as_str().unwrap().to_owned();
        let page = known.read(&kept, &id, &format!("&after={position}"));
        assert_eq!(page["items"].as_array().unwrap().len(), LINES + MORE - 1, "only what is new was read");
        write(&home, &id, 1 + LINES + MORE..2 + LINES + MORE);
        while known.items.len() < 2 + LINES + MORE {
            known.take(&socket.next());
        }
        expect_all(&kept, &id, &known, cut);
    }
}

#[test]
fn whoever_subscribes_late_is_caught_up_without_what_it_has_not_asked_for() {
    let home = Home::new();
    let (one, other) = (session(), session());
    let paths = [home.conversation(&one, "/tmp", 2), home.conversation(&other, "/tmp", 2)];
    let kept = home.keeper();
    let mut socket = Socket::open(&kept);
    socket.say(json!({ "type": "hello" }));
    let (_, welcome) = socket.until("welcome");
    for number in 2..5 {
        append(&paths[0], &line(&one, "/tmp", number));
        append(&paths[1], &line(&other, "/tmp", number));
    }
    // Others count too, such as what lists are told.
    let since = format!("{}:{}", welcome["epoch"].as_str().unwrap(), welcome["seq"]);
    kept.until("all of it was told", || {
        let told = kept.get(&format!("/events?topics=all&after={since}")).good().to_string();
        (told.matches("message.upsert").count() == 6).then_some(())
    });
    socket.subscribe(&format!("session:{one}"), Some(&welcome));
    let (missed, _) = socket.until("caught_up");
    let messages: Vec<&Value> = missed.iter().filter(|frame| frame["type"] == "message.upsert").collect();
    assert!(missed.iter().all(|frame| frame["topic"] == format!("session:{one}").as_str()));
    assert_eq!(messages.len(), 3);
    // Lists do not get what conversations are about.
    socket.subscribe("sessions", None);
    socket.until("caught_up");
    append(&paths[1], &line(&other, "/tmp", 5));
    loop {
        let (_, updated) = socket.until("session.updated");
        if updated["data"]["session_id"] == other.as_str() {
            break;
        }
    }
    append(&paths[0], &line(&one, "/tmp", 5));
    // What the other said had its chance to be passed on before this.
    let (_, next) = socket.until("message.upsert");
    assert_eq!(next["topic"], format!("session:{one}").as_str());
}

#[test]
fn heartbeats_are_frames_that_a_page_can_see() {
    let home = Home::new();
    let mut settings = home.settings();
    settings.heartbeat = Duration::from_millis(50);
    let kept = Kept::start(settings);
    let mut socket = Socket::open(&kept);
    for _ in 0..3 {
        let (_, beat) = socket.until("heartbeat");
        assert!(beat["epoch"].is_string() && beat["seq"].is_u64());
    }
}

#[test]
fn nonsense_is_answered_and_too_much_of_it_ends_the_stream() {
    let home = Home::new();
    let kept = home.keeper();
    let mut socket = Socket::open(&kept);
    for word in [json!({ "type": "shout" }), json!([]), json!({ "type": "subscribe", "topics": ["../x"] })] {
        socket.say(word);
        let (_, error) = socket.until("error");
        assert_eq!(error["problem"]["code"], "bad-request");
    }
    socket.try_say(json!({ "type": "hello", "padding": "x".repeat(100_000) }));
    assert!(socket.try_next().is_none());
}

#[test]
fn a_client_that_never_reads_holds_nobody_up() {
    rethread_keeper::allow_many_open_files();
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    let other = session();
    let flood = home.conversation(&other, "/tmp", 2);
    let mut settings = home.settings();
    (settings.patience, settings.heartbeat) = (LONG, LONG);
    let kept = Kept::start(settings);
    let topic = format!("session:{id}");
    // It wants more than any socket holds, and reads none of it.
    let mut stuck = Socket::open(&kept);
    stuck.say(json!({ "type": "subscribe", "topics": [topic, format!("session:{other}")] }));
    let large = "x".repeat(200 << 10);
    let lines =
        (2..62).map(|number| line(&other, "/tmp", number).replace(&format!("message {number} of"), &large));
    append(&flood, &lines.collect::<String>());
    const CLIENTS: usize = 1000;
    const EVENTS: usize = 60;
    let mut sockets: Vec<Socket> = (1..CLIENTS).map(|_| Socket::open(&kept)).collect();
    for socket in &mut sockets {
        socket.subscribe(&topic, None);
    }
    for socket in &mut sockets {
        socket.until("caught_up");
    }
    let metrics = || String::from_utf8(kept.get("/metrics").body).unwrap();
    kept.until("all of them are counted", || {
        metrics().contains(&format!("stream_clients {CLIENTS}\n")).then_some(())
    });
    append(&path, &(2..2 + EVENTS).map(|number| line(&id, "/tmp", number)).collect::<String>());
    for socket in &mut sockets {
        let mut seen = Vec::new();
        while seen.len() < EVENTS {
            let frame = socket.next();
            if frame["type"] == "message.upsert" {
                seen.push(frame["data"]["uuid"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(seen, (2..2 + EVENTS).map(|number| uuid(&id, number)).collect::<Vec<_>>());
    }
    // It is still there, and can go on from where it is.
    assert!(metrics().contains(&format!("stream_clients {CLIENTS}\n")));
    let mut seen = 0;
    while seen < EVENTS {
        let frame = stuck.next();
        seen += usize::from(frame["type"] == "message.upsert" && frame["topic"] == topic.as_str());
    }
}

#[test]
fn a_client_that_never_reads_is_let_go_in_the_end() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    let mut settings = home.settings();
    settings.patience = Duration::from_millis(200);
    let kept = Kept::start(settings);
    let mut stuck = Socket::open(&kept);
    stuck.subscribe(&format!("session:{id}"), None);
    stuck.until("caught_up");
    let large = "x".repeat(200 << 10);
    let lines =
        (2..82).map(|number| line(&id, "/tmp", number).replace(&format!("message {number} of"), &large));
    append(&path, &lines.collect::<String>());
    kept.until("nobody is left", || {
        let metrics = String::from_utf8(kept.get("/metrics").body).unwrap();
        metrics.contains("stream_clients 0\n").then_some(())
    });
}

/// Point 6: a machine that went to sleep, or a cable that was pulled, says nothing, not even that it left.
#[test]
fn a_client_that_answers_no_ping_is_let_go_and_one_that_does_stays() {
    let home = Home::new();
    let mut settings = home.settings();
    settings.heartbeat = Duration::from_millis(50);
    let kept = Kept::start(settings);
    let silent = Socket::open(&kept);
    let mut answering = Socket::open(&kept);
    let clients = |count: u64| {
        let metrics = String::from_utf8(kept.get("/metrics").body).unwrap();
        metrics.contains(&format!("stream_clients {count}\n"))
    };
    // Whoever reads answers pings by it.
    kept.until("one is left", || {
        (0..4).for_each(|_| drop(answering.until("heartbeat")));
        clients(1).then_some(())
    });
    (0..20).for_each(|_| drop(answering.until("heartbeat")));
    assert!(clients(1));
    drop(silent);
}

#[test]
fn a_client_that_is_far_too_slow_is_told_to_read_anew() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    let mut settings = home.settings();
    (settings.patience, settings.heartbeat) = (LONG, LONG);
    let kept = Kept::start(settings);
    let mut socket = Socket::open(&kept);
    socket.subscribe(&format!("session:{id}"), None);
    socket.until("caught_up");
    // More than the ring holds, and more than sockets take in.
    let large = "x".repeat(200 << 10);
    for number in 2..260 {
        append(&path, &line(&id, "/tmp", number).replace(&format!("message {number} of"), &large));
    }
    // Lists are told as well, so that this is at least so many lines less a few.
    kept.until("all of it was told", || {
        (kept.get("/info").good()["seq"].as_u64() >= Some(258)).then_some(())
    });
    let (before, resync) = socket.until("resync");
    assert_eq!(resync["reason"], "too-slow");
    assert!(before.len() < 258);
    append(&path, &line(&id, "/tmp", 260));
    let (_, next) = socket.until("message.upsert");
    assert!(next["seq"].as_u64() > resync["seq"].as_u64());
}

#[test]
fn a_script_hears_everything_by_asking_again_and_again() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    let ask = |after: &str| kept.get(&format!("/events?topics=session:{id}&wait=20{after}")).good();
    let mut after = kept.get("/events").good()["after"].as_str().unwrap().to_owned();
    let mut seen = Vec::new();
    for number in 2..12 {
        append(&path, &line(&id, "/tmp", number));
        while seen.len() < number - 1 {
            let page = ask(&format!("&after={after}"));
            assert_eq!(page["resync"], false);
            after = page["after"].as_str().unwrap().to_owned();
            let items =
                page["items"].as_array().unwrap().iter().filter(|item| item["type"] == "message.upsert");
            seen.extend(items.map(|item| item["data"]["uuid"].as_str().unwrap().to_owned()));
        }
    }
    assert_eq!(seen, (2..12).map(|number| uuid(&id, number)).collect::<Vec<_>>());
    assert_eq!(ask("&after=anotherlife:3")["resync"], true);
    assert_eq!(kept.get("/events?after=nonsense").status, 400);
}

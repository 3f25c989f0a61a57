//! The stream: nothing twice, nothing missing, and nobody waits for anybody.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::{Home, Kept, Socket, append, line, session, uuid};

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

#[test]
fn a_client_that_is_killed_at_every_event_ends_with_the_same_state() {
    const LINES: usize = 14;
    let home = Home::new();
    let ids: Vec<String> = (0..=LINES).map(|_| session()).collect();
    for id in &ids {
        home.conversation(id, "/tmp", 2);
    }
    let kept = home.keeper();
    for (cut, id) in ids.iter().enumerate() {
        let topic = format!("session:{id}");
        let mut known = Known::default();
        known.read(&kept, id, "");
        let mut socket = Socket::open(&kept);
        socket.subscribe(&topic, Some(&known.head));
        socket.until("caught_up");
        let write = |numbers: std::ops::Range<usize>| {
            numbers.for_each(|number| append(&home.transcript("-project", id), &line(id, "/tmp", number)));
        };
        write(2..2 + LINES / 2);
        let mut seen = 0;
        while seen < cut.min(LINES / 2) {
            seen += usize::from(known.take(&socket.next()));
        }
        drop(socket);
        write(2 + LINES / 2..2 + LINES);
        let mut socket = Socket::open(&kept);
        socket.subscribe(&topic, Some(&known.head));
        while known.items.len() < 2 + LINES {
            known.take(&socket.next());
        }
        let mut fresh = Known::default();
        fresh.read(&kept, id, "");
        assert_eq!(known.items, fresh.items, "cut after {cut}");
        assert!(known.told.values().all(|times| *times == 1), "cut after {cut}: {:?}", known.told);
    }
}

#[test]
fn a_client_survives_a_restart_of_the_keeper_by_its_position() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 4);
    let mut known = Known::default();
    {
        let kept = home.keeper();
        known.read(&kept, &id, "");
    }
    append(&path, &(4..9).map(|number| line(&id, "/tmp", number)).collect::<String>());
    let kept = home.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe(&format!("session:{id}"), Some(&known.head));
    let (_, resync) = socket.until("resync");
    assert_eq!(resync["reason"], "not-covered");
    socket.until("caught_up");
    let position = known.head["position"].as_str().unwrap().to_owned();
    let page = known.read(&kept, &id, &format!("&after={position}"));
    assert_eq!(page["items"].as_array().unwrap().len(), 5, "only what is new was read");
    append(&path, &line(&id, "/tmp", 9));
    while known.items.len() < 10 {
        known.take(&socket.next());
    }
    assert_eq!(known.told, BTreeMap::from([(uuid(&id, 9), 1)]));
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
    kept.until("all of it was told", || (kept.get("/info").good()["seq"].as_u64() >= Some(6)).then_some(()));
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
    // Whatever came before this had its chance to be passed on.
    let (before, _) = socket.until("message.upsert");
    assert!(before.iter().all(|frame| frame["type"] != "message.upsert"));
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
    socket.say(json!({ "type": "hello", "padding": "x".repeat(100_000) }));
    assert!(socket.try_next().is_none());
}

#[test]
fn a_client_that_never_reads_holds_nobody_up() {
    rethread_keeper::allow_many_open_files();
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    let topic = format!("session:{id}");
    let mut stuck = Socket::open(&kept);
    stuck.subscribe(&topic, None);
    const CLIENTS: usize = 1000;
    const EVENTS: usize = 60;
    let mut sockets: Vec<Socket> = (1..CLIENTS).map(|_| Socket::open(&kept)).collect();
    for socket in &mut sockets {
        socket.subscribe(&topic, None);
    }
    for socket in &mut sockets {
        socket.until("caught_up");
    }
    let metrics = String::from_utf8(kept.get("/metrics").body).unwrap();
    assert!(metrics.contains(&format!("stream_clients {CLIENTS}")), "{metrics}");
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
}

#[test]
fn a_client_that_is_far_too_slow_is_told_to_read_anew() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    let kept = home.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe(&format!("session:{id}"), None);
    socket.until("caught_up");
    // More than the ring holds, and more than sockets take in.
    let large = "x".repeat(200 << 10);
    for number in 2..260 {
        append(&path, &line(&id, "/tmp", number).replace(&format!("message {number} of"), &large));
    }
    kept.until("all of it was told", || {
        (kept.get("/info").good()["seq"].as_u64() >= Some(258)).then_some(())
    });
    let began = Instant::now();
    let (before, resync) = socket.until("resync");
    assert_eq!(resync["reason"], "too-slow");
    assert!(before.len() < 258 && began.elapsed() < Duration::from_secs(60));
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

//! What is damaged is listed as that, with what is wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rethread_store::{Entry, NewSession};
use serde_json::json;

use crate::kit::{Home, Socket, append, line, session};

/// Makes a file look as if nobody had written to it for long.
fn rest(path: &Path) {
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().append(true).open(path).unwrap().set_modified(hour_ago).unwrap();
}

/// Claudekeeper's fault 4: a damaged file was left out instead of shown.
#[test]
fn a_damaged_session_is_listed_with_its_health_and_read_as_far_as_it_goes() {
    let home = Home::new();
    let (damaged, empty) = (session(), session());
    let path = home.conversation(&damaged, "/tmp", 4);
    append(&path, "garbage that is no line\n");
    append(&path, &line(&damaged, "/tmp", 4));
    home.conversation(&empty, "/tmp", 0);
    let kept = home.keeper();
    let listed = kept.get("/sessions").good();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let health = |id: &str| kept.get(&format!("/sessions/{id}")).good()["health"].clone();
    assert_eq!(health(&empty)["status"], "unreadable");
    let messages = || kept.get(&format!("/sessions/{damaged}/messages")).good()["items"].clone();
    assert_eq!(messages().as_array().unwrap().len(), 5);
    let problems = kept.get(&format!("/sessions/{damaged}/problems")).good();
    assert_eq!(problems["health"]["status"], "degraded");
    assert_eq!(problems["health"]["bad_lines"], 1);
    assert_eq!(problems["items"][0]["kind"], "garbage");
    let text = fs::read(&path).unwrap();
    let offset = problems["items"][0]["offset"].as_u64().unwrap() as usize;
    assert!(text[offset..].starts_with(b"garbage that"));
    // What was found stays known, also of a file that grows.
    append(&path, &line(&damaged, "/tmp", 5));
    kept.until("it has grown", || (messages().as_array().unwrap().len() == 6).then_some(()));
    assert_eq!(health(&damaged), problems["health"]);
}

#[test]
fn a_damaged_middle_is_found_in_the_background_told_and_known_to_the_next_keeper() {
    let home = Home::new();
    let (damaged, sound) = (session(), session());
    rest(&home.conversation(&sound, "/tmp", 4));
    let path = home.conversation(&damaged, "/tmp", 40);
    append(&path, &format!("garbage that is no line\n{}\n", "x".repeat(300)));
    (40..80).for_each(|number| append(&path, &line(&damaged, "/tmp", number)));
    rest(&path);
    let kept = home.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    let degraded = || kept.get("/sessions?health=degraded").good()["items"].clone();
    assert_eq!(degraded(), json!([]), "nobody has read all of it yet");
    let told = socket.until("health.changed").1["data"].clone();
    let found = degraded();
    assert_eq!((&found[0]["session_id"], &found[0]["health"]), (&json!(damaged), &told["health"]));
    let problems = kept.get(&format!("/sessions/{damaged}/problems")).good();
    assert_eq!(problems["health"], told["health"]);
    assert_eq!(problems["health"]["bad_lines"], 2);
    let of_sound = || kept.get(&format!("/sessions/{sound}")).good()["health"].clone();
    kept.until("the other was read as well", || (of_sound()["bad_lines"] == 0).then_some(()));
    let doctor = kept.get("/doctor").good();
    assert_eq!((&doctor["damaged"][0]["session_id"], &doctor["unread"]), (&json!(damaged), &json!(0)));
    drop(kept);
    let kept = home.keeper();
    assert_eq!(kept.get(&format!("/sessions/{damaged}")).good()["health"], problems["health"]);
}

#[test]
fn a_stored_session_that_cannot_be_read_is_listed_as_such() {
    let home = Home::new();
    let store = home.store();
    for id in ["damaged", "sound"] {
        let begun = pollster::block_on(store.create(NewSession::at("/tmp").id(id.parse().unwrap()))).unwrap();
        begun.append_and_wait(Entry::parse(r#"{"role":"user","content":"hi"}"#).unwrap()).unwrap();
    }
    store.close().unwrap();
    let log = home.path().join("store/sessions/damaged/messages.jsonl");
    // A folder where the log should be: no read of it can succeed.
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    let kept = home.keeper();
    let listed = kept.get("/sessions").good();
    let health = |id: &str| {
        let items = listed["items"].as_array().unwrap();
        items.iter().find(|item| item["session_id"] == id).map(|item| item["health"]["status"].clone())
    };
    assert_eq!((health("sound"), health("damaged")), (Some(json!("ok")), Some(json!("unreadable"))));
}

//! Finding a session among many, and a word in all of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Home, Kept, append, line, session, uuid};

/// Returns which messages a search finds, and by which tools.
fn found(kept: &Kept, query: &str) -> Vec<(String, Option<String>)> {
    let page = kept.get(&format!("/search?q={query}")).good();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let hit = |hit: &Value| (text(&hit["message"]).unwrap(), text(&hit["tool"]));
    page["items"].as_array().unwrap().iter().map(hit).collect()
}

#[test]
fn a_search_is_narrowed_by_tool_and_by_time() {
    let home = Home::new();
    let id = session();
    // Lines are a second apart, from ten o'clock on.
    let path = home.conversation(&id, "/tmp", 4);
    let call = |number: usize, tool: &str, input: Value| {
        let mut entry: Value = serde_json::from_str(&line(&id, "/tmp", number)).unwrap();
        let block = json!({ "type": "tool_use", "id": format!("t{number}"), "name": tool, "input": input });
        entry["message"] = json!({ "role": "assistant", "content": [block] });
        (entry["type"], entry["uuid"]) = (json!("assistant"), json!(uuid(&id, number)));
        append(&path, &format!("{entry}\n"));
    };
    call(4, "Bash", json!({ "command": "echo message" }));
    call(5, "Write", json!({ "file_path": "/tmp/x", "content": "a message" }));
    let kept = home.keeper();
    let at = |numbers: &[usize]| numbers.iter().map(|number| uuid(&id, *number)).collect::<Vec<_>>();
    let messages =
        |query: &str| found(&kept, query).into_iter().map(|(message, _)| message).collect::<Vec<_>>();
    assert_eq!(messages("message"), at(&[0, 1, 2, 3, 4, 5]));
    assert_eq!(found(&kept, "message&tool=Bash"), [(uuid(&id, 4), Some("Bash".into()))]);
    assert_eq!(found(&kept, "message&tool=Write"), [(uuid(&id, 5), Some("Write".into()))]);
    assert_eq!(found(&kept, "message&tool=Read"), []);
    // Both ends belong to it.
    assert_eq!(messages("message&after=2026-11-15T10:00:03Z"), at(&[3, 4, 5]));
    assert_eq!(messages("message&before=2026-11-15T10:00:01Z"), at(&[0, 1]));
    assert_eq!(messages("message&after=2026-11-15T10:00:01Z&before=2026-11-15T10:00:02Z"), at(&[1, 2]));
    assert_eq!(messages("message&after=2026-11-15T10:00:04Z&tool=Bash"), at(&[4]));
    assert_eq!(messages("message&after=2030-01-01T00:00:00Z"), at(&[]));
    assert_eq!(kept.get("/search?q=message&after=yesterday").status, 400);
}

#[test]
fn projects_count_their_sessions_and_the_one_used_last_is_first() {
    let home = Home::new();
    let place = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    for name in ["api/.git", "api/deep", "web"] {
        fs::create_dir_all(home.path().join(name)).unwrap();
    }
    for (cwd, count) in [("web", 1), ("api", 2), ("api/deep", 1)] {
        for _ in 0..count {
            home.conversation(&session(), &place(cwd), 2);
        }
    }
    let kept = home.keeper();
    let projects = || {
        let page = kept.get("/projects").good();
        let item =
            |item: &Value| (item["project"].as_str().unwrap().to_owned(), item["sessions"].as_u64().unwrap());
        page["items"].as_array().unwrap().iter().map(item).collect::<Vec<_>>()
    };
    assert_eq!(projects(), [(place("api"), 3), (place("web"), 1)]);
    let api = kept.list("/projects")["items"][0].clone();
    let mut directories: Vec<&str> =
        api["directories"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    directories.sort_unstable();
    assert_eq!(directories, [place("api"), place("api/deep")]);
    assert_eq!((&api["waiting"], &api["running"]), (&json!(0), &json!(0)));
    // What is put away does not count; what is listed by project is what was counted.
    let listed = kept.get(&format!("/sessions?project={}", place("api"))).good()["items"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    let one = listed[0]["session_id"].as_str().unwrap();
    kept.patch(&format!("/sessions/{one}"), json!({ "archived": true })).good();
    assert!(projects().contains(&(place("api"), 2)), "{:?}", projects());
}

#[test]
fn sessions_are_listed_by_their_health() {
    let home = Home::new();
    let (sound, torn, empty) = (session(), session(), session());
    home.conversation(&sound, "/tmp", 2);
    append(&home.conversation(&torn, "/tmp", 2), "{\"type\":\"user\",\"uuid\":\"x");
    home.conversation(&empty, "/tmp", 0);
    let kept = home.keeper();
    let ids = |health: &str| {
        let page = kept.get(&format!("/sessions?health={health}")).good();
        let id = |card: &Value| card["session_id"].as_str().unwrap().to_owned();
        page["items"].as_array().unwrap().iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(ids("ok"), [sound]);
    assert_eq!(ids("degraded"), [torn]);
    assert_eq!(ids("unreadable"), [empty]);
    assert_eq!(kept.get("/sessions?health=splendid").status, 400);
}

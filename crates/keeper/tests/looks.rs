//! What the page shows beside conversations: damaged bytes, sessions in small, a demonstration, pictures in prompts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rethread_keeper::Demonstration;
use serde_json::{Value, json};

use crate::kit::{Home, Kept, append, line, session, uuid};

/// Asks for what is wrong with a session, and how many lines it has.
fn problems(kept: &Kept, id: &str) -> (Value, Vec<Value>) {
    let problems = kept.get(&format!("/sessions/{id}/problems")).good();
    (problems["lines"].clone(), problems["items"].as_array().unwrap().clone())
}

#[test]
fn a_damaged_place_is_shown_with_its_line_its_bytes_and_what_can_be_read_of_it() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 3);
    let before = fs::metadata(&path).unwrap().len();
    let mut text = fs::read(&path).unwrap();
    text.extend(b"{\"type\":\"assistant\",\"uuid\":\"7c1e");
    text.extend([0; 412]);
    text.extend(b"\n");
    text.extend(line(&id, "/tmp", 3).bytes());
    text.extend(b"{\"type\":\"assistant\",\"text\":\"a rejected request sh");
    fs::write(&path, text).unwrap();
    let kept = home.keeper();
    let (lines, items) = problems(&kept, &id);
    assert_eq!((lines, items.len()), (json!(6), 2), "{items:?}");
    assert_eq!(
        items[0]["excerpt"],
        json!({ "line": 4, "zeros": 412, "pieces": [
            { "text": "{\"type\":\"assistant\",\"uuid\":\"7c1e", "damaged": false },
            { "text": "00 × 412", "damaged": true },
        ] })
    );
    let torn = &items[1]["excerpt"];
    assert_eq!(torn["line"], 6);
    assert_eq!(torn["pieces"][1], json!({ "text": "end of file", "damaged": true }));
    let bytes = kept.get(&format!("/sessions/{id}/bytes?offset={before}&length=40")).body;
    assert_eq!(bytes, [b"{\"type\":\"assistant\",\"uuid\":\"7c1e".as_slice(), &[0; 8]].concat());
    for beyond in [999_999, u64::MAX] {
        let answer = kept.get(&format!("/sessions/{id}/bytes?offset={beyond}"));
        assert_eq!((answer.status, answer.body), (200, Vec::new()), "{beyond}");
    }
    assert_eq!(kept.get(&format!("/sessions/{}/bytes?offset=0", session())).status, 404);
}

#[test]
fn ids_that_are_there_twice_show_no_bytes_and_many_places_only_some() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 2);
    append(&path, &line(&id, "/tmp", 1));
    append(&path, &"no entry\n".repeat(150));
    let (_, items) = problems(&home.keeper(), &id);
    let with_bytes = |kind: &str| {
        let of_kind = items.iter().filter(|item| item["kind"] == kind);
        of_kind.map(|item| !item["excerpt"].is_null()).collect::<Vec<_>>()
    };
    assert_eq!(with_bytes("duplicate_uuid"), [false]);
    assert_eq!(with_bytes("garbage"), [vec![true; 100], vec![false; 50]].concat());
}

#[test]
fn a_file_of_zeros_stays_unreadable_after_its_lines_were_looked_at() {
    let home = Home::new();
    let id = session();
    let path = home.conversation(&id, "/tmp", 0);
    fs::write(&path, [0; 300]).unwrap();
    let kept = home.keeper();
    let status = || kept.get(&format!("/sessions/{id}")).good()["health"]["status"].clone();
    assert_eq!(status(), "unreadable");
    let problems = kept.get(&format!("/sessions/{id}/problems")).good();
    assert_eq!(problems["health"]["status"], "unreadable", "{problems}");
    assert_eq!(status(), "unreadable");
    assert_eq!(problems["items"][0]["excerpt"]["pieces"], json!([{ "text": "00 × 300", "damaged": true }]));
}

/// A tool's result as Claude Code writes it after an edit.
fn edit(id: &str, number: usize, result: Value) -> String {
    let mut entry: Value = serde_json::from_str(&line(id, "/tmp", number)).unwrap();
    let block = json!({ "tool_use_id": "toolu_1", "type": "tool_result", "content": "ok" });
    entry["type"] = json!("user");
    entry["message"] = json!({ "role": "user", "content": [block] });
    entry["toolUseResult"] = result;
    format!("{entry}\n")
}

#[test]
fn a_sketch_has_the_prompts_the_turns_that_changed_files_and_the_lines_of_their_edits() {
    let home = Home::new();
    let (id, other) = (session(), session());
    // Prompts have even numbers, answers odd ones.
    let path = home.conversation(&id, "/tmp", 4);
    home.conversation(&other, "/tmp", 2);
    let patch = json!([{ "oldStart": 1, "lines": [" same", "-old", "+new", "+more"] }]);
    append(
        &path,
        &edit(&id, 4, json!({ "filePath": "/a", "originalFile": "same\nold\n", "structuredPatch": patch })),
    );
    append(&path, &edit(&id, 5, json!({ "type": "create", "content": "1\n2\n3\n", "structuredPatch": [] })));
    append(&path, &edit(&id, 6, json!({ "stdout": "structuredPatch", "structuredPatch": "no patch" })));
    let kept = home.keeper();
    let page = kept.get(&format!("/sketches?sessions={id},nobody,..,{other}")).good();
    assert_eq!(
        page["items"],
        json!([
            { "session": id, "sketch": {
                "marks": ["prompt", "prompt", "change"], "messages": 7, "prompts": 2, "changes": 1, "insertions": 5, "deletions": 1,
            } },
            { "session": other, "sketch": {
                "marks": ["prompt"], "messages": 2, "prompts": 1, "changes": 0, "insertions": 0, "deletions": 0,
            } },
        ])
    );
    // It follows its file.
    append(&path, &edit(&id, 7, json!({ "structuredPatch": [{ "lines": ["+x"] }] })));
    kept.until("the sketch follows", || {
        let page = kept.get(&format!("/sketches?sessions={id}")).good();
        (page["items"][0]["sketch"]["insertions"] == 6).then_some(())
    });
    let many: Vec<String> = (0..65).map(|number| uuid(&id, number)).collect();
    assert_eq!(kept.get(&format!("/sketches?sessions={}", many.join(","))).status, 400);
}

#[test]
fn a_demonstration_is_offered_where_there_is_one_and_begun_when_somebody_wants_it() {
    let home = Home::new();
    let wishes: Arc<AtomicU64> = Arc::default();
    let heard = Arc::clone(&wishes);
    let mut settings = home.settings();
    settings.demonstration = Some(Demonstration::new(move || {
        let number = heard.fetch_add(1, Ordering::Relaxed);
        async move {
            if number == 0 {
                Err("there is no room".to_owned())
            } else {
                Ok("http://localhost:1/".to_owned())
            }
        }
    }));
    let kept = Kept::start(settings);
    let offers = |info: Value| info["features"].as_array().unwrap().contains(&json!("demo"));
    assert!(offers(kept.get("/info").good()));
    assert_eq!(wishes.load(Ordering::Relaxed), 0);
    let refused = kept.post("/demo", json!({}));
    assert_eq!((refused.status, &refused.json()["detail"]), (503, &json!("there is no room")));
    assert_eq!(kept.post("/demo", json!({})).good()["url"], "http://localhost:1/");
    drop(kept);
    let without = home.keeper();
    assert!(!offers(without.get("/info").good()));
    assert_eq!(without.post("/demo", json!({})).status, 404);
}

//! What the keeper serves to browsers, and what the page is built against.

use std::fs;
use std::path::Path;

use crate::kit::{Home, line, session, uuid};

/// The page's types are generated from this file. `RETHREAD_UPDATE=1` writes it anew; then `npm --prefix web run types`.
#[test]
fn the_page_is_built_against_the_present_description() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/openapi.json");
    let present = rethread_keeper::openapi() + "\n";
    if std::env::var_os("RETHREAD_UPDATE").is_some() {
        fs::write(&path, &present).unwrap();
    }
    let built_against = fs::read_to_string(&path).unwrap_or_default();
    assert!(built_against == present, "web/openapi.json is old: run this test with RETHREAD_UPDATE=1");
}

#[test]
fn anybody_may_have_the_page_and_nothing_else_beneath_its_folder() {
    let home = Home::new();
    let kept = home.keeper();
    let nobody = [("Authorization", "")];
    let page = kept.ask("GET", "/", &nobody, "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    for missing in ["/assets/nothing.js", "/assets/index.html", "/assets/", "/index.html"] {
        let status = kept.ask("GET", missing, &nobody, "").status;
        assert!(matches!(status, 401 | 404), "{missing}: {status}");
    }
}

#[test]
fn a_page_of_a_conversation_can_be_asked_for_by_number() {
    let home = Home::new();
    let id = session();
    let lines: String = (0..40).map(|number| line(&id, "/tmp/x", number)).collect();
    let path = home.conversation(&id, "/tmp/x", 0);
    fs::write(path, lines).unwrap();
    let kept = home.keeper();
    let page = kept.get(&format!("/sessions/{id}/messages?after=9:&limit=2")).good();
    let ids: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["uuid"].clone()).collect();
    assert_eq!(ids, [uuid(&id, 10), uuid(&id, 11)]);
    assert_eq!(kept.get(&format!("/sessions/{id}/messages?after=40:&limit=2")).status, 404);
}

/// What JSON writes in another way has nothing to sieve lines by; looking for it went round for ever.
#[test]
fn a_search_for_what_json_escapes_comes_to_an_end() {
    let home = Home::new();
    home.conversation(&session(), "/tmp/x", 5);
    let kept = home.keeper();
    for query in ["%22%22", "%5C%5C", "%22%5C%22", "%F0%9F%A6%80%F0%9F%A6%80"] {
        assert_eq!(kept.get(&format!("/search?q={query}")).good()["items"], serde_json::json!([]), "{query}");
    }
}

#[test]
fn a_search_within_one_session_finds_everything_in_it_and_nothing_elsewhere() {
    let home = Home::new();
    let (one, other) = (session(), session());
    home.conversation(&one, "/tmp/x", 30);
    home.conversation(&other, "/tmp/x", 30);
    let kept = home.keeper();
    let found = kept.get(&format!("/search?q=message&session={one}&limit=100")).good();
    let hits = found["items"].as_array().unwrap();
    assert_eq!((hits.len(), hits.iter().all(|hit| hit["session_id"] == *one)), (30, true));
}

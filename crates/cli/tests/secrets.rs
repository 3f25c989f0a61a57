//! Secrets: found in sessions of both homes, and kept out of the store.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;

use serde_json::Value;

use crate::kit::Home;

const NATIVE: &str = "11111111-1111-4111-8111-111111111111";

/// Opens nothing, and is put together here so that no scanner takes this file for a leak.
fn key() -> String {
    ["gh", "p_", "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zC0fR3uI6"].concat()
}

fn said(uuid: &str, text: &str) -> String {
    serde_json::json!({ "uuid": uuid, "type": "user", "message": { "role": "user", "content": text } })
        .to_string()
}

#[test]
fn secrets_are_found_in_both_homes_and_never_printed() {
    let home = Home::new();
    let folder = home.path().join(".claude/projects/-work-one");
    fs::create_dir_all(&folder).unwrap();
    let lines = [said("u-1", "hello"), said("u-2", &format!("export TOKEN={}\nnow push", key()))];
    let transcript = folder.join(format!("{NATIVE}.jsonl"));
    fs::write(&transcript, lines.join("\n")).unwrap();
    home.answer(&["new", "--id", "mine"]);
    home.feed(&["append", "mine"], said("u-3", "db: postgres://ada:correct-horse@localhost/x"));
    let before = fs::read(&transcript).unwrap();

    let told = home.run(&["scan"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.out.contains("github-token  ghp_… of 40 characters"), "{told:?}");
    assert!(told.out.contains("password-in-url  … of 13 characters, messages, line 2"), "{told:?}");
    assert!(told.err.contains("Looked at 2 sessions: 2 secrets in 2 of them."), "{told:?}");
    let json = home.run(&["scan", "--json"]);
    let found: Vec<Value> = json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((found.len(), json.code), (2, 1));
    assert_eq!((found[0]["kind"].as_str(), found[0]["line"].as_u64()), (Some("github-token"), Some(2)));
    assert_eq!((found[1]["home"].as_str(), found[1]["session_id"].as_str()), (Some("stored"), Some("mine")));
    for secret in [key().as_str(), "correct-horse"] {
        assert!([&told.out, &told.err, &json.out, &json.err].iter().all(|text| !text.contains(secret)));
    }
    assert_eq!(fs::read(&transcript).unwrap(), before, "nothing is changed");
}

#[test]
fn a_session_without_secrets_is_said_to_have_none() {
    let home = Home::new();
    home.conversation("mine", 3);
    let told = home.run(&["scan", "mine"]);
    assert_eq!((told.code, told.out.as_str()), (0, ""));
    assert!(told.err.contains("Looked at 1 session: no secret found."), "{told:?}");
}

#[test]
fn with_redact_no_way_into_the_store_lets_a_secret_pass() {
    let mut home = Home::new();
    let text = format!("use {} for it", key());
    home.answer(&["new", "--id", "mine"]);
    home.feed(&["append", "mine", "--redact"], said("u-1", &text));
    home.set([("RETHREAD_REDACT", "1")]);
    home.feed(&["append", "mine"], said("u-2", &text));
    home.feed(&["append", "mine", "--transcript"], said("u-3", &text));
    let folder = home.path().join(".claude/projects/-work-one");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{NATIVE}.jsonl")), said("u-4", &text) + "\n").unwrap();
    for _ in 0..2 {
        // The second time, nothing is new: what was taken out does not look like a change.
        assert_eq!(home.run(&["import", "--claude"]).code, 0);
    }
    let imported = home.answer(&["show", &format!("stored:{NATIVE}"), "--all", "--raw"]);
    assert_eq!(imported.matches("[redacted github-token]").count(), 1, "{imported}");
    assert!(home.answer(&["show", "mine"]).contains("use [redacted github-token] for it"));
    let left: Vec<String> = walk(&home.store());
    assert_eq!(left, Vec::<String>::new(), "files that hold the key");
}

/// Returns the files beneath a folder in which the key stands.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()));
        } else if String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).contains(&key()) {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

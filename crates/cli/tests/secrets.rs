//! Secrets: found in sessions of both homes, and kept out of the store.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;

use pollster::block_on;
use rethread_store::backend::Expect;
use rethread_store::{FileBackend, Options, Store};
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

/// Once, only what was said was looked at.
#[test]
fn secrets_are_found_in_names_in_files_and_in_what_claude_code_keeps_beside_a_transcript() {
    let home = Home::new();
    let folder = home.path().join(".claude/projects/-work-one");
    fs::create_dir_all(folder.join(NATIVE).join("tool-results")).unwrap();
    fs::write(folder.join(format!("{NATIVE}.jsonl")), said("u-1", "hello") + "\n").unwrap();
    fs::write(folder.join(NATIVE).join("tool-results/out.txt"), format!("a\nb\nTOKEN={}\n", key())).unwrap();
    let history = home.path().join(".claude/file-history").join(NATIVE);
    fs::create_dir_all(&history).unwrap();
    fs::write(history.join("abc@v1"), key()).unwrap();
    home.answer(&["new", "--id", "mine", "--name", &key()]);
    let project = home.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("touched.env"), format!("\nKEY={}\n", key())).unwrap();
    fs::write(project.join("lies-there.env"), format!("{}2", key())).unwrap();
    let root = ["--root", project.to_str().unwrap()];
    let touched = project.join("touched.env");
    let words = ["checkpoint", "mine", "--message", "m", touched.to_str().unwrap()];
    home.answer(&[&words[..], &root].concat());
    home.answer(&[&["checkpoint", "mine", "--message", "m", "--tree"][..], &root].concat());
    let json = home.run(&["scan", "--json"]);
    let found = json.out.lines().map(|line| {
        let found: Value = serde_json::from_str(line).unwrap();
        format!("{} {}", found["place"].as_str().unwrap(), found["line"])
    });
    let mut found: Vec<String> = found.collect();
    found.sort();
    let contents = ["contents of lies-there.env 1", "contents of touched.env 2"];
    let beside = ["beside/tool-results/out.txt 3", "file-history/abc@v1 1"];
    let mut expected = [&beside[..], &contents, &["messages 1"]].concat();
    expected.sort();
    assert_eq!(found, expected, "{json:?}");
    assert!(!json.out.contains(&key()));
}

#[test]
fn secrets_are_found_in_what_is_remembered_of_projects() {
    let home = Home::new();
    home.conversation("mine", 1);
    let store = Store::new(FileBackend::new(home.store()), Options::default());
    let text = format!("it is built with make\npush with {}\n", key());
    block_on(store.set_project_memory("/work".as_ref(), &text, Expect::Any)).unwrap();
    store.close().unwrap();
    let told = home.run(&["scan"]);
    assert_eq!(told.out, "memory  /work\n  github-token  ghp_… of 40 characters, memory of /work, line 2\n");
    let sum = "Looked at 1 session and what is remembered of 1 project: 1 secret in 1 of them.";
    assert!(told.code == 1 && told.err.contains(sum), "{told:?}");
    let json: Value = serde_json::from_str(&home.run(&["scan", "--json"]).out).unwrap();
    assert_eq!(
        (&json["session_id"], &json["place"], &json["line"]),
        (&Value::Null, &"memory of /work".into(), &2.into())
    );
    assert_eq!(home.run(&["scan", "mine"]).code, 0, "a session has nothing to do with it");
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

#[test]
fn with_redact_no_name_and_no_copy_lets_a_secret_pass() {
    let home = Home::new();
    home.answer(&["--redact", "new", "--id", "called", "--name", &key()]);
    assert_eq!(home.run(&["--redact", "rename", "called", &format!("again {}", key())]).code, 0);
    assert_eq!(home.run(&["--redact", "tag", "called", &key()]).code, 0);
    assert_eq!(walk(&home.store()), Vec::<String>::new(), "files that hold the key");
    home.answer(&["new", "--id", "mine", "--name", &format!("with {}", key())]);
    home.feed(&["append", "mine"], said("u-1", &format!("use {} for it", key())));
    home.answer(&["fork", "mine", "--id", "fork"]);
    let copies = ["copied", "synced"].map(|name| home.path().join(name).to_str().unwrap().to_owned());
    for _ in 0..2 {
        for words in [&["copy", "fork", "--to", &copies[0]][..], &["sync", "--to", &copies[1]]] {
            let told = home.run(&[&["--redact"], words].concat());
            assert_eq!(told.code, 0, "{told:?}");
        }
    }
    for copy in &copies {
        assert_eq!(walk(copy.as_ref()), Vec::<String>::new(), "files that hold the key");
        let listed = home.answer(&["--store", copy, "list", "--stored"]);
        assert!(listed.contains("with [redacted github-token]"), "{listed}");
        assert_eq!(home.run(&["--store", copy, "verify"]).code, 0);
    }
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

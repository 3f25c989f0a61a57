//! The store of the official SDKs over HTTP. Their own suite, on every store, is in `crates/cli/tests/clients.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use rethread_keeper::route_table;
use serde_json::{Value, json};

use crate::kit::{Answer, Home, Kept};

const UUID: &str = "0198f2c4-0000-7000-8000-000000000000";

fn key(session: &str) -> Value {
    json!({ "project_key": "-home-me", "session_id": session })
}

fn ask(kept: &Kept, verb: &str, body: &Value) -> Answer {
    kept.post(&format!("/session-store/default/{verb}"), body.clone())
}

fn append(kept: &Kept, key: &Value, batch: &str, entries: Value) -> Value {
    let body = json!({ "key": key, "batches": [{ "id": batch, "entries": entries }] });
    ask(kept, "append", &body).good()
}

fn load(kept: &Kept, key: &Value) -> Value {
    ask(kept, "load", &json!({ "key": key })).good()["entries"].clone()
}

fn token(kept: &Kept, name: &str, namespace: &str) -> String {
    let made = kept.post("/tokens", json!({ "name": name, "namespace": namespace })).good();
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn entries_come_back_byte_for_byte() {
    let home = Home::new();
    let kept = home.keeper();
    let lines = [
        r#"{"type":"x","b":1.0e0,"a":"\ud83d","a":null ,"n":12345678901234567890123}"#,
        r#"{ "type" : "y", "_rt":"mine", "text":"\u0000ü\n" }"#,
        "{}",
    ];
    let body =
        format!(r#"{{"key":{},"batches":[{{"id":"b","entries":[{}]}}]}}"#, key(UUID), lines.join(" ,\n"));
    assert_eq!(kept.ask("POST", "/api/v1/session-store/default/append", &[], &body).status, 200);
    let loaded = ask(&kept, "load", &json!({ "key": key(UUID) }));
    let text = String::from_utf8(loaded.body).unwrap();
    assert!(text.starts_with(&format!(r#"{{"entries":[{}],"next":"#, lines.join(","))), "{text}");
}

#[test]
fn a_keeper_that_leaves_secrets_out_does_so_for_the_sdks_and_knows_what_it_has() {
    let home = Home::new();
    // Opens nothing, and is put together here so that no scanner takes this file for a leak.
    let secret = ["gh", "p_", "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zC0fR3uI6"].concat();
    let redactor = Some(std::sync::Arc::new(rethread_store::Redactor::new()));
    let options = rethread_store::Options { redactor, ..Default::default() };
    let backend = rethread_store::FileBackend::new(home.path().join("store"));
    let mut settings = home.settings();
    settings.store = rethread_store::Store::new(backend, options);
    let kept = crate::kit::Kept::start(settings);
    // A key is what the SDK calls its session: it has to be found by it again.
    let keys = [key(UUID), key(&secret)];
    for key in &keys {
        let batch = json!([
            { "type": "user", "uuid": "u1", "message": { "content": format!("use {secret}") } },
            { "type": "custom-title", "customTitle": format!("about {secret}") },
        ]);
        assert_eq!(append(&kept, key, "b1", batch.clone()), json!({ "added": 2, "known": 0 }));
        assert_eq!(append(&kept, key, "b1", batch), json!({ "added": 0, "known": 2 }));
        let loaded = load(&kept, key).to_string();
        assert!(
            !loaded.contains(&secret) && loaded.matches("[redacted github-token]").count() == 2,
            "{loaded}"
        );
    }
    let logs = home.path().join("store/sessions");
    for session in fs::read_dir(logs).unwrap().flatten() {
        let log = fs::read_to_string(session.path().join("messages.jsonl")).unwrap();
        let entries: String = log.lines().filter(|line| !line.contains("\"note\"")).collect();
        assert!(!entries.contains(&secret), "{entries}");
    }
}

#[test]
fn a_batch_that_is_sent_again_changes_nothing_and_entries_without_a_uuid_are_never_merged() {
    let home = Home::new();
    let kept = home.keeper();
    let (named, nameless) = (json!({ "type": "user", "uuid": "u1" }), json!({ "type": "mode", "id": "m" }));
    let batch = json!([named, nameless, nameless]);
    assert_eq!(append(&kept, &key(UUID), "b1", batch.clone()), json!({ "added": 3, "known": 0 }));
    assert_eq!(append(&kept, &key(UUID), "b1", batch.clone()), json!({ "added": 0, "known": 3 }));
    // Another batch with the same content: what has a uuid is known, and what has none is new.
    assert_eq!(append(&kept, &key(UUID), "b2", batch), json!({ "added": 2, "known": 1 }));
    let all = json!([named, nameless, nameless, nameless, nameless]);
    assert_eq!(load(&kept, &key(UUID)), all);
    // The rest of a batch, in a request of its own.
    let rest = json!({ "key": key(UUID), "batches": [{ "id": "b2", "offset": 3, "entries": [nameless] }] });
    assert_eq!(ask(&kept, "append", &rest).good()["added"], 1);
    assert_eq!(ask(&kept, "append", &rest).good()["added"], 0);
    // Elsewhere the same uuid is another entry.
    assert_eq!(append(&kept, &key("other"), "b1", json!([named]))["added"], 1);
}

#[test]
fn any_text_is_a_key_and_no_two_are_the_same() {
    let home = Home::new();
    let kept = home.keeper();
    let long = "/a very long one/".repeat(10_000);
    let texts = ["", ".", "../../etc", "a/b", "a\\b", "\u{0}", "ü \u{202e}", "A", "a", "%2e%2e", "_", &long];
    for (number, text) in texts.iter().enumerate() {
        let main = json!({ "project_key": text, "session_id": text });
        let sub = json!({ "project_key": text, "session_id": text, "subpath": text });
        append(&kept, &main, "b", json!([{ "main": number }]));
        append(&kept, &sub, "b", json!([{ "sub": number }]));
    }
    for (number, text) in texts.iter().enumerate() {
        let main = json!({ "project_key": text, "session_id": text });
        let sub = json!({ "project_key": text, "session_id": text, "subpath": text });
        assert_eq!(load(&kept, &main), json!([{ "main": number }]));
        assert_eq!(load(&kept, &sub), json!([{ "sub": number }]));
        let listed = ask(&kept, "sessions", &json!({ "project_key": text })).good();
        assert_eq!(
            (listed["items"].as_array().unwrap().len(), &listed["items"][0]["session_id"]),
            (1, &json!(text))
        );
        assert_eq!(ask(&kept, "subkeys", &main).good()["items"], json!([text]));
    }
    // Nothing of them became a path.
    for name in fs::read_dir(home.path().join("store/sessions")).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("sdk.") || name.starts_with("sub."), "{name}");
    }
}

/// Once, a key with half of a surrogate pair was refused, although JSON can spell it and JavaScript has such strings.
#[test]
fn a_key_that_is_no_unicode_is_one_as_well_and_comes_back_as_it_was_spelt() {
    let home = Home::new();
    let kept = home.keeper();
    let post = |verb: &str, body: &str| {
        let answer = kept.ask("POST", &format!("/api/v1/session-store/default/{verb}"), &[], body);
        assert_eq!(answer.status, 200, "{body}: {}", String::from_utf8_lossy(&answer.body));
        String::from_utf8(answer.body).unwrap()
    };
    let halves = [
        r#""\ud83d""#,
        r#""\ude00""#,
        r#""a\ud83d\"b""#,
        r#""\ud83d\ud83d""#,
        "\"\u{fdd0}\"",
        "\"\u{fdd0}a\"",
    ];
    // One that somebody might think these are kept as.
    let others = [r#""\\ud83d""#, "\"\u{fdd0}\\\"\\\\ud83d\\\"\"", "\"\u{fffd}\""];
    let all: Vec<&str> = halves.into_iter().chain(others).collect();
    for (number, spelt) in all.iter().enumerate() {
        for key in [
            format!(r#"{{"project_key":"p","session_id":{spelt}}}"#),
            format!(r#"{{"project_key":{spelt},"session_id":"s"}}"#),
            format!(r#"{{"project_key":"q","session_id":"s","subpath":{spelt}}}"#),
        ] {
            let entry = format!(r#"{{"number":{number}}}"#);
            let body = format!(r#"{{"key":{key},"batches":[{{"id":"b","entries":[{entry}]}}]}}"#);
            assert!(post("append", &body).contains(r#""added":1"#), "{key}");
            // However it is spelt the next time.
            let key = key.replace(r"\ud83d", r"\uD83D").replace(r"\\uD83D", r"\\ud83d");
            let loaded = post("load", &format!(r#"{{"key":{key}}}"#));
            assert!(loaded.starts_with(&format!(r#"{{"entries":[{entry}]"#)), "{key}: {loaded}");
        }
    }
    let listed = post("sessions", r#"{"project_key":"p"}"#);
    let parts = post("subkeys", r#"{"project_key":"q","session_id":"s"}"#);
    for spelt in all {
        assert!(listed.contains(&format!(r#""session_id":{spelt}"#)), "{spelt} in {listed}");
        assert!(parts.contains(spelt), "{spelt} in {parts}");
    }
}

#[test]
fn a_token_opens_its_own_namespace_and_nothing_else() {
    let home = Home::new();
    let kept = home.keeper();
    let (ours, theirs) = (token(&kept, "ours", "ours"), token(&kept, "theirs", "theirs"));
    let bearer = |token: &str| format!("Bearer {token}");
    for (method, route) in route_table() {
        let place = route.replace("{namespace}", "theirs").replace("{id}", UUID).replace("{name}", "theirs");
        let place = place.replace("{uuid}", "u1").replace("{agent}", "a1");
        let is_open = matches!(route.as_str(), "/" | "/healthz" | "/api/v1/healthz" | "/assets/{file}");
        if !is_open && route != "/api/v1/auth/exchange" {
            let answer = kept.ask(&method, &place, &[("Authorization", &bearer(&ours))], "{}");
            assert_eq!(answer.status, 403, "{method} {place}");
            assert_eq!(answer.json()["code"], "out-of-scope", "{method} {place}");
        }
    }
    let append = |token: &str, namespace: &str, n: u64| {
        let body =
            json!({ "key": key(UUID), "batches": [{ "id": "b", "entries": [{ "n": n }] }] }).to_string();
        let place = format!("/api/v1/session-store/{namespace}/append");
        kept.ask("POST", &place, &[("Authorization", &bearer(token))], &body).status
    };
    let load = |token: &str, namespace: &str| {
        let place = format!("/api/v1/session-store/{namespace}/load");
        let body = json!({ "key": key(UUID) }).to_string();
        kept.ask("POST", &place, &[("Authorization", &bearer(token))], &body).good()["entries"].clone()
    };
    assert_eq!((append(&ours, "ours", 1), append(&theirs, "theirs", 2)), (200, 200));
    // The same key in another namespace is another session.
    assert_eq!((load(&ours, "ours"), load(&theirs, "theirs")), (json!([{ "n": 1 }]), json!([{ "n": 2 }])));
    for odd in ["ours/../theirs", "OURS", "ours%2f", "ours.", "ourss"] {
        assert_ne!(append(&ours, odd, 3), 200, "{odd}");
    }
    assert_eq!(kept.delete("/tokens/ours").status, 204);
    assert_eq!(append(&ours, "ours", 4), 401);
    assert_eq!(kept.delete("/tokens/ours").status, 404);
    let audit = fs::read_to_string(kept.home.join("audit.jsonl")).unwrap();
    assert!(audit.contains("token-made") && audit.contains("token-revoked") && !audit.contains(&ours));
}

#[test]
fn several_keepers_on_one_store_keep_every_entry_once() {
    let home = Home::new();
    let second = Home::new();
    let mut settings = second.settings();
    settings.store = home.store();
    let keepers = [home.keeper(), Kept::start(settings)];
    // Six programs, some of which say the same: through either keeper, in batches that overlap.
    std::thread::scope(|scope| {
        for program in 0..6 {
            let kept = &keepers[program % 2];
            scope.spawn(move || {
                for round in 0..20 {
                    let own = json!({ "type": "mode", "program": program, "round": round });
                    let shared = json!({ "type": "user", "uuid": format!("u{round}") });
                    append(kept, &key(UUID), &format!("{program}-{round}"), json!([own, shared]));
                }
            });
        }
    });
    let [one, other] = keepers.each_ref().map(|kept| load(kept, &key(UUID)));
    assert_eq!(one, other);
    let entries = one.as_array().unwrap();
    assert_eq!(entries.len(), 6 * 20 + 20);
    for program in 0..6 {
        let own = entries.iter().filter(|entry| entry["program"] == program);
        assert!(own.map(|entry| entry["round"].as_u64().unwrap()).eq(0..20), "each program's order is kept");
    }
}

#[test]
fn a_session_that_is_deleted_begins_again_and_nobody_mixes_the_two() {
    let home = Home::new();
    let kept = home.keeper();
    let sub = json!({ "project_key": "-home-me", "session_id": UUID, "subpath": "subagents/agent-1" });
    append(&kept, &key(UUID), "b", json!([{ "n": 1 }, { "n": 2 }]));
    append(&kept, &sub, "b", json!([{ "n": 3 }]));
    let first = ask(&kept, "load", &json!({ "key": key(UUID) })).good();
    let kept_summary = json!({
        "project_key": "-home-me", "session_id": UUID, "format": "test", "log": first["log"],
        "position": first["next"], "version": first["version"], "data": { "title": "one" },
    });
    assert_eq!(ask(&kept, "summarize", &kept_summary).status, 204);
    assert_eq!(ask(&kept, "delete", &json!({ "key": key(UUID) })).good()["deleted"], 2);
    assert_eq!((load(&kept, &key(UUID)), load(&kept, &sub)), (Value::Null, Value::Null));
    assert_eq!(ask(&kept, "delete", &json!({ "key": key(UUID) })).good()["deleted"], 0);
    // What was read of the one before leads nowhere, and leaves nothing behind.
    assert_eq!(ask(&kept, "summarize", &kept_summary).json()["code"], "begun-again");
    assert_eq!(ask(&kept, "sessions", &json!({ "project_key": "-home-me" })).good()["items"], json!([]));
    append(&kept, &key(UUID), "b", json!([{ "n": 4 }]));
    let stale = json!({ "key": key(UUID), "after": first["next"], "log": first["log"] });
    assert_eq!(ask(&kept, "load", &stale).json()["code"], "begun-again");
    assert_eq!(load(&kept, &key(UUID)), json!([{ "n": 4 }]));
    let summaries = ask(&kept, "summaries", &json!({ "project_key": "-home-me", "format": "test" })).good();
    assert_eq!(summaries["items"][0]["summary"], Value::Null);
}

#[test]
fn a_summary_is_kept_and_told_from_one_that_the_session_has_outgrown() {
    let home = Home::new();
    let kept = home.keeper();
    append(&kept, &key(UUID), "b1", json!([{ "n": 1 }]));
    let loaded = ask(&kept, "load", &json!({ "key": key(UUID) })).good();
    let data = json!({ "title": "one", "deep": [{ "ü": null }] });
    let summary = json!({
        "project_key": "-home-me", "session_id": UUID, "format": "test", "log": loaded["log"],
        "position": loaded["next"], "version": loaded["version"], "data": data,
    });
    assert_eq!(ask(&kept, "summarize", &summary).status, 204);
    let list = |format: &str| {
        ask(&kept, "summaries", &json!({ "project_key": "-home-me", "format": format })).good()["items"][0]
            .clone()
    };
    let fresh = list("test");
    assert_eq!((&fresh["summary"]["data"], &fresh["summary"]["version"]), (&data, &fresh["version"]));
    assert_eq!(list("other")["summary"], Value::Null, "each SDK has its own");
    append(&kept, &key(UUID), "b2", json!([{ "n": 2 }]));
    let stale = list("test");
    assert_ne!(stale["summary"]["version"], stale["version"]);
    let after =
        json!({ "key": key(UUID), "after": stale["summary"]["position"], "log": stale["summary"]["log"] });
    assert_eq!(ask(&kept, "load", &after).good()["entries"], json!([{ "n": 2 }]), "only what is new is read");
}

#[test]
fn a_line_with_an_image_in_it_passes_and_a_long_session_comes_in_pages() {
    let home = Home::new();
    let kept = home.keeper();
    let large = "x".repeat(12 << 20);
    for batch in ["a", "b", "c"] {
        append(&kept, &key(UUID), batch, json!([{ "image": large, "batch": batch }]));
    }
    let (mut after, mut log, mut batches, mut pages) = (json!(0), Value::Null, Vec::new(), 0);
    loop {
        let page = ask(&kept, "load", &json!({ "key": key(UUID), "after": after, "log": log })).good();
        batches.extend(page["entries"].as_array().unwrap().iter().map(|entry| entry["batch"].clone()));
        pages += 1;
        if page["more"] == false {
            break;
        }
        (after, log) = (page["next"].clone(), page["log"].clone());
    }
    assert!(pages >= 3, "{pages}");
    assert_eq!(batches, ["a", "b", "c"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let home = Home::new();
    let kept = home.keeper();
    let batch =
        |id: &str, entries: Value| json!({ "key": key(UUID), "batches": [{ "id": id, "entries": entries }] });
    let refused = |body: Value| {
        let answer = ask(&kept, "append", &body);
        (answer.status, answer.json()["about"]["entry"].clone())
    };
    assert_eq!(refused(batch("b", json!([{}, 3]))), (400, json!(1)));
    assert_eq!(refused(batch("b", json!([[]]))), (400, json!(0)));
    assert_eq!(refused(batch("b c", json!([{}]))), (400, Value::Null));
    let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
    let body = format!(r#"{{"key":{},"batches":[{{"id":"b","entries":[{{"a":{deep}}}]}}]}}"#, key(UUID));
    assert_eq!(kept.ask("POST", "/api/v1/session-store/default/append", &[], &body).status, 400);
    // Nothing of them was stored, nor begun.
    assert_eq!(load(&kept, &key(UUID)), Value::Null);
    assert_eq!(append(&kept, &key(UUID), "b", json!([])), json!({ "added": 0, "known": 0 }));
    assert_eq!(ask(&kept, "sessions", &json!({ "project_key": "-home-me" })).good()["items"], json!([]));
}

#[test]
fn a_session_of_an_sdk_is_one_of_the_keepers_and_its_trash_is_not_overruled() {
    let home = Home::new();
    let kept = home.keeper();
    let line: Value = serde_json::from_str(&crate::kit::line(UUID, "/tmp", 0)).unwrap();
    append(&kept, &key(UUID), "b", json!([line]));
    let sub = json!({ "project_key": "-home-me", "session_id": UUID, "subpath": "subagents/agent-1" });
    append(&kept, &sub, "b", json!([line]));
    let cards = kept.until("it is listed", || {
        let cards = kept.get("/sessions").good()["items"].as_array().unwrap().clone();
        (!cards.is_empty()).then_some(cards)
    });
    assert_eq!(cards.len(), 1, "subagents are parts of their session");
    assert_eq!((&cards[0]["home"], &cards[0]["cwd"]), (&json!("stored"), &json!("/tmp")));
    let id = cards[0]["session_id"].as_str().unwrap();
    let shown = kept.get(&format!("/sessions/{id}/messages")).good();
    assert_eq!(shown["items"][0]["uuid"], line["uuid"]);
    assert_eq!(kept.delete(&format!("/sessions/{id}")).status / 100, 2);
    assert_eq!(load(&kept, &key(UUID)), Value::Null);
    let body = json!({ "key": key(UUID), "batches": [{ "id": "c", "entries": [{ "n": 2 }] }] });
    let refused = ask(&kept, "append", &body);
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("in-the-trash")));
}

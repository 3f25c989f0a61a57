//! What is put away, and what a person asks later: we and the official SDK agree on both.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rethread_transcripts::{ClaudeFolder, ListOptions, Shelf};
use serde_json::{Value, json};

use crate::official::ask;

const BEFORE: &str = "2026-02-09T09:59:59.999Z";
const AT: &str = "2026-02-09T10:00:00.000Z";
const AFTER: &str = "2026-02-09T10:00:00.001Z";

/// A session: what its transcript says after its first prompt, and the note beside it.
struct Case {
    lines: String,
    note: String,
}

fn note() -> String {
    json!({ "archived": true, "at": AT, "by": "sdk" }).to_string()
}

/// Returns an entry of a person's, but for some members of it.
fn entry(at: &str, but: Value) -> String {
    let mut entry = json!({
        "parentUuid": null, "isSidechain": false, "type": "user", "uuid": "u", "sessionId": "s", "cwd": "/p",
        "timestamp": at, "message": { "role": "user", "content": "Hi" },
    });
    entry.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    entry.to_string()
}

fn said(content: Value) -> String {
    entry(AFTER, json!({ "message": { "role": "user", "content": content } }))
}

/// What may be wrong with a note, and where a prompt may stand.
fn notes_and_places() -> Vec<Case> {
    let asked = || entry(AFTER, json!({}));
    let filler = json!({ "type": "assistant", "message": { "content": "x".repeat(70_000) } }).to_string();
    let cases = [
        (entry(BEFORE, json!({})), note()),
        (entry(AT, json!({})), note()),
        (asked(), note()),
        (asked(), note().replace("true", "false")),
        (String::new(), json!({ "archived": true }).to_string()),
        (String::new(), note().replace("2026-02-09T", "one day ")),
        (String::new(), note().replace("sdk", &"x".repeat(4100))),
        (String::new(), note().replace("10:00:00.000Z", "11:00:00.000+01:00")),
        (format!("{}\n{filler}", asked()), note()),
        (format!("{filler}\n{}\n{filler}", asked()), note()),
        // JavaScript reads half a surrogate pair.
        (entry(AFTER, json!({ "slug": "HALF" })).replace("HALF", "\\ud83d"), note()),
    ];
    cases.map(|(lines, note)| Case { lines, note }).into()
}

/// What may be said in a prompt, or in the place of one.
fn contents() -> Vec<String> {
    let pasted =
        |text: &str| format!("<pasted_content id=\"12ab\">\n{text}\n</pasted_content id=\"12ab\">\n");
    let blocks = [
        json!([{ "type": "text", "text": "Hi" }]),
        json!([{ "type": "image", "source": {} }]),
        json!([{ "type": "tool_result", "content": "Hi" }, { "type": "text", "text": "Hi" }]),
        json!([{ "type": "text", "text": "<ide_selection>x</ide_selection>" }, { "type": "text", "text": "Hi" }]),
        json!([{ "text": "Hi" }]),
        json!([]),
        json!(7),
        json!(pasted("Hi")),
        json!(pasted("<p>Hi")),
    ];
    let texts = [
        "Hi",
        "  ",
        "<local-command-stdout>x</local-command-stdout>",
        "<3 you",
        "<b",
        "<B>old",
        "< a>",
        "<a href=x>",
        "<bash-input>ls</bash-input>",
        "<command-name>/x</command-name>",
        "<command-message>x</command-message>",
        "<command-message>x</command-message>\n<command-name>/x</command-name>",
        "[Request interrupted by user]",
    ];
    blocks.into_iter().chain(texts.map(Value::from)).map(said).collect()
}

/// What may be said about a prompt.
fn marks() -> Vec<String> {
    let from = |kind: &str, text: &str| json!({ "origin": { "kind": kind }, "message": { "content": text } });
    let marks = [
        json!({ "isMeta": true }),
        json!({ "isMeta": false }),
        json!({ "isMeta": null }),
        json!({ "isSidechain": true }),
        json!({ "isCompactSummary": true }),
        json!({ "handedOff": true }),
        json!({ "textNotTyped": true }),
        json!({ "turnOrigin": "sdk" }),
        json!({ "turnOrigin": "cron" }),
        json!({ "promptSource": "system" }),
        json!({ "toolUseResult": null }),
        json!({ "toolUseResult": "x" }),
        json!({ "scheduledTaskId": "x" }),
        json!({ "wakeupSource": null }),
        json!({ "timestamp": "then" }),
        json!({ "origin": null }),
        from("human", "Hi"),
        from("human", "<a>"),
        from("human", "<command-name>/x</command-name>"),
        from("human", " "),
        from("task-notification", "Hi"),
    ];
    marks.map(|but| entry(AFTER, but)).into()
}

/// What may be said of a prompt that waited for its turn.
fn queued() -> Vec<String> {
    let attachments = [
        json!({ "type": "queued_command", "prompt": "Hi" }),
        json!({ "type": "queued_command", "prompt": [{ "type": "text", "text": "Hi" }] }),
        json!({ "type": "queued_command", "prompt": "Hi", "isMeta": true }),
        json!({ "type": "queued_command", "prompt": "Hi", "commandMode": "bash" }),
        json!({ "type": "queued_command", "prompt": "Hi", "commandMode": "task-notification" }),
        json!({ "type": "queued_command", "prompt": "Hi", "origin": { "kind": "channel" } }),
    ];
    let line = |it: Value| json!({ "type": "attachment", "timestamp": AFTER, "attachment": it }).to_string();
    attachments.map(line).into()
}

fn id(number: usize) -> String {
    format!("11111111-1111-4111-8111-{number:012}")
}

/// Writes sessions to a folder of projects, each under its number.
fn write(cases: &[Case], claude: &Path) {
    let project = claude.join("projects/-p");
    for (number, Case { lines, note }) in cases.iter().enumerate() {
        let beside = project.join(id(number));
        fs::create_dir_all(&beside).unwrap();
        fs::write(beside.join("archived.json"), note).unwrap();
        let first = entry(BEFORE, json!({}));
        fs::write(beside.with_extension("jsonl"), format!("{first}\n{lines}\n")).unwrap();
    }
}

#[test]
fn what_a_person_asks_later_takes_a_session_out_of_the_archive_as_in_the_official_sdk() {
    let mut cases = notes_and_places();
    let lines = [contents(), marks(), queued()].concat();
    cases.extend(lines.into_iter().map(|lines| Case { lines, note: note() }));
    let folder = tempfile::tempdir().unwrap();
    write(&cases, folder.path());
    let Some(theirs) = ask(&[folder.path()]) else { return };
    let ours = ClaudeFolder::new(folder.path()).list(&ListOptions::default()).unwrap().sessions;
    let mut archived = 0;
    for (number, Case { lines, note }) in cases.iter().enumerate() {
        let their = theirs[0].iter().find(|it| it["sessionId"] == json!(id(number))).unwrap();
        let our = ours.iter().find(|it| it.session_id == id(number)).unwrap();
        assert_eq!(our.archived, their["archived"] == json!(true), "{lines:.500} {note:.500}");
        archived += usize::from(our.archived);
    }
    assert!(archived > 10 && archived + 10 < cases.len(), "{archived} of {}", cases.len());
}

/// The ends of what was put away and never written to again need not be read at each listing.
#[test]
fn a_transcript_that_was_not_written_to_since_holds_no_later_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let later = entry("2036-02-09T10:00:00.000Z", json!({}));
    write(&[Case { lines: later, note: note() }], folder.path());
    let claude = ClaudeFolder::new(folder.path());
    claude.archive(&id(0), Shelf::Archive).unwrap();
    let archived = || claude.list(&ListOptions::default()).unwrap().sessions[0].archived;
    assert!(!archived(), "it was written just now");
    let before = SystemTime::now() - Duration::from_secs(60);
    let file = File::options().append(true).open(claude.find(&id(0)).unwrap()).unwrap();
    file.set_modified(before).unwrap();
    assert!(archived());
}

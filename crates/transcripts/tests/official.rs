//! Our list and our messages are those of the official TypeScript SDK, but where we differ on purpose.
//!
//! On purpose, each with a test here or in `damage.rs`: with two branches the SDK takes the last entry in the file and
//! we, like the CLI, the one that the CLI named last; the SDK leaves out sessions without a prompt and damaged ones, we
//! list them; a broken line that runs into the next one costs the SDK both, us one.

use std::path::Path;

use rethread_testkit::{Fixture, Sdk, cannot};
use rethread_transcripts::{ClaudeFolder, Health, ListOptions, Session, Transcript};
use serde_json::{Value, json};

/// Prints, for each configuration folder given as JSON, its sessions and all their messages.
const SCRIPT: &str = r#"
    import { listSessions, getSessionMessages, listSubagents } from "@anthropic-ai/claude-agent-sdk";
    const answer = [];
    for (const config of JSON.parse(process.env.FOLDERS)) {
        process.env.CLAUDE_CONFIG_DIR = config;
        const sessions = await listSessions();
        for (const session of sessions) {
            session.messages = await getSessionMessages(session.sessionId);
            session.subagents = await listSubagents(session.sessionId);
        }
        answer.push(sessions);
    }
    console.log(JSON.stringify(answer));
"#;

/// Returns what the SDK says of some configuration folders.
pub(crate) fn ask(folders: &[&Path]) -> Option<Vec<Vec<Value>>> {
    let Some(sdk) = Sdk::find() else {
        cannot("the official SDK cannot be installed");
        return None;
    };
    let folders = serde_json::to_string(folders).unwrap();
    let output = sdk.command(Path::new("/nonexistent"), SCRIPT).env("FOLDERS", folders).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns our session as the SDK would show it.
fn as_they(session: &Session) -> Value {
    let mut shown = json!({
        "sessionId": session.session_id,
        "summary": session.name,
        "fileSize": session.size,
        "subagents": session.subagents,
    });
    let optional = [
        ("customTitle", session.custom_title.clone().map(Value::from)),
        ("firstPrompt", session.first_prompt.clone().map(Value::from)),
        ("gitBranch", session.git_branch.clone().map(Value::from)),
        ("cwd", session.cwd.as_ref().map(|cwd| cwd.to_str().unwrap().into())),
        ("tag", session.tag.clone().map(Value::from)),
        ("createdAt", session.created_at.map(|at| at.as_millisecond().into())),
        ("archived", session.archived.then_some(true.into())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}

/// Returns the messages of a session as the SDK would show them, one for each line.
fn messages(path: &Path) -> Vec<Value> {
    let transcript = Transcript::open(path).unwrap();
    let chain = transcript.active().messages();
    let mut reader = transcript.read(&chain);
    let mut messages = Vec::new();
    while let Some(entry) = reader.next() {
        let (role, view) = (entry.as_ref().unwrap().role(), entry.unwrap().view());
        let content: Value = serde_json::from_str(view.content.unwrap().get()).unwrap();
        messages.push(json!([role.to_string(), view.uuid, view.timestamp, content]));
    }
    messages
}

#[test]
fn list_and_messages_agree_with_the_official_sdk() {
    let folders: Vec<&Path> = Fixture::all().iter().map(|fixture| &*fixture.config).collect();
    let Some(theirs) = ask(&folders) else { return };
    for (fixture, mut theirs) in Fixture::all().iter().zip(theirs) {
        let mut ours = ClaudeFolder::new(&fixture.config).list(&ListOptions::default()).unwrap().sessions;
        // 2.0.0 makes a file before it has anything to write: killed just then, it leaves one that they leave out.
        ours.retain(|session| session.health != Health::Empty);
        for (session, their) in ours.iter().zip(&mut theirs) {
            let their_messages = their.as_object_mut().unwrap().remove("messages").unwrap();
            // They round it to the nearest millisecond.
            let modified = their.as_object_mut().unwrap().remove("lastModified").unwrap().as_i64().unwrap();
            let is_near = modified.abs_diff(session.updated_at.as_millisecond()) <= 1;
            assert!(is_near, "{}: {modified} of {their}, and {session:?}", fixture.name);
            let of = |it: &Value| json!([it["type"], it["uuid"], it["timestamp"], it["message"]["content"]]);
            let said: Vec<Value> = their_messages.as_array().unwrap().iter().map(of).collect();
            assert_eq!(messages(&session.path), said, "{}", fixture.name);
        }
        let ours: Vec<Value> = ours.iter().map(as_they).collect();
        assert_eq!(ours, theirs, "{}", fixture.name);
    }
}

/// Makes a folder with one session, of some lines.
fn folder_with(lines: &[String]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-p");
    std::fs::create_dir_all(&project).unwrap();
    let path = project.join("11111111-1111-4111-8111-111111111111.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    (folder, path)
}

fn line(uuid: &str, parent: Option<&str>, kind: &str) -> String {
    json!({
        "parentUuid": parent, "isSidechain": false, "type": kind, "uuid": uuid, "sessionId": "s", "cwd": "/p",
        "timestamp": "2026-02-09T10:00:00.000Z", "message": { "role": kind, "content": uuid },
    })
    .to_string()
}

#[test]
fn with_two_branches_ours_is_the_one_that_the_cli_named_last() {
    let left =
        json!({ "type": "last-prompt", "leafUuid": "left", "lastPrompt": "x", "sessionId": "s" }).to_string();
    let lines = [
        line("root", None, "user"),
        line("left", Some("root"), "assistant"),
        line("right", Some("root"), "assistant"),
        left,
    ];
    let (folder, path) = folder_with(&lines);
    let Some(theirs) = ask(&[folder.path()]) else { return };
    let uuids = |messages: &[Value], at: &str| messages.iter().map(|it| it[at].clone()).collect::<Vec<_>>();
    assert_eq!(uuids(theirs[0][0]["messages"].as_array().unwrap(), "uuid"), ["root", "right"]);
    let ours: Vec<Value> = messages(&path).iter().map(|message| message[1].clone()).collect();
    assert_eq!(ours, ["root", "left"]);
}

/// A version that does not write all names again when it writes the last prompt again, and one that does.
const OLD: &str = "2.1.120";
const NEW: &str = "2.1.325";

/// Every thing that names a session, and where it may stand.
fn names() -> Vec<(&'static str, Value)> {
    let mut names = Vec::new();
    let kinds = ["custom-title", "ai-title", "last-prompt", "summary"];
    for (kind, member) in kinds.into_iter().zip(["customTitle", "aiTitle", "lastPrompt", "summary"]) {
        for place in ["head", "tail"] {
            names.push((place, json!({ "type": kind, member: format!("{kind} in the {place}") })));
        }
        // What was there before does not count any more.
        names.push(("tail", json!({ "type": kind, member: "" })));
    }
    names.push(("beside", json!({ "customTitle": " be\u{200b}side " })));
    names
}

/// Writes a session of some size with some names, as a version of the CLI would.
fn write_named(project: &Path, id: &str, size: usize, version: &str, names: &[&(&str, Value)]) {
    let filler = json!({
        "parentUuid": "root", "isSidechain": false, "type": "assistant", "uuid": "x".repeat(2000), "sessionId": "s",
        "cwd": "/p", "version": version, "gitBranch": "main", "timestamp": "2026-02-09T10:00:00.000Z",
        "message": { "role": "assistant", "model": "claude", "content": "filler" },
    })
    .to_string();
    let at = |wanted: &str| {
        names
            .iter()
            .filter(|(place, _)| *place == wanted)
            .map(|(_, name)| name.to_string())
            .collect::<Vec<_>>()
    };
    let mut lines = vec![line("root", None, "user")];
    lines.extend(at("head"));
    lines.extend(vec![filler; size / 2000]);
    lines.extend(at("tail"));
    std::fs::write(project.join(format!("{id}.jsonl")), lines.join("\n") + "\n").unwrap();
    for name in at("beside") {
        std::fs::create_dir_all(project.join(id)).unwrap();
        std::fs::write(project.join(id).join("custom-title.json"), name).unwrap();
    }
}

/// With each name alone, and with each two of them; in files that are read whole, in two halves, and at their ends only.
#[test]
fn a_session_is_called_what_the_official_sdk_calls_it() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-p");
    std::fs::create_dir_all(&project).unwrap();
    let names = names();
    let mut number = 0;
    for (size, version) in [(0, NEW), (100_000, OLD), (100_000, NEW), (200_000, OLD), (200_000, NEW)] {
        for (at, one) in names.iter().enumerate() {
            for other in &names[at..] {
                number += 1;
                write_named(
                    &project,
                    &format!("{number:08x}-0000-4000-8000-000000000000"),
                    size,
                    version,
                    &[one, other],
                );
            }
        }
    }
    let Some(theirs) = ask(&[folder.path()]) else { return };
    let theirs: Vec<(&str, &str)> = theirs[0]
        .iter()
        .map(|it| (it["sessionId"].as_str().unwrap(), it["summary"].as_str().unwrap()))
        .collect();
    let index = folder.path().join("index");
    for _ in 0..2 {
        let ours =
            ClaudeFolder::new(folder.path()).list(&ListOptions::default().index(&index)).unwrap().sessions;
        assert_eq!(ours.len(), number);
        for session in &ours {
            let theirs = theirs.iter().find(|(id, _)| *id == session.session_id).unwrap().1;
            let text = std::fs::read_to_string(&session.path).unwrap();
            let about: Vec<&str> =
                text.lines().filter(|line| line.starts_with("{\"type\"") || line.contains("Title")).collect();
            assert_eq!(session.name.as_deref(), Some(theirs), "{} bytes, {about:?}", session.size);
        }
    }
}

#[test]
fn sessions_that_they_leave_out_are_listed() {
    let (folder, _) = folder_with(&["{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"s\"}".into()]);
    let Some(theirs) = ask(&[folder.path()]) else { return };
    let ours = ClaudeFolder::new(folder.path()).list(&ListOptions::default()).unwrap().sessions;
    assert_eq!((theirs[0].len(), ours.len()), (0, 1));
}

/// Each difference that `docs/transcripts.md` has, with what both sides say: title, tag and branch, or that it is left out.
#[test]
fn where_we_differ_on_purpose_we_differ_as_written() {
    let filler = |version: &str, branch: &str| {
        let said = json!({ "role": "assistant", "model": "claude", "content": "x".repeat(2000) });
        json!({ "parentUuid": "root", "type": "assistant", "uuid": "f", "version": version, "gitBranch": branch,
            "message": said, "cwd": "/p", "sessionId": "s", "timestamp": "2026-02-09T10:00:00.000Z" })
        .to_string()
    };
    let about = |kind: &str, member: &str, text: &str| json!({ "type": kind, member: text }).to_string();
    let root = || line("root", None, "user");
    let again = about("last-prompt", "lastPrompt", "again");
    let tool = json!({ "parentUuid": "root", "type": "assistant", "uuid": "t", "sessionId": "s", "cwd": "/p",
        "timestamp": "2026-02-09T10:00:00.000Z", "message": { "role": "assistant", "content": [
            { "type": "tool_use", "id": "x", "name": "Write", "input": { "gitBranch": "not-it" } },
        ] } })
    .to_string();
    let many = |lines: usize, version: &str| vec![filler(version, "main"); lines];
    let title = || about("custom-title", "customTitle", "Mine");
    type Told<'a> = Option<[Option<&'a str>; 3]>;
    let cases: [(&str, Vec<String>, Told<'_>, Told<'_>); 6] = [
        (
            "the model's title is not a person's",
            vec![root(), about("ai-title", "aiTitle", "Theirs"), filler(NEW, "main")],
            Some([None, None, Some("main")]),
            Some([Some("Theirs"), None, Some("main")]),
        ),
        (
            "a tool's input is on no branch",
            vec![root(), filler(NEW, "main"), tool],
            Some([None, None, Some("main")]),
            Some([None, None, Some("not-it")]),
        ),
        (
            "it begins with a subagent's entry",
            vec![root().replacen("\"isSidechain\":false", "\"isSidechain\":true", 1), filler(NEW, "main")],
            Some([None, None, Some("main")]),
            None,
        ),
        (
            "a tag in the first half of a file that is read as a whole",
            [vec![root(), about("tag", "tag", "red")], many(45, OLD)].concat(),
            Some([None, Some("red"), Some("main")]),
            Some([None, None, Some("main")]),
        ),
        (
            "a title at the beginning, beyond what is read of it",
            [vec![root()], many(12, OLD), vec![title()], many(90, OLD), vec![again.clone()]].concat(),
            Some([None, None, Some("main")]),
            Some([Some("Mine"), None, Some("main")]),
        ),
        (
            "a title that was not written again with the last prompt",
            [vec![root()], many(90, NEW), vec![title()], many(20, NEW), vec![again]].concat(),
            Some([None, None, Some("main")]),
            Some([Some("Mine"), None, Some("main")]),
        ),
    ];
    let folders: Vec<_> = cases.iter().map(|(_, lines, _, _)| folder_with(lines)).collect();
    let paths: Vec<&Path> = folders.iter().map(|(folder, _)| folder.path()).collect();
    let Some(theirs) = ask(&paths) else { return };
    for (((why, _, we, they), path), theirs) in cases.iter().zip(paths).zip(&theirs) {
        let ours = ClaudeFolder::new(path).list(&ListOptions::default()).unwrap().sessions;
        let told = |shown: &Value| {
            Some(["customTitle", "tag", "gitBranch"].map(|member| shown[member].as_str().map(str::to_owned)))
        };
        let owned = |told: &Told<'_>| told.map(|told| told.map(|text| text.map(str::to_owned)));
        assert_eq!(ours.first().map(as_they).as_ref().and_then(told), owned(we), "{why}: ours");
        assert_eq!(theirs.first().and_then(told), owned(they), "{why}: theirs");
    }
}

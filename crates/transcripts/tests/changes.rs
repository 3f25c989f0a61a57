//! What we write is what Claude Code would have written: it resumes it, and the official SDK shows it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rethread_testkit::{Fixture, Home, PROBE, Program, Prompt, Reply, cannot, two_at_a_time};
use rethread_transcripts::{
    Change, ClaudeFolder, Error, Event, From, ListOptions, Means, NativeFork, Session, Shelf, Transcript,
    Watch,
};
use serde_json::json;

use crate::projection::{Said, of_chain, of_request};

const FIRST: &str = "44444444-4444-4444-8444-444444444444";

/// A home with one session of two prompts.
fn home() -> Option<(Home, ClaudeFolder)> {
    let Some(home) = Home::new() else {
        cannot("Claude Code cannot be installed");
        return None;
    };
    home.claude().session(FIRST).asked(Prompt::new("One").says("1"));
    home.claude().resume(FIRST).asked(Prompt::new("Two").says("2"));
    let claude = ClaudeFolder::new(home.config());
    Some((home, claude))
}

fn listed(claude: &ClaudeFolder, id: &str) -> Option<Session> {
    let sessions = claude.list(&ListOptions::default()).unwrap().sessions;
    sessions.into_iter().find(|session| session.session_id == id)
}

fn texts(said: &[Said]) -> Vec<&str> {
    let mut texts = Vec::new();
    for said in said {
        if let Said::Text(_, text) = said {
            texts.extend(text.split(" ⟦").next());
        }
    }
    texts
}

#[test]
fn the_cli_resumes_a_fork_at_any_message() {
    let Some((home, claude)) = home() else { return };
    let transcript = Transcript::open(claude.find(FIRST).unwrap()).unwrap();
    let before = fs::read(transcript.path()).unwrap();
    let messages = transcript.messages(&transcript.active()).unwrap();
    for (at, expected) in [
        (Some(1), vec!["One", "1"]),
        (Some(2), vec!["One", "1", "Two"]),
        (None, vec!["One", "1", "Two", "2"]),
    ] {
        let mut fork = NativeFork::default();
        fork.at = at.map(|at: usize| messages[at].uuid.clone().unwrap());
        fork.name = Some("A fork".into());
        let written = claude.fork(FIRST, &fork).unwrap();
        let sent = home.claude().messages_on_resume(&written.session_id, PROBE);
        assert_eq!(texts(&of_request(&sent)), expected);
        let session = listed(&claude, &written.session_id).unwrap();
        assert_eq!((session.name.as_deref(), session.forked_from.as_deref()), (Some("A fork"), Some(FIRST)));
    }
    assert_eq!(fs::read(transcript.path()).unwrap(), before, "the origin is left as it is");
    let mut stranger = NativeFork::default();
    stranger.at = Some("nobody".into());
    assert!(matches!(claude.fork(FIRST, &stranger), Err(Error::EntryNotFound { .. })));
}

#[test]
fn the_cli_resumes_a_fork_of_every_scenario() {
    two_at_a_time(Fixture::all(), |fixture| {
        let claude = ClaudeFolder::new(fixture.home.config());
        let whole = Transcript::open(fixture.transcript()).unwrap();
        let leaf = whole.messages(&whole.active()).unwrap().pop().unwrap().uuid;
        let mut fork = NativeFork::default();
        fork.at = leaf;
        let written = claude.fork(&fixture.session, &fork).unwrap();
        let sent = fixture.resume(&written.session_id);
        assert_eq!(of_request(&sent), of_chain(&whole, &whole.active()), "{}", fixture.name);
    });
}

#[test]
fn the_cli_resumes_a_repaired_copy_with_what_it_lost() {
    let Some((home, claude)) = home() else { return };
    let path = claude.find(FIRST).unwrap();
    let mut lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    let answer =
        lines.iter().position(|line| line.contains("\"text\":\"2\"") && line.contains("\"uuid\"")).unwrap();
    lines[answer] = lines[answer][..80].to_owned() + &lines[answer];
    let prompt =
        lines.iter().position(|line| line.contains("\"text\":\"1\"") && line.contains("\"uuid\"")).unwrap();
    lines.insert(prompt, "\0".repeat(64));
    let damaged = lines.join("\n") + "\n{\"parentUuid\":\"torn";
    fs::write(&path, &damaged).unwrap();
    let written = claude.repaired_copy(FIRST).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "the damaged one is left as it is");
    assert_eq!(Transcript::open(&written.path).unwrap().faults(), []);
    if home.program().is_at_least("2.1.100") {
        let lost = home.claude().messages_on_resume(FIRST, PROBE);
        assert_eq!(texts(&of_request(&lost)), ["One", "1", "Two"]);
    }
    let saved = home.claude().messages_on_resume(&written.session_id, PROBE);
    assert_eq!(texts(&of_request(&saved)), ["One", "1", "Two", "2"]);
}

#[test]
fn a_name_a_tag_and_the_archive_are_kept_when_the_session_goes_on() {
    let Some((home, claude)) = home() else { return };
    claude.rename(FIRST, " Mine ").unwrap();
    claude.tag(FIRST, Some("red")).unwrap();
    claude.archive(FIRST, Shelf::Archive).unwrap();
    let session = listed(&claude, FIRST).unwrap();
    assert_eq!(
        (session.name.as_deref(), session.tag.as_deref(), session.archived),
        (Some("Mine"), Some("red"), true)
    );
    claude.archive(FIRST, Shelf::List).unwrap();
    home.claude().resume(FIRST).asked(Prompt::new("Three").says("3"));
    let session = listed(&claude, FIRST).unwrap();
    assert!(!session.archived);
    if Program::find().is_some_and(|program| program.is_at_least("2.1.300")) {
        assert_eq!((session.name.as_deref(), session.tag.as_deref()), (Some("Mine"), Some("red")));
    }
    claude.tag(FIRST, None).unwrap();
    assert_eq!(listed(&claude, FIRST).unwrap().tag, None);
    assert!(matches!(claude.rename(FIRST, "  "), Err(Error::BadName { .. })));
    assert!(matches!(
        claude.rename("55555555-5555-4555-8555-555555555555", "x"),
        Err(Error::SessionNotFound(_))
    ));
}

/// A list looks no further back than to where Claude Code has written everything again, so that must be everything.
#[test]
fn what_others_wrote_about_a_session_is_written_again_by_the_cli() {
    let Some((home, claude)) = home() else { return };
    if !home.program().is_at_least("2.1.300") {
        return rethread_testkit::not_in_this_version("not everything is written again");
    }
    let path = claude.find(FIRST).unwrap();
    let mut talk = home.claude().resume(FIRST).converse();
    let mut say = |number: u32| {
        let prompt = Prompt::new(format!("{number}")).says("long ".repeat(2400));
        talk.say(&format!("dddddddd-0000-4000-8000-00000000000{number}"), prompt);
        talk.wait_for("result");
    };
    (1..=2).for_each(&mut say);
    claude.rename(FIRST, "Mine").unwrap();
    claude.tag(FIRST, Some("red")).unwrap();
    let ai_title = json!({ "type": "ai-title", "aiTitle": "Theirs", "sessionId": FIRST });
    let relocated = json!({ "type": "relocated", "relocatedCwd": "/elsewhere", "sessionId": FIRST });
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(format!("{ai_title}\n{relocated}\n").as_bytes()).unwrap();
    (3..=5).for_each(&mut say);
    talk.close();
    let text = fs::read_to_string(&path).unwrap();
    let (before, end) = text.split_at(text.len() - (8 << 10));
    for member in [
        "\"customTitle\":\"Mine\"",
        "\"tag\":\"red\"",
        "\"aiTitle\":\"Theirs\"",
        "\"relocatedCwd\":\"/elsewhere\"",
    ] {
        assert!(before.contains(member) && end.contains(member), "{member}");
    }
    let again = end.find("\"type\":\"last-prompt\"").unwrap();
    assert!(again < end.find("\"type\":\"custom-title\"").unwrap(), "the last prompt comes first");
    let session = listed(&claude, FIRST).unwrap();
    assert_eq!((session.name.as_deref(), session.tag.as_deref()), (Some("Mine"), Some("red")));
    assert_eq!(session.cwd.as_deref(), Some(Path::new("/elsewhere")));
}

/// The CLI writes again with the last prompt what it does not find in the 32 KiB before, and only that. The first lists
/// looked no further back than to the last prompt.
#[test]
fn what_others_wrote_about_a_session_is_listed_however_far_back_the_cli_leaves_it() {
    let Some((home, claude)) = home() else { return };
    let path = claude.find(FIRST).unwrap();
    let about = |kind: &str, member: &str, text: &str| {
        json!({ "type": kind, member: text, "sessionId": FIRST }).to_string() + "\n"
    };
    let named = [
        about("custom-title", "customTitle", "Mine"),
        about("ai-title", "aiTitle", "Theirs"),
        about("tag", "tag", "red"),
        about("relocated", "relocatedCwd", "/elsewhere"),
    ]
    .concat();
    let before = fs::read_to_string(&path).unwrap();
    // As long as a session is after a day's work, so that no look would read all of it.
    let filler = |bytes: usize| about("filler", "text", &"x".repeat(900)).repeat(bytes / 1000);
    for between in [1_000, 5_000, 15_000, 25_000, 28_000, 31_000, 34_000, 50_000] {
        fs::write(&path, [&*before, &filler(100_000), &named, &filler(between)].concat()).unwrap();
        home.claude().resume(FIRST).asked(Prompt::new("Go on").says("Gone on"));
        let session = listed(&claude, FIRST).unwrap();
        let told = (session.name.as_deref(), session.tag.as_deref(), session.cwd.as_deref());
        assert_eq!(told, (Some("Mine"), Some("red"), Some(Path::new("/elsewhere"))), "{between} between");
    }
}

#[test]
fn a_name_is_written_as_the_cli_writes_it() {
    let Some((home, claude)) = home() else { return };
    if !home.program().is_at_least("2.1.300") {
        return rethread_testkit::not_in_this_version(
            "names stand in one place only, or cannot be given from without",
        );
    }
    let path = claude.find(FIRST).unwrap();
    let before = fs::read_to_string(&path).unwrap().len();
    let written = || {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text[before..].lines().filter(|line| line.contains("name") || line.contains("title"));
        let beside = fs::read_to_string(path.with_extension("").join("custom-title.json")).unwrap();
        lines.map(str::to_owned).chain([beside]).collect::<Vec<_>>()
    };
    let names = [
        "Plain",
        " on\ntwo\t \u{7}lines ",
        "a\u{200b}\u{202e}b\u{feff}é\u{2028}\u{85}c",
        &"long 🎉".repeat(60),
    ];
    let mut ours = Vec::new();
    let whole = fs::read(&path).unwrap();
    for name in names {
        claude.rename(FIRST, name).unwrap();
        ours.push(written());
        fs::write(&path, &whole).unwrap();
    }
    for (name, ours) in names.into_iter().zip(ours) {
        let mut talk = home.claude().resume(FIRST).converse();
        talk.control("r1", json!({ "subtype": "rename_session", "title": name }));
        talk.wait_for("control_response");
        // It answers before it has written the last of it.
        let begun = Instant::now();
        while written() != ours && begun.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(20));
        }
        talk.close();
        assert_eq!(ours, written(), "{name:?}");
        fs::write(&path, &whole).unwrap();
    }
    assert!(matches!(claude.rename(FIRST, "\u{7}\u{200b}"), Err(Error::BadName { .. })));
}

/// Claude Code appends, and so do we, to the same file at the same time; others read, copy and follow it.
#[test]
fn while_claude_code_is_at_work_nothing_is_lost_and_nothing_is_followed_twice() {
    let Some((home, claude)) = home() else { return };
    let path = claude.find(FIRST).unwrap();
    let before = fs::read(&path).unwrap();
    let (send, changes) = std::sync::mpsc::channel();
    let take = move |change: Change| drop(send.send(change));
    let _watch = Watch::one(&path, From::Beginning, Means::Best, take).unwrap();
    let echo = json!({ "command": "echo x", "description": "echoes" });
    let next = || Reply::text("Next.").after_milliseconds(40).tool("Bash", echo.clone());
    let prompt = (0..6).fold(Prompt::new("Many"), |prompt, _| prompt.reply(next())).says("Done.");
    let mut child = home.claude().resume(FIRST).bypassing().start(prompt);
    let mut times = 0;
    while child.try_wait().unwrap().is_none() {
        times += 1;
        claude.tag(FIRST, Some(&format!("tag-{times}-"))).unwrap();
        claude.rename(FIRST, &format!("name-{times}-")).unwrap();
        let copy = Transcript::open(claude.fork(FIRST, &NativeFork::default()).unwrap().path).unwrap();
        assert_eq!(copy.faults(), []);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.as_bytes().starts_with(&before), "what was there stays there");
    assert_eq!(Transcript::open(&path).unwrap().faults(), []);
    for number in 1..=times {
        assert!(
            text.contains(&format!("\"tag-{number}-\"")) && text.contains(&format!("\"name-{number}-\""))
        );
    }
    assert!(text.contains("\"Done.\"") && times > 0);
    for line in text.lines() {
        match changes.recv_timeout(std::time::Duration::from_secs(30)).unwrap().event {
            Event::Added { raw, .. } => assert_eq!(String::from_utf8(raw).unwrap(), line),
            event => panic!("{event:?}"),
        }
    }
}

#[test]
fn a_line_is_never_appended_to_a_torn_one() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-p");
    fs::create_dir_all(&project).unwrap();
    let path = project.join(format!("{FIRST}.jsonl"));
    fs::write(&path, "{\"torn").unwrap();
    ClaudeFolder::new(folder.path()).tag(FIRST, Some("x")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{{\"torn\n{{\"type\":\"tag\",\"tag\":\"x\",\"sessionId\":\"{FIRST}\"}}\n"));
}

/// Everything beneath a folder, with its bytes.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(contents(&entry.path())),
            false => all.push((entry.path().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn a_deleted_session_comes_back_with_everything_that_belongs_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let (project, trash) = (folder.path().join("projects/-p"), folder.path().join("trash"));
    let history = folder.path().join("file-history").join(FIRST);
    for place in [&project.join(FIRST).join("subagents"), &history] {
        fs::create_dir_all(place).unwrap();
    }
    fs::write(project.join(format!("{FIRST}.jsonl")), "{\"type\":\"user\",\"uuid\":\"u\"}\n").unwrap();
    fs::write(project.join(FIRST).join("subagents/agent-1.jsonl"), "{}\n").unwrap();
    fs::write(history.join("abc@v1"), "old").unwrap();
    let claude = ClaudeFolder::new(folder.path());
    let before = contents(folder.path());
    let trashed = claude.delete(FIRST, &trash).unwrap();
    assert_eq!(
        (claude.list(&ListOptions::default()).unwrap().sessions.len(), contents(&project)),
        (0, vec![])
    );
    assert_eq!(ClaudeFolder::trashed(&trash), [trashed]);
    assert!(matches!(claude.delete(FIRST, &trash), Err(Error::SessionNotFound(_))));
    claude.restore(FIRST, &trash).unwrap();
    assert_eq!(contents(folder.path()), before);
    assert!(matches!(claude.restore(FIRST, &trash), Err(Error::SessionNotFound(_))));
}

/// A folder with one session that has file history.
fn made_up() -> (tempfile::TempDir, ClaudeFolder) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-p");
    let history = folder.path().join("file-history").join(FIRST);
    for place in [&project, &history] {
        fs::create_dir_all(place).unwrap();
    }
    let prompt = "{\"parentUuid\":null,\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"content\":\"Hi\"}}\n";
    fs::write(project.join(format!("{FIRST}.jsonl")), prompt).unwrap();
    fs::write(history.join("abc@v1"), "old").unwrap();
    let claude = ClaudeFolder::new(folder.path());
    (folder, claude)
}

/// A process that died in the middle left its word on where the session belongs, and the transcript where it was: then
/// neither `delete` nor `restore` did anything any more.
#[test]
fn a_deletion_that_was_cut_short_can_be_finished() {
    let (folder, claude) = made_up();
    let trash = folder.path().join("trash");
    let before = contents(folder.path());
    claude.delete(FIRST, &trash).unwrap();
    // As it was before the last of its steps.
    fs::rename(
        trash.join(FIRST).join("transcript.jsonl"),
        claude.projects().join(format!("-p/{FIRST}.jsonl")),
    )
    .unwrap();
    assert_eq!(ClaudeFolder::trashed(&trash), [], "what is not in the trash is not said to be");
    claude.delete(FIRST, &trash).unwrap();
    claude.restore(FIRST, &trash).unwrap();
    assert_eq!(contents(folder.path()), before);
}

/// An old version of Claude Code is in no register, and writes a file anew that was deleted under it.
#[test]
fn a_session_that_came_back_after_it_was_deleted_can_be_deleted_again() {
    let (folder, claude) = made_up();
    let trash = folder.path().join("trash");
    let path = claude.find(FIRST).unwrap();
    let first = fs::read(&path).unwrap();
    claude.delete(FIRST, &trash).unwrap();
    fs::write(&path, "{\"type\":\"user\",\"uuid\":\"w\"}\n").unwrap();
    claude.delete(FIRST, &trash).unwrap();
    assert!(claude.find(FIRST).is_err());
    claude.restore(FIRST, &trash).unwrap();
    assert_eq!(
        fs::read(&path).unwrap(),
        b"{\"type\":\"user\",\"uuid\":\"w\"}\n",
        "the newest comes back first"
    );
    fs::remove_file(&path).unwrap();
    claude.restore(FIRST, &trash).unwrap();
    assert_eq!(fs::read(&path).unwrap(), first, "and nothing is lost");
}

/// Moved are its file history, what lies beside it, and itself; it is the last that fails here.
#[test]
fn a_deletion_that_fails_leaves_everything_where_it_was() {
    let (folder, claude) = made_up();
    let (path, trash) = (claude.find(FIRST).unwrap(), folder.path().join("trash"));
    let chattr = |flag: &str| std::process::Command::new("chattr").arg(flag).arg(&path).output();
    if !chattr("+i").is_ok_and(|output| output.status.success()) {
        return cannot("files cannot be made immutable here");
    }
    let before = contents(folder.path());
    let failed = claude.delete(FIRST, &trash);
    chattr("-i").unwrap();
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    assert_eq!(contents(folder.path()), before);
    claude.delete(FIRST, &trash).unwrap();
    claude.restore(FIRST, &trash).unwrap();
    assert_eq!(contents(folder.path()), before);
}

#[test]
fn a_copy_of_a_session_with_doubled_entries_has_the_last_of_each_at_the_place_of_the_first() {
    let (_folder, claude) = made_up();
    let path = claude.find(FIRST).unwrap();
    let entry = |uuid: &str, parent: &str, text: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"type\":\"user\",\"uuid\":\"{uuid}\",\"message\":{{\"content\":\"{text}\"}}}}\n"
        )
    };
    let lines = [
        ("a", "null", "1"),
        ("b", "\"a\"", "2"),
        ("a", "null", "3"),
        ("c", "\"gone\"", "4"),
        ("c", "\"b\"", "5"),
    ];
    fs::write(&path, lines.map(|(uuid, parent, text)| entry(uuid, parent, text)).concat()).unwrap();
    let (whole, copy) = (Transcript::open(&path).unwrap(), claude.repaired_copy(FIRST).unwrap());
    let copied = Transcript::open(&copy.path).unwrap();
    let said = |transcript: &Transcript| {
        let messages = transcript.messages(&transcript.active()).unwrap();
        messages.iter().map(|message| message.text()).collect::<Vec<_>>()
    };
    assert_eq!((copied.faults(), copy.entries), (vec![], 3));
    assert_eq!(said(&copied), ["3", "2", "5"]);
    assert_eq!(said(&copied), said(&whole));
}

/// The lines that name what was kept of files were copied, and what was kept was not.
#[test]
fn a_repaired_copy_knows_what_files_were() {
    let (folder, claude) = made_up();
    let changed = folder.path().join("changed");
    fs::write(&changed, "new").unwrap();
    let kept = json!({ changed.to_str().unwrap(): { "backupFileName": "abc@v1", "version": 1 } });
    let snapshot = json!({ "type": "file-history-snapshot", "messageId": "u",
        "snapshot": { "messageId": "u", "trackedFileBackups": kept } });
    let path = claude.find(FIRST).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{snapshot}\n{{\"torn")).unwrap();
    let copy = claude.repaired_copy(FIRST).unwrap();
    let checkpoints = claude.checkpoints(&copy.session_id).unwrap();
    let backup = checkpoints[0].files[0].backup.as_ref().unwrap();
    assert!(backup.starts_with(folder.path().join("file-history").join(&copy.session_id)), "{backup:?}");
    let difference = rethread_transcripts::FileDifference {
        path: changed,
        before: Some(b"old".to_vec()),
        after: Some(b"new".to_vec()),
    };
    assert_eq!(checkpoints[0].differences().unwrap(), [difference]);
}

/// Not every file system has links, and what is there already may be what is wanted.
#[test]
fn a_fork_has_the_file_history_even_where_some_of_it_is_there() {
    let (folder, claude) = made_up();
    let mut fork = NativeFork::default();
    fork.id = Some("55555555-5555-4555-8555-555555555555".into());
    let history = folder.path().join("file-history/55555555-5555-4555-8555-555555555555");
    fs::create_dir_all(&history).unwrap();
    fs::write(history.join("abc@v1"), "of a session that is no more").unwrap();
    let written = claude.fork(FIRST, &fork).unwrap();
    assert_eq!((fs::read(history.join("abc@v1")).unwrap(), written.path.is_file()), (b"old".to_vec(), true));
}

#[test]
fn a_copy_of_a_session_that_goes_in_several_circles_goes_in_none() {
    let (_folder, claude) = made_up();
    let path = claude.find(FIRST).unwrap();
    let entry = |uuid: &str, parent: &str| {
        format!(
            "{{\"parentUuid\":\"{parent}\",\"type\":\"user\",\"uuid\":\"{uuid}\",\"message\":{{\"content\":\"{uuid}\"}}}}\n"
        )
    };
    // Two circles on the way from the last to the first, and one beside it.
    let lines = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("x", "y"), ("y", "x"), ("e", "d")];
    fs::write(&path, lines.map(|(uuid, parent)| entry(uuid, parent)).concat()).unwrap();
    let copy = Transcript::open(claude.repaired_copy(FIRST).unwrap().path).unwrap();
    assert_eq!(copy.faults(), []);
    let whole = Transcript::open(&path).unwrap();
    let said = |transcript: &Transcript| {
        let messages = transcript.messages(&transcript.active()).unwrap();
        messages.iter().map(|message| message.text()).collect::<Vec<_>>()
    };
    assert_eq!(said(&copy), said(&whole));
    let fork = Transcript::open(claude.fork(FIRST, &NativeFork::default()).unwrap().path).unwrap();
    assert_eq!((fork.faults(), said(&fork)), (vec![], said(&whole)));
}

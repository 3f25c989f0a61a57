//! Claude Code's own sessions on the command line: found, shown, changed when asked, carried to the store and back.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Command;

use rethread_keeper::Client;
use serde_json::{Value, json};

use crate::kit::{Home, cannot};

pub(crate) const ONE: &str = "11111111-1111-4111-8111-111111111111";
pub(crate) const TWO: &str = "22222222-2222-4222-8222-222222222222";

/// The first prompt of each session.
const FIRST_PROMPT: &str = "aaaaaaaa-0000-4000-8000-000000000000";

/// A home with two sessions that look like Claude Code's, one of them damaged.
pub(crate) fn home() -> Home {
    let home = Home::new();
    for (id, project, prompts) in [(ONE, "/work/one", 2), (TWO, "/work/two", 1)] {
        let folder = home.path().join(".claude/projects").join(project.replace('/', "-"));
        fs::create_dir_all(&folder).unwrap();
        let lines: String = (0..prompts).flat_map(|number| turn(number, project)).collect();
        fs::write(folder.join(format!("{id}.jsonl")), lines).unwrap();
    }
    home
}

pub(crate) fn turn(number: usize, cwd: &str) -> [String; 2] {
    let uuid = |number: usize| format!("aaaaaaaa-0000-4000-8000-{number:012}");
    let parent = (number > 0).then(|| uuid(number * 2 - 1));
    let envelope = |kind: &str, uuid: String, parent: Option<String>, message: Value| {
        let entry = json!({
            "parentUuid": parent, "isSidechain": false, "type": kind, "message": message, "uuid": uuid,
            "timestamp": format!("2026-02-09T10:00:0{number}.000Z"), "sessionId": "x", "cwd": cwd, "gitBranch": "main",
        });
        format!("{entry}\n")
    };
    let said = json!({ "role": "user", "content": format!("Question {number} about {cwd}") });
    let answer = json!({ "role": "assistant", "id": format!("m{number}"), "model": "opus",
        "content": [{ "type": "text", "text": format!("Answer {number}") }] });
    [
        envelope("user", uuid(number * 2), parent, said),
        envelope("assistant", uuid(number * 2 + 1), Some(uuid(number * 2)), answer),
    ]
}

#[test]
fn both_homes_are_listed_beneath_their_projects() {
    let home = home();
    home.answer(&["new", "--id", "mine", "--name", "In the store"]);
    let listed = home.answer(&["list"]);
    for part in
        ["/work/one\n", "/work/two\n", "11111111  ", "Question 0 about /work/two", "[stored] In the store"]
    {
        assert!(listed.contains(part), "{part} is not in\n{listed}");
    }
    assert_eq!(home.answer(&["list", "--native", "--search", "TWO", "--json"]).lines().count(), 1);
    let json = home.answer(&["list", "--json", "--search", "one"]);
    let session: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&session["session_id"], &session["home"], &session["cwd"]),
        (&ONE.into(), &"native".into(), &"/work/one".into())
    );
    assert_eq!((&session["message_count"], &session["model"]), (&Value::Null, &"opus".into()));
    assert_eq!(home.answer(&["list", "--stored", "--json"]).lines().count(), 1);
}

#[test]
fn a_session_is_shown_as_conversation_as_messages_and_as_it_stands() {
    let home = home();
    let shown = home.answer(&["show", "1111"]);
    let expected = "user  aaaaaaaa-0000-4000-8000-000000000000\n  Question 0 about /work/one\n\n\
        assistant  aaaaaaaa-0000-4000-8000-000000000001\n  Answer 0\n\n\
        user  aaaaaaaa-0000-4000-8000-000000000002\n  Question 1 about /work/one\n\n\
        assistant  aaaaaaaa-0000-4000-8000-000000000003\n  Answer 1\n";
    assert_eq!(shown, expected);
    let messages = home.answer(&["show", ONE, "--json", "--at", "aaaaaaaa-0000-4000-8000-000000000001"]);
    let last: Value = serde_json::from_str(messages.lines().last().unwrap()).unwrap();
    let members: Vec<&str> = last.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((messages.lines().count(), members), (2, vec!["role", "content", "timestamp", "uuid"]));
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    assert_eq!(home.answer(&["show", ONE, "--raw"]), fs::read_to_string(file).unwrap());
}

#[test]
fn names_tags_archive_and_trash_work_on_claudes_own() {
    let home = home();
    let listed = |words: &[&str]| -> Vec<Value> {
        let words = [&["list", "--json", "--native"], words].concat();
        home.answer(&words).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    home.run(&["rename", ONE, "The first"]);
    home.run(&["tag", ONE, "red"]);
    assert_eq!(listed(&["--tag", "red"])[0]["name"], "The first");
    home.run(&["tag", ONE, "--remove"]);
    assert_eq!(listed(&["--tag", "red"]).len(), 0);
    home.run(&["archive", "1111"]);
    assert_eq!((listed(&[]).len(), listed(&["--archived"]).len()), (1, 1));
    home.run(&["archive", "--undo", "1111"]);
    assert_eq!(home.run(&["delete", "1111"]).code, 0);
    assert_eq!((listed(&[]).len(), home.run(&["show", ONE]).code), (1, 1));
    let trashed: Vec<Value> =
        listed(&["--all"]).into_iter().filter(|it| !it["trashed_at"].is_null()).collect();
    assert_eq!(trashed.len(), 1, "{trashed:?}");
    assert_eq!(home.run(&["restore", "1111"]).code, 0);
    assert_eq!(listed(&["--all"]).len(), 2);
}

#[test]
fn the_doctor_finds_what_is_damaged_and_copies_the_rest() {
    let home = home();
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    let whole = fs::read_to_string(&file).unwrap();
    assert_eq!(home.run(&["doctor", TWO]).code, 0);
    let torn = whole.find('\n').unwrap() + 1;
    fs::write(&file, format!("{}\0\0\0\n{}", &whole[..torn], &whole[torn..])).unwrap();
    let said = home.run(&["doctor"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains(&format!("  at byte {torn}: bytes of zero")), "{}", said.out);
    assert_eq!(home.run(&["show", ONE]).code, 1);
    let copied = home.run(&["doctor", ONE, "--copy"]);
    assert_eq!(home.run(&["doctor", copied.out.trim()]).code, 0, "{}", copied.err);
    assert_eq!(home.answer(&["show", copied.out.trim(), "--json"]).lines().count(), 4);
}

#[test]
fn an_import_adds_what_is_new_and_nothing_twice() {
    let home = home();
    assert_eq!(home.run(&["import", "--claude"]).out.lines().count(), 2);
    let again = home.run(&["import", "--claude"]);
    assert_eq!((again.out.as_str(), again.err.as_str()), ("", "Imported 0 sessions; 2 had nothing new.\n"));
    let file = home.path().join(".claude/projects/-work-two").join(format!("{TWO}.jsonl"));
    let more = fs::read_to_string(&file).unwrap() + &turn(1, "/work/two").concat();
    fs::write(&file, &more).unwrap();
    assert_eq!(home.run(&["import", "--claude", TWO]).out, format!("{TWO}\n"));
    assert_eq!(home.answer(&["show", &format!("stored:{TWO}"), "--json"]), more);
    let listed = home.answer(&["list", "--stored", "--json"]);
    assert_eq!(listed.lines().count(), 2);
}

#[test]
fn tail_shows_what_was_said_last_and_then_what_comes() {
    let home = home();
    let file = home.path().join(".claude/projects/-work-two").join(format!("{TWO}.jsonl"));
    let mut child = home.start(&["tail", TWO, "-n", "1", "--json"]);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&out.next().unwrap().unwrap()).unwrap()["uuid"].clone();
    let uuid = |number: usize| Value::from(format!("aaaaaaaa-0000-4000-8000-{number:012}"));
    assert_eq!(next(), uuid(1));
    let more = turn(1, "/work/two").concat();
    let (half, rest) = more.split_at(100);
    for part in [half, rest] {
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(part.as_bytes()).unwrap();
    }
    assert_eq!([next(), next()], [uuid(2), uuid(3)]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn resume_prints_the_command_for_the_right_directory() {
    let home = home();
    let project = home.path().join("it's here");
    fs::create_dir(&project).unwrap();
    let folder = home.path().join(".claude/projects/-x");
    fs::create_dir(&folder).unwrap();
    let id = "33333333-3333-4333-8333-333333333333";
    fs::write(folder.join(format!("{id}.jsonl")), turn(0, project.to_str().unwrap()).concat()).unwrap();
    home.run(&["import", "--claude", id]);
    let both = home.run(&["resume", &format!("stored:{id}"), "--print"]);
    assert_eq!((both.code, both.out.as_str()), (1, ""));
    assert!(both.err.contains(&format!("`rethread resume native:{id}` goes on with that")), "{}", both.err);
    let printed = home.answer(&["resume", "3333", "--print"]);
    assert_eq!(printed, format!("cd '{}/it'\\''s here' && claude --resume {id}\n", home.path().display()));
}

/// Writes a program that stands for Claude Code: it says where it was started, for which folder and with which words.
fn stand_in(home: &Home) -> String {
    let claude = home.path().join("claude");
    fs::write(&claude, "#!/bin/sh\necho \"$(pwd -P)|$CLAUDE_CONFIG_DIR|$*\"\n").unwrap();
    fs::set_permissions(&claude, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    claude.to_str().unwrap().to_owned()
}

#[test]
fn resume_starts_claude_code_where_the_session_worked() {
    let home = home();
    let project = home.path().join("it's here");
    fs::create_dir(&project).unwrap();
    let file = home.path().join(".claude/projects/-work-two").join(format!("{TWO}.jsonl"));
    fs::write(file, turn(0, project.to_str().unwrap()).concat()).unwrap();
    let started = home.run(&["resume", TWO, "--program", &stand_in(&home)]);
    let there = project.canonicalize().unwrap();
    assert_eq!((started.code, started.err.as_str()), (0, ""));
    assert_eq!(started.out, format!("{}||--resume {TWO}\n", there.display()));
}

/// Follows a session until a line that was added comes through.
fn follow_for_a_moment(home: &Home, runner: &[&str], words: &[&str]) -> String {
    let mut child =
        home.through(&[&["timeout", "--signal=INT", "60"], runner].concat(), words).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut all = String::new();
    while !all.contains("Answer 1") {
        assert_ne!(lines.read_line(&mut all).unwrap(), 0, "{all}");
    }
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    let added = turn(2, "/work/one")[0].replace("Question 2", "Just added");
    fs::OpenOptions::new().append(true).open(file).unwrap().write_all(added.as_bytes()).unwrap();
    while !all.contains("Just added") {
        assert_ne!(lines.read_line(&mut all).unwrap(), 0, "{all}");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    child.wait().unwrap();
    all
}

/// On a network file system changes by other machines give no notice, so files are looked at. Here the kernel is made
/// to say that Claude Code's folder is on NFS.
#[test]
fn on_a_network_file_system_files_are_looked_at_and_no_notices_are_asked_for() {
    if Command::new("strace").arg("-V").output().is_err() {
        return cannot("strace is not installed");
    }
    let home = home();
    let trace = home.path().join("trace");
    let nfs = "inject=statfs:poke_exit=@arg2=6969000000000000";
    let calls = "trace=statfs,inotify_init1,inotify_add_watch";
    let runner = ["strace", "-f", "-qq", "-e", calls, "-e", nfs, "-o", trace.to_str().unwrap()];
    follow_for_a_moment(&home, &runner, &["tail", ONE]);
    let trace = fs::read_to_string(&trace).unwrap();
    assert!(trace.contains("NFS_SUPER_MAGIC") || trace.contains("INJECTED"), "{trace}");
    assert!(!trace.contains("inotify"), "{trace}");
}

/// Returns the calls to the kernel that change something in Claude Code's folder, by path, by folder handle or by file,
/// and how many open something there to read it.
fn changes_to_claudes_folder(trace: &str) -> (Vec<&str>, usize) {
    let (mut changes, mut opened) = (Vec::new(), 0);
    for line in trace.lines() {
        let call = line.trim_start_matches(|it: char| it.is_ascii_digit()).trim_start();
        // What ends a call that was interrupted begins with no name; its beginning had all the arguments.
        let Some((name, arguments)) = call.split_once('(').filter(|(name, _)| !name.starts_with('<')) else {
            continue;
        };
        // What is written may name the folder; where to is the first argument.
        let is_written = name.contains("write") || name == "sendfile";
        let place = if is_written { arguments.split(", ").next().unwrap_or(arguments) } else { arguments };
        let is_look = name.contains("stat")
            || ["access", "faccessat", "faccessat2", "readlink", "readlinkat", "inotify_add_watch"]
                .contains(&name);
        let is_read = name.starts_with("open")
            && arguments.contains("O_RDONLY")
            && !["O_CREAT", "O_TRUNC", "O_TMPFILE"].iter().any(|flag| arguments.contains(flag));
        match place.contains(".claude") {
            true if is_read => opened += 1,
            true if !is_look => changes.push(line),
            _ => {}
        }
    }
    (changes, opened)
}

/// What writes down the calls that [`changes_to_claudes_folder`] is to look through: with the paths of descriptors, as
/// most of what is written goes through handles of folders.
fn tracer(trace: &str) -> [&str; 8] {
    let calls = "trace=%file,write,writev,pwrite64,pwritev,pwritev2,sendfile,copy_file_range,ftruncate,fallocate,\
        fchmod,fchown,fsetxattr,fremovexattr";
    ["strace", "-f", "-y", "-qq", "-e", calls, "-o", trace]
}

/// Runs the program and returns what it did.
fn traced(home: &Home, words: &[&str]) -> String {
    let trace = home.path().join("trace");
    let runner = tracer(trace.to_str().unwrap());
    if words[0] == "tail" {
        follow_for_a_moment(home, &runner, words);
    } else {
        let output = home.through(&runner, words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
    }
    fs::read_to_string(&trace).unwrap()
}

/// Everything that only reads leaves Claude Code's folder alone, as the kernel sees it.
#[test]
fn whatever_only_reads_opens_nothing_for_writing() {
    if Command::new("strace").arg("-V").output().is_err() {
        return cannot("strace is not installed");
    }
    let home = home();
    keep_something_of_files(&home);
    add_subagent(&home);
    for words in [
        &["list", "--all"][..],
        &["list", "--json"],
        &["show", ONE],
        &["show", ONE, "--json"],
        &["show", ONE, "--raw", "--all"],
        &["show", ONE, "--branches"],
        &["doctor"],
        &["doctor", ONE],
        &["handoff", ONE, "--to", "sqlite:shared.db"],
        &["scan"],
        &["resume", TWO, "--print"],
        &["show", ONE, "--subagents"],
        &["show", ONE, "--subagent", "abc123"],
        &["checkpoints", ONE],
        &["diff", ONE, "--to", FIRST_PROMPT],
        &["list", "--count"],
        &["import", "--claude"],
        &["tail", ONE],
    ] {
        let trace = traced(&home, words);
        let (changes, opened) = changes_to_claudes_folder(&trace);
        assert_eq!(changes, [""; 0], "{words:?}");
        assert!(opened > 0, "{words:?} opens nothing\n{trace}");
    }
}

/// Asks a keeper, and returns what that did from its start to its end.
fn traced_keeper<T>(home: &Home, ask: impl AsyncFnOnce(Client) -> T) -> String {
    let trace = home.path().join("trace");
    let words = ["serve", "--no-open", "--listen", "127.0.0.1:0"];
    // A test that fails leaves none behind for long.
    let runner = [&["timeout", "--signal=INT", "60"][..], &tracer(trace.to_str().unwrap())].concat();
    let mut keeper = home.through(&runner, &words).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("The keeper is ready"), "{ready:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(ask(Client::new(&home.store().join("keeper"))));
    assert_eq!(home.run(&["stop"]).code, 0);
    assert!(keeper.wait().unwrap().success());
    fs::read_to_string(&trace).unwrap()
}

/// Whoever reads through the keeper leaves Claude Code's folder alone as well, and so does the keeper while it follows.
#[test]
fn whoever_only_reads_at_the_keeper_has_nothing_opened_for_writing() {
    if Command::new("strace").arg("-V").output().is_err() {
        return cannot("strace is not installed");
    }
    let home = home();
    keep_something_of_files(&home);
    add_subagent(&home);
    let trace = traced_keeper(&home, async |keeper| {
        let get = async |path: String| {
            keeper.get::<Value>(&path).await.unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        assert_eq!(get("/sessions".into()).await["items"].as_array().unwrap().len(), 2);
        for of in ["", "/messages", "/tree", "/problems", "/subagents", "/checkpoints", "/queue"] {
            get(format!("/sessions/{ONE}{of}")).await;
        }
        get(format!("/sessions/{ONE}/diff?since={FIRST_PROMPT}")).await;
        let found = get("/search?q=Question".into()).await;
        assert!(found.to_string().contains(ONE), "{found}");
        let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
        let added = turn(2, "/work/one")[0].replace("Question 2", "Just added");
        fs::OpenOptions::new().append(true).open(file).unwrap().write_all(added.as_bytes()).unwrap();
        while !get(format!("/sessions/{ONE}/messages")).await.to_string().contains("Just added") {}
    });
    let (changes, opened) = changes_to_claudes_folder(&trace);
    assert_eq!(changes, [""; 0]);
    assert!(opened > 0, "{trace}");
}

/// A check that finds nothing proves something only if it would.
#[test]
fn whatever_writes_is_seen_to_write() {
    if Command::new("strace").arg("-V").output().is_err() {
        return cannot("strace is not installed");
    }
    let home = home();
    keep_something_of_files(&home);
    for (words, calls) in [
        (&["rename", ONE, "Another"][..], &["openat", "mkdirat", "renameat2", "write"][..]),
        (&["fork", ONE], &["openat", "mkdirat", "linkat", "unlinkat", "renameat2", "write"]),
        (&["tag", ONE, "red"], &["openat", "write"]),
        (&["delete", ONE], &["renameat2"]),
    ] {
        let trace = traced(&home, words);
        let (changes, _) = changes_to_claudes_folder(&trace);
        for call in calls {
            let through_a_handle =
                |line: &&str| line.contains(&format!(" {call}(")) && !line.contains("AT_FDCWD");
            assert!(changes.iter().any(through_a_handle), "{words:?}: no {call} among {changes:#?}");
        }
    }
    let deleted = traced_keeper(&home, async |keeper| {
        keeper.delete::<Value>(&format!("/sessions/{TWO}")).await.unwrap();
    });
    let (changes, _) = changes_to_claudes_folder(&deleted);
    assert!(changes.iter().any(|line| line.contains(" renameat2(")), "{changes:#?}");
}

#[test]
fn what_is_in_the_trash_is_listed_and_comes_back() {
    let home = home();
    home.run(&["delete", ONE]);
    assert!(!home.answer(&["list"]).contains("Question 0 about /work/one"));
    let trash = home.answer(&["list", "--trash"]);
    assert!(
        trash.contains("(in the trash)\n") && trash.contains("[trash] Question 0 about /work/one"),
        "{trash}"
    );
    assert!(!trash.contains("/work/two"), "{trash}");
    let json: Value = serde_json::from_str(&home.answer(&["list", "--trash", "--json"])).unwrap();
    assert_eq!((&json["session_id"], &json["home"]), (&ONE.into(), &"native".into()));
    assert!(json["trashed_at"].is_string(), "{json}");
    home.run(&["restore", ONE]);
    assert!(home.answer(&["list"]).contains("Question 0 about /work/one"));
    assert!(!home.run(&["list", "--trash"]).out.contains("/work/one"));
}

#[test]
fn messages_are_counted_when_asked_for_and_the_counts_are_remembered() {
    let home = home();
    // What was written just now may be written to again without its time changing.
    for (id, project) in [(ONE, "-work-one"), (TWO, "-work-two")] {
        let file = home.path().join(".claude/projects").join(project).join(format!("{id}.jsonl"));
        let before = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        fs::File::options().append(true).open(file).unwrap().set_modified(before).unwrap();
    }
    let counts = |words: &[&str]| {
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap()["message_count"].clone();
        let mut counts: Vec<Value> = home.answer(words).lines().map(read).collect();
        counts.sort_by_key(Value::to_string);
        counts
    };
    assert_eq!(counts(&["list", "--json"]), [Value::Null, Value::Null]);
    assert_eq!(counts(&["list", "--json", "--count"]), [Value::from(2), Value::from(4)]);
    assert_eq!(counts(&["list", "--json"]), [Value::from(2), Value::from(4)]);
}

/// Gives the first session a subagent `abc123` with a file of its own.
fn add_subagent(home: &Home) {
    let beside = home.path().join(".claude/projects/-work-one").join(ONE).join("subagents");
    fs::create_dir_all(&beside).unwrap();
    let own = turn(0, "/its/own").concat().replace("Question 0", "Question 7");
    fs::write(beside.join("agent-abc123.jsonl"), own).unwrap();
}

#[test]
fn subagents_are_listed_and_shown_from_files_of_their_own_and_from_within() {
    let home = home();
    add_subagent(&home);
    let folder = home.path().join(".claude/projects/-work-one");
    let within = turn(8, "/within").concat().replace("\"isSidechain\":false", "\"isSidechain\":true");
    let file = folder.join(format!("{ONE}.jsonl"));
    fs::OpenOptions::new().append(true).open(file).unwrap().write_all(within.as_bytes()).unwrap();
    let listed = home.answer(&["show", ONE, "--subagents"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("abc123") && listed.contains("Question 8 about /within"), "{listed}");
    assert!(home.run(&["show", ONE, "--subagent", "abc"]).out.contains("Question 7 about /its/own"));
    let first = "aaaaaaaa-0000-4000-8000-000000000016";
    let shown = home.run(&["show", ONE, "--subagent", first]).out;
    assert!(shown.contains("Question 8") && !shown.contains("Question 0"), "{shown}");
    // Both become children of the stored session.
    assert_eq!(home.run(&["import", "--claude", ONE]).code, 0);
    let stored = home.answer(&["list", "--all", "--stored", "--json"]);
    let children = stored.lines().filter(|line| line.contains("\"child\":true")).count();
    assert_eq!((stored.lines().count(), children), (3, 2), "{stored}");
    let none = home.run(&["show", ONE, "--subagent", "zzz"]);
    assert_eq!(none.code, 1, "{}", none.err);
}

/// Gives the first session a checkpoint before its first prompt: of a file that was changed since, and of one that was
/// made.
pub(crate) fn keep_something_of_files(home: &Home) {
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("code"), "one\ntwo\nthree\n").unwrap();
    let history = home.path().join(".claude/file-history").join(ONE);
    fs::create_dir_all(&history).unwrap();
    fs::write(history.join("backup@v1"), "one\nold\nthree\n").unwrap();
    let path = work.join("code");
    let snapshot = json!({ "type": "file-history-snapshot", "messageId": FIRST_PROMPT, "isSnapshotUpdate": false,
        "snapshot": { "messageId": FIRST_PROMPT, "timestamp": "2026-02-09T10:00:00.000Z", "trackedFileBackups": {
            path.to_str().unwrap(): { "backupFileName": "backup@v1", "version": 1 },
            work.join("made").to_str().unwrap(): { "backupFileName": null, "version": 1 } } } });
    fs::write(work.join("made"), "fresh\n").unwrap();
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    let line = format!("{snapshot}\n");
    fs::OpenOptions::new().append(true).open(file).unwrap().write_all(line.as_bytes()).unwrap();
}

#[test]
fn what_claude_code_kept_of_files_is_listed_and_compared_line_by_line() {
    let home = home();
    keep_something_of_files(&home);
    let listed = home.answer(&["checkpoints", ONE]);
    assert!(listed.starts_with(FIRST_PROMPT) && listed.contains("and 1 more path"), "{listed}");
    let json: Value = serde_json::from_str(&home.answer(&["checkpoints", ONE, "--json"])).unwrap();
    assert_eq!(json["files"].as_array().unwrap().len(), 2);
    let diff = home.answer(&["diff", ONE, "--to", FIRST_PROMPT]);
    assert!(
        diff.contains("\n-old\n+two\n") && diff.contains("--- /dev/null\n") && diff.contains("\n+fresh\n"),
        "{diff}"
    );
    assert_eq!(home.run(&["diff", ONE, "--to", "bbbb"]).code, 1);
    // In both homes, a bare id means the same as before.
    assert_eq!(home.run(&["import", "--claude", ONE]).code, 0);
    assert_eq!(home.answer(&["checkpoints", ONE]), listed);
    assert_eq!(home.answer(&["diff", ONE, "--to", FIRST_PROMPT]), diff);
    let root = home.path().to_str().unwrap();
    let stored = home.run(&["checkpoints", &format!("stored:{ONE}"), "--root", root]);
    assert_eq!((stored.code, stored.out.as_str()), (0, ""), "{}", stored.err);
}

/// Runs the program at a terminal of its own; `None` where there is no tool for that.
fn at_a_terminal(home: &Home, words: &str, pager: &str) -> Option<String> {
    let line = format!("{} {words}", env!("CARGO_BIN_EXE_rethread"));
    let mut command = home.instead(&["script", "-qec", &line, "/dev/null"], &[]);
    command.env("TERM", "dumb").env("PAGER", pager).env_remove("RETHREAD_PAGER");
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}

#[test]
fn a_person_at_a_terminal_gets_a_conversation_through_their_pager_and_nobody_else_does() {
    let home = home();
    let pager = "sed s/^/paged:/";
    let Some(shown) = at_a_terminal(&home, &format!("show {ONE}"), pager) else {
        return cannot("there is no `script`, which gives a program a terminal");
    };
    assert!(shown.contains("paged:") && shown.contains("Question 0"), "{shown}");
    for (words, pager) in [
        (format!("show {ONE} --no-pager"), pager),
        (format!("show {ONE} --json"), pager),
        (format!("show {ONE}"), ""),
        (format!("show {ONE}"), "cat"),
        (format!("show {ONE}"), "no-such-pager --really"),
    ] {
        let shown = at_a_terminal(&home, &words, pager).unwrap();
        assert!(!shown.contains("paged:") && shown.contains("Question 0"), "{words}: {shown}");
    }
    // One who closes the pager early has read enough.
    let shown = at_a_terminal(&home, &format!("show {ONE}; echo ended"), "head -1").unwrap();
    assert!(shown.contains("ended"), "{shown}");
    let mut piped = home.command(&["show", ONE]);
    piped.env("PAGER", pager);
    assert!(!String::from_utf8(piped.output().unwrap().stdout).unwrap().contains("paged:"));
}

/// A folder that was named is not where Claude Code would look by itself.
#[test]
fn whatever_is_started_or_suggested_is_about_the_folder_that_was_named() {
    let home = home();
    let (usual, named) = (home.path().join(".claude"), home.path().join("another one"));
    fs::rename(usual, &named).unwrap();
    let with = |words: &[&str]| home.run(&[&["--claude-dir", named.to_str().unwrap()], words].concat());
    let printed = with(&["resume", ONE, "--print"]);
    let told = format!("CLAUDE_CONFIG_DIR='{}' claude --resume {ONE}\n", named.display());
    assert!(printed.out.ends_with(&told), "{}", printed.out);
    let file = named.join("projects/-work-one").join(format!("{ONE}.jsonl"));
    fs::OpenOptions::new().append(true).open(file).unwrap().write_all(b"{\"torn").unwrap();
    let hint = format!("`rethread --claude-dir '{}' doctor 11111111 --copy`", named.display());
    assert!(with(&["doctor"]).out.contains(&hint), "{}", with(&["doctor"]).out);
    // And what is started is told as well.
    let started = with(&["resume", TWO, "--program", &stand_in(&home)]);
    let here = home.path().canonicalize().unwrap();
    let told = format!("{}|{}|--resume {TWO}\n", here.display(), named.display());
    assert_eq!(started.out, told, "{}", started.err);
}

#[test]
fn a_session_that_does_not_say_where_it_worked_goes_on_here() {
    let home = home();
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replace("\"cwd\":\"/work/one\",", "").replace(",\"cwd\":\"/work/one\"", ""))
        .unwrap();
    let said = home.run(&["resume", ONE, "--print"]);
    assert_eq!(said.err, "warning: the session does not say where it worked; going on here\n");
    assert_eq!(said.code, 0);
}

/// A folder's name need not be text, and JSON knows nothing else. Its session was once deleted for ever.
#[test]
fn a_session_in_a_folder_whose_name_is_no_text_is_a_session_like_any_other() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = home();
    let projects = home.path().join(".claude/projects");
    let odd = projects.join(std::ffi::OsStr::from_bytes(b"-odd\xff"));
    fs::rename(projects.join("-work-one"), &odd).unwrap();
    let file = odd.join(format!("{ONE}.jsonl"));
    let whole = fs::read(&file).unwrap();
    let listed = home.answer(&["list", "--json"]);
    assert_eq!(listed.lines().count(), 2);
    assert!(listed.contains("-odd\u{fffd}/"), "{listed}");
    assert_eq!(home.run(&["doctor", "--json"]).code, 0);
    assert_eq!(home.run(&["delete", ONE]).code, 0);
    assert_eq!(home.answer(&["list", "--trash", "--json"]).lines().count(), 1);
    assert_eq!(home.run(&["restore", ONE]).code, 0);
    assert_eq!(fs::read(&file).unwrap(), whole);
}

/// What is new need not be in the transcript: a subagent may go on alone, and what lies beside it may change.
#[test]
fn an_import_sees_what_is_new_beside_the_transcript() {
    let home = home();
    let folder = home.path().join(".claude/projects/-work-one").join(ONE);
    fs::create_dir_all(folder.join("subagents")).unwrap();
    let subagent = folder.join("subagents/agent-abc.jsonl");
    fs::write(&subagent, turn(0, "/its/own").concat()).unwrap();
    let import = || home.run(&["import", "--claude", ONE, "--json"]).out;
    assert!(import().contains("\"imported\"") && import().contains("\"unchanged\""));
    fs::write(&subagent, turn(0, "/its/own").concat() + &turn(1, "/its/own").concat()).unwrap();
    assert!(import().contains("\"imported\"") && import().contains("\"unchanged\""));
    assert_eq!(home.answer(&["show", "stored:agent-abc", "--json"]).lines().count(), 4);
    home.run(&["archive", &format!("native:{ONE}")]);
    assert!(import().contains("\"imported\"") && import().contains("\"unchanged\""));
    assert_eq!(home.answer(&["list", "--stored", "--archived", "--json"]).lines().count(), 1);
    // A copy of the folder has the same session once more, and is none of its own.
    let copy = home.path().join(".claude/projects/-copy");
    fs::create_dir(&copy).unwrap();
    let name = format!("{TWO}.jsonl");
    fs::copy(home.path().join(".claude/projects/-work-two").join(&name), copy.join(&name)).unwrap();
    home.run(&["import", "--claude"]);
    let again = home.run(&["import", "--claude"]);
    assert_eq!((again.out.as_str(), again.err.as_str()), ("", "Imported 0 sessions; 2 had nothing new.\n"));
}

#[test]
fn an_entry_that_a_store_does_not_take_keeps_no_other_out_of_it() {
    let home = home();
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    let mut lines: Vec<Vec<u8>> =
        fs::read_to_string(&file).unwrap().lines().map(|line| line.as_bytes().to_vec()).collect();
    let at = lines[0].windows(8).position(|window| window == b"Question").unwrap();
    lines[0][at] = 0xE9;
    let deep = format!("\"deep\":{}{},\"uuid\"", "[".repeat(2000), "]".repeat(2000));
    lines[1] = String::from_utf8(lines[1].clone()).unwrap().replacen("\"uuid\"", &deep, 1).into_bytes();
    fs::write(&file, [lines.join(&b'\n'), b"\n".to_vec()].concat()).unwrap();
    let said = home.run(&["import", "--claude", ONE]);
    assert_eq!((said.code, said.out.trim()), (1, ONE), "{}", said.err);
    assert!(said.err.starts_with("warning: 1 entry of session 11111111 was left out: "), "{}", said.err);
    let shown = home.answer(&["show", &format!("stored:{ONE}")]);
    assert!(shown.contains("\u{fffd}uestion 0") && shown.contains("Answer 1"), "{shown}");
}

#[test]
fn the_doctor_says_what_there_is_to_do_and_no_more_than_a_person_reads() {
    let home = home();
    let folder = home.path().join(".claude/projects/-work-one");
    let file = folder.join(format!("{ONE}.jsonl"));
    fs::write(&file, "").unwrap();
    let said = home.run(&["doctor", ONE]).out;
    assert!(
        said.contains("there is nothing to save; `rethread delete 11111111` moves it to the trash"),
        "{said}"
    );
    assert!(!said.contains("--copy"), "{said}");
    let title = "{\"type\":\"custom-title\",\"customTitle\":\"on\\ntwo lines\",\"sessionId\":\"x\"}\n";
    fs::write(&file, turn(0, "/work/one").concat() + title + &"no entry\n".repeat(1000)).unwrap();
    let said = home.run(&["doctor", ONE]).out;
    assert!(said.starts_with("11111111  on two lines\n"), "{said}");
    assert!(
        said.contains("and 988 faults more; `rethread doctor 11111111 --json` names all of them"),
        "{said}"
    );
    assert!(said.lines().count() < 20, "{said}");
}

#[test]
fn a_tag_is_never_blank() {
    let home = home();
    let said = home.run(&["tag", ONE, "  "]);
    assert_eq!((said.code, said.err.lines().next()), (2, Some("error: a tag must not be blank")));
}

#[test]
fn a_name_and_a_tag_go_with_a_session_to_the_store_and_back() {
    let home = home();
    home.run(&["rename", ONE, "Mine"]);
    home.run(&["tag", ONE, "red"]);
    home.run(&["import", "--claude", ONE]);
    let other = home.path().join("other");
    let said =
        home.run(&["--claude-dir", other.to_str().unwrap(), "export", &format!("stored:{ONE}"), "--claude"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let listed = home.answer(&["--claude-dir", other.to_str().unwrap(), "list", "--native", "--json"]);
    let session: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&session["name"], &session["tag"]), (&"Mine".into(), &"red".into()));
}

/// Every session that was ever compacted or rewound has branches; once they were written anew by each import.
#[test]
fn an_import_of_a_session_with_branches_adds_what_is_new_and_nothing_else() {
    let home = home();
    let file = home.path().join(".claude/projects/-work-two").join(format!("{TWO}.jsonl"));
    let uuid = |number: usize| format!("aaaaaaaa-0000-4000-8000-{number:012}");
    let follows = |line: &str, parent: Option<usize>, own: usize| {
        let mut entry: Value = serde_json::from_str(line).unwrap();
        (entry["parentUuid"], entry["uuid"]) = (json!(parent.map(uuid)), json!(uuid(own)));
        format!("{entry}\n")
    };
    let line = &turn(0, "/work/two")[0];
    let mut all: Vec<String> = (0..4).flat_map(|number| turn(number, "/work/two")).collect();
    let tree = [
        (Some(3), 20),
        (Some(20), 21),
        (Some(1), 30),
        (Some(21), 22),
        (None, 40),
        (Some(40), 41),
        (Some(7), 8),
    ];
    for step in tree.chunks(2) {
        all.extend(step.iter().map(|(parent, own)| follows(line, *parent, *own)));
        fs::write(&file, all.concat()).unwrap();
        assert_eq!(home.run(&["import", "--claude", TWO]).code, 0);
        let stored = home.answer(&["show", &format!("stored:{TWO}"), "--all", "--json"]);
        let mut lines: Vec<&str> = stored.lines().collect();
        let mut expected: Vec<&str> = all.iter().map(|line| line.trim_end()).collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected);
        let shown = |id: &str| -> Vec<Value> {
            let answer = home.answer(&["show", id, "--json"]);
            answer.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["uuid"].clone()).collect()
        };
        assert_eq!(shown(&format!("stored:{TWO}")), shown(&format!("native:{TWO}")));
    }
}

/// Each branch once cost the whole conversation several times over, and sometimes a note.
#[test]
fn a_branch_is_imported_by_appending_what_is_new_of_it() {
    let home = home();
    let file = home.path().join(".claude/projects/-work-two").join(format!("{TWO}.jsonl"));
    let uuid = |number: usize| format!("aaaaaaaa-0000-4000-8000-{number:012}");
    let mut all: Vec<String> = (0..9).flat_map(|number| turn(number, "/work/two")).collect();
    for branch in 0..40 {
        for number in 0..2 {
            let mut entry: Value = serde_json::from_str(&turn(0, "/work/two")[number]).unwrap();
            let (own, parent) = (100 + 2 * branch + number, [branch % 9 * 2 + 1, 100 + 2 * branch][number]);
            (entry["parentUuid"], entry["uuid"]) = (json!(uuid(parent)), json!(uuid(own)));
            entry["message"]["id"] = json!(format!("b{branch}"));
            all.push(format!("{entry}\n"));
        }
    }
    fs::write(&file, all.concat()).unwrap();
    assert_eq!(home.run(&["import", "--claude", TWO]).code, 0);
    let stored = home.answer(&["show", &format!("stored:{TWO}"), "--all", "--json"]);
    assert_eq!(stored.lines().count(), all.len());
    let log =
        fs::read_to_string(home.path().join("store/sessions").join(TWO).join("messages.jsonl")).unwrap();
    // Beside the entries: that it was created, what it is called and where it came from.
    assert_eq!(log.lines().count(), all.len() + 2);
}

/// An old Claude Code writes a transcript anew that was deleted under it.
#[test]
fn a_session_that_was_deleted_twice_comes_back_twice() {
    let home = home();
    let file = home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"));
    let first = fs::read_to_string(&file).unwrap();
    assert_eq!(home.run(&["delete", ONE]).code, 0);
    fs::write(&file, turn(0, "/work/one").concat()).unwrap();
    assert_eq!(home.run(&["delete", ONE]).code, 0);
    assert_eq!(home.answer(&["list", "--trash", "--json"]).lines().count(), 2);
    assert_eq!(home.run(&["restore", "1111"]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), turn(0, "/work/one").concat());
    assert_eq!(home.run(&["restore", ONE]).code, 1, "it is there already");
    fs::remove_file(&file).unwrap();
    assert_eq!(home.run(&["restore", ONE]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
}

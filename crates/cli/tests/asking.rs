//! What a person at a terminal learns of requests and turns, from a keeper whose agent is a script.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rethread_keeper::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::until;

const ID: &str = "0198f2aa-1111-4111-8111-111111111111";
const NOBODY: &str = "0198f2aa-2222-4222-8222-222222222222";

/// Writes down what it is told, asks for a tool when it is told to ask, and kills itself when it is told to die.
const AGENT: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit
read -r line
id=$(printf %s "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"commands":[]}}}\n' "$id"
while read -r line; do
  case "$line" in
  *'"type":"control_response"'*)
    printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}' ;;
  *'Ask.'*)
    uuid=$(printf %s "$line" | sed 's/.*"uuid":"\([^"]*\)".*/\1/')
    printf '{"type":"user","uuid":"%s","message":{"role":"user","content":"Ask."}}\n' "$uuid" >>"$HOME/.claude/projects/-tmp/0198f2aa-1111-4111-8111-111111111111.jsonl"
    printf '%s\n' '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls\u200b \u200f\u00adx"},"tool_use_id":"toolu_1","description":"Looks\naround","agent_id":"sub-7","permission_suggestions":[]}}' ;;
  *'Die.'*) kill -9 $$ ;;
  *'"subtype":"interrupt"'*)
    id=$(printf %s "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
    printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
    printf '%s\n' '{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","session_id":"s"}' ;;
  esac
done
"#;

/// Tells its version, and no more.
const DOES_NOT_BEGIN: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit
echo "no way in" >&2
exit 1
"#;

/// A home with one session, and a keeper of its own process.
struct Desk {
    home: TempDir,
    keeper: Option<Running>,
}

/// A process that ends with its test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Desk {
    fn with(agent: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let transcript = home.path().join(format!(".claude/projects/-tmp/{ID}.jsonl"));
        fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        let line = json!({ "type": "user", "uuid": "0198f2aa-3333-4333-8333-333333333333", "sessionId": ID,
            "cwd": home.path().canonicalize().unwrap(), "version": "2.1.325", "timestamp": "2026-11-15T10:00:00.000Z",
            "message": { "role": "user", "content": "Hello." } });
        fs::write(&transcript, format!("{line}\n")).unwrap();
        let program = home.path().join("agent");
        fs::write(&program, agent).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let mut desk = Self { home, keeper: None };
        desk.start();
        desk
    }

    fn start(&mut self) {
        let agent = self.path().join("agent");
        let mut command =
            self.command(&["serve", "--listen", "127.0.0.1:0", "--claude-bin", agent.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("The keeper is ready"), "{line:?}");
        self.keeper = Some(Running(child));
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn rethread(&self) -> PathBuf {
        self.path().join("rethread")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
        command.args(words).current_dir(self.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
        command.env("HOME", self.path()).env("RETHREAD_HOME", self.rethread());
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// Starts the program, and returns what it answers, line by line.
    fn follow(&self, words: &[&str]) -> (Running, Receiver<String>) {
        let mut child = self.command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (told, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        // Nobody listens any more when the test is over.
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        (Running(child), lines)
    }

    fn ask<T>(&self, work: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work(Client::new(&self.rethread().join("keeper"))))
    }

    fn pending(&self) -> Option<Value> {
        let page: Value = self.ask(async |client| client.get("/attention?state=pending").await).unwrap();
        page["items"].get(0).cloned()
    }

    /// Has the agent ask, and returns the request's id.
    fn asked(&self) -> String {
        let (code, _, err) = self.run(&["send", ID, "Ask."]);
        assert_eq!(code, 0, "{err}");
        let request = until("somebody is asked", || self.pending());
        request["shown"]["id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_request_that_was_lost_with_its_keeper_is_shown_until_it_is_asked_again() {
    let mut desk = Desk::with(AGENT);
    let lost = desk.asked();
    // Who asks, and what for.
    let (_, out, err) = desk.run(&["attention"]);
    assert!(out.contains("subagent sub-7 asks\n") && out.contains("for: Looks around\n"), "{out}");
    assert!(err.contains("--allow"), "{err}");
    desk.keeper = None;
    desk.start();
    let (code, out, err) = desk.run(&["attention"]);
    assert!(code == 0 && out.starts_with(&lost[..8]) && out.contains("nothing was allowed"), "{out}{err}");
    assert!(!err.contains("--allow") && !err.contains("Nothing waits"), "{err}");
    assert!(err.contains("hint: `rethread send 0198f2aa \"…\"` continues it, and it asks again"), "{err}");
    let (code, _, err) = desk.run(&["attention", &lost[..8], "--allow"]);
    assert!(code == 1 && err.contains("was lost") && err.contains("rethread send"), "{err}");
    let again = desk.asked();
    let (_, out, err) = desk.run(&["attention"]);
    assert!(out.contains(&format!("asked again: {} was lost", &lost[..8])), "{out}");
    assert!(!out.contains(" lost  Bash") && err.contains("--allow"), "{out}{err}");
    assert_eq!(desk.run(&["attention", &again, "--deny"]).0, 0);
    assert_eq!(desk.run(&["attention"]).2, "Nothing waits for you.\n");
    let (_, out, err) = desk.run(&["attention", "--all"]);
    assert!(out.contains(" lost  Bash") && out.contains(" denied  Bash"), "{out}");
    assert_eq!(err, "", "none of them can be answered");
}

#[test]
fn what_nobody_sees_in_a_request_is_written_out_for_whoever_watches_from_before_or_from_now_on() {
    let desk = Desk::with(AGENT);
    let waiting = |lines: &Receiver<String>| {
        let line = lines.iter().find(|line| line.contains("waits for a decision")).unwrap();
        assert!(line.contains(r"ls\u{200b} \u{200f}\u{00ad}x"), "{line:?}");
    };
    let (_sent, lines) = desk.follow(&["send", ID, "Ask.", "--watch"]);
    waiting(&lines);
    // It was asked before anybody watched, and shown at once.
    let (_watched, lines) = desk.follow(&["watch", ID]);
    let told = lines.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(told.contains(r"ls\u{200b} \u{200f}\u{00ad}x"), "{told:?}");
    let (_watched, lines) = desk.follow(&["watch", ID, "--json"]);
    let event: Value = serde_json::from_str(&lines.recv_timeout(Duration::from_secs(20)).unwrap()).unwrap();
    assert_eq!((&event["type"], &event["data"]), (&json!("attention.requested"), &desk.pending().unwrap()));
}

#[test]
fn a_session_that_nobody_knows_is_neither_watched_nor_opened() {
    let desk = Desk::with(AGENT);
    for verb in ["watch", "open"] {
        let command = desk.command(&[verb, NOBODY]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = Running(command.unwrap());
        let begun = Instant::now();
        while child.0.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "`{verb}` waits for what will never come");
            std::thread::sleep(Duration::from_millis(50));
        }
        let (out, err) = (child.0.stdout.take().unwrap(), child.0.stderr.take().unwrap());
        let (out, err) = (std::io::read_to_string(out).unwrap(), std::io::read_to_string(err).unwrap());
        assert_eq!((child.0.wait().unwrap().code(), out.as_str()), (Some(1), ""), "{verb}");
        assert_eq!(err.lines().next(), Some("error: there is no such session"), "{verb}");
    }
}

#[test]
fn whoever_sends_and_watches_learns_by_the_exit_code_that_the_turn_failed() {
    let desk = Desk::with(AGENT);
    let (code, out, err) = desk.run(&["send", ID, "Die.", "--watch"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    let told: Vec<&str> = err.lines().filter(|line| !line.starts_with("hint: ")).collect();
    assert!(told.len() == 1 && told[0].starts_with("error: the turn failed: "), "{err}");
    let (code, out, err) = desk.run(&["send", ID, "Die.", "--watch", "--json"]);
    assert!(code == 1 && out.lines().last().unwrap().contains("turn.failed"), "{out}");
    assert_eq!(serde_json::from_str::<Value>(&err).unwrap()["code"], "turn-failed");
}

#[test]
fn a_turn_that_was_interrupted_elsewhere_is_not_done_for_whoever_sent_it() {
    let desk = Desk::with(AGENT);
    let (mut sent, lines) = desk.follow(&["send", ID, "Think.", "--watch"]);
    let path = format!("/sessions/{ID}");
    until("the turn runs", || {
        let card: Value = desk.ask(async |client| client.get(&path).await).unwrap();
        (card["state"] == "running").then_some(())
    });
    assert_eq!(desk.run(&["interrupt", ID]).2, "The turn ends.\n");
    assert_eq!(lines.iter().last().as_deref(), Some("the turn was interrupted"));
    assert_eq!(sent.0.wait().unwrap().code(), Some(1));
}

#[test]
fn an_answer_to_a_request_that_nobody_knows_is_not_found() {
    let desk = Desk::with(AGENT);
    let (code, out, err) = desk.run(&["attention", "nope", "--allow", "--json"]);
    assert_eq!((code, out.as_str()), (1, ""));
    let problem: Value = serde_json::from_str(&err).unwrap();
    assert_eq!((&problem["code"], &problem["status"]), (&json!("not-found"), &json!(404)), "{problem}");
}

#[test]
fn an_agent_that_does_not_begin_leaves_no_session_behind_and_its_reason_is_told() {
    let desk = Desk::with(DOES_NOT_BEGIN);
    let body = json!({ "cwd": desk.path(), "prompt": "Begin." });
    let begun = desk.ask(async |client| client.post::<Value>("/sessions", &body).await);
    assert!(begun.unwrap_err().to_string().contains("no way in"));
    let (code, _, err) = desk.run(&["send", ID, "Go on."]);
    assert!(code == 1 && err.contains("no way in"), "{err}");
    let (_, out, _) = desk.run(&["list", "--all", "--json"]);
    let listed: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let listed: Vec<_> = listed.iter().map(|it| (&it["home"], &it["session_id"])).collect();
    assert_eq!(listed, [(&json!("native"), &json!(ID))]);
    let left = fs::read_dir(desk.rethread().join("sessions")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
    // One that does begin finds nothing in its way.
    fs::write(desk.path().join("agent"), AGENT).unwrap();
    desk.asked();
}

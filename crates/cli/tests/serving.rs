//! `serve` and what belongs to it, on machines that are not as they should be.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rethread_keeper::Client;
use rethread_testkit::cannot;
use serde_json::{Value, json};
use tempfile::TempDir;

const ID: &str = "0198f2aa-1111-4111-8111-111111111111";

/// A person's home, in which nothing is set but what is usual.
struct Home(TempDir);

/// A keeper that ends with its test, however that ends.
struct Kept {
    child: Child,
    /// What it said when it was ready.
    line: String,
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where things are kept that nobody has named a place for.
    fn usual(&self) -> PathBuf {
        self.path().join(".local/share/rethread")
    }

    /// Writes a transcript of one message, in a folder of Claude Code's.
    fn transcript(&self, claude: &str) {
        let path = self.path().join(claude).join(format!("projects/-tmp/{ID}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = json!({ "type": "user", "uuid": "u1", "sessionId": ID, "cwd": self.path(), "version": "2.1.325",
            "timestamp": "2026-11-15T10:00:00.000Z", "message": { "role": "user", "content": "Hello." } });
        fs::write(&path, format!("{line}\n")).unwrap();
    }

    fn configure(&self, text: &str) {
        let folder = self.path().join(".config/rethread");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
        // Nothing that is installed is found.
        command.args(words).env_clear().env("PATH", self.path()).env("HOME", self.path());
        command.stdin(Stdio::null()).current_dir(self.path());
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn serve(&self, words: &[&str]) -> Kept {
        let mut command = self.command(&[&["serve"], words].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("The keeper is ready"), "{line:?}");
        Kept { child, line }
    }

    fn get(&self, path: &str) -> Value {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Client::new(&self.usual().join("keeper")).get(path)).unwrap()
    }
}

#[test]
fn without_claude_code_sessions_are_read_and_sending_says_what_is_missing() {
    let home = Home::new();
    home.transcript(".claude");
    let _kept = home.serve(&["--listen", "127.0.0.1:0"]);
    assert_eq!(home.get("/sessions")["items"][0]["session_id"], ID);
    let messages = home.get(&format!("/sessions/{ID}/messages"));
    assert_eq!(messages["items"][0]["content"], "Hello.", "{messages}");
    let (code, out, _) = home.run(&["status"]);
    assert!(code == 0 && out.contains("It only reads: Claude Code is not installed"), "{out}");
    let (code, out, err) = home.run(&["send", ID, "Go on."]);
    assert_eq!((code, out.as_str()), (1, ""));
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines[0], "error: this keeper only reads: Claude Code was not found when it was started");
    assert!(lines[1].starts_with("hint: `npm install -g @anthropic-ai/claude-code`"), "{err}");
}

#[test]
fn a_program_that_is_named_and_not_there_is_missing_as_if_none_was_installed() {
    let home = Home::new();
    home.transcript(".claude");
    fs::write(home.path().join("notes.txt"), "no program").unwrap();
    for named in ["/nonexistent/claude", "notes.txt", "claude"] {
        let mut serve = home.command(&["serve", "--listen", "127.0.0.1:0", "--claude-bin", named]);
        let mut child = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (err, line) = (child.stderr.take().unwrap(), String::new());
        let mut kept = Kept { child, line };
        BufReader::new(err).read_line(&mut kept.line).unwrap();
        let info = home.get("/info");
        let missing = info["agent"]["missing"].as_str().unwrap();
        assert!(missing.contains(named) && missing.contains("--claude-bin PATH"), "{info}");
        assert!(!info["features"].as_array().unwrap().contains(&json!("drive")), "{info}");
        let (code, out, _) = home.run(&["status"]);
        assert!(code == 0 && out.contains(&format!("It only reads: {missing}")), "{out}");
        let (code, _, err) = home.run(&["send", ID, "Go on.", "--json"]);
        let problem: Value = serde_json::from_str(&err).unwrap();
        assert_eq!((code, &problem["code"]), (1, &json!("no-agent")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(named), "{problem}");
        assert!(problem["hint"].as_str().unwrap().contains("`npm install"), "{problem}");
        assert_eq!(kept.line, format!("warning: sessions are only read: {missing}\n"));
    }
}

#[test]
fn a_home_whose_path_is_too_long_for_a_socket_is_refused_with_what_to_do() {
    let home = Home::new();
    let long = home.path().join("x".repeat(120));
    for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["status"]] {
        let output = home.command(words).env("RETHREAD_HOME", &long).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = err.lines().collect();
        assert_eq!((output.status.code(), lines.len()), (Some(1), 2), "{words:?}: {err}");
        assert!(lines[0].contains("is too long for a socket") && lines[1].contains("RETHREAD_HOME"), "{err}");
    }
}

#[test]
fn names_that_are_typed_replace_those_that_are_configured() {
    let home = Home::new();
    home.configure("[serve]\nallow-host = ['configured.example']\n");
    let status = |kept: &Kept, name: &str| {
        let address = kept.line.split("http://localhost:").nth(1).unwrap();
        let port = address.split('/').next().unwrap();
        let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    let kept = home.serve(&["--listen", "127.0.0.1:0"]);
    assert_eq!(["configured.example", "typed.example"].map(|name| status(&kept, name)), ["200", "421"]);
    drop(kept);
    let kept = home.serve(&["--listen", "127.0.0.1:0", "--allow-host", "typed.example"]);
    assert_eq!(["configured.example", "typed.example"].map(|name| status(&kept, name)), ["421", "200"]);
}

#[test]
fn an_address_that_is_taken_is_one_error_that_says_what_to_do() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for more in [&[][..], &["--background"]] {
        let (code, out, err) = home.run(&[&["serve", "--listen", &address], more].concat());
        let hint = "`rethread status` shows a keeper that runs; `--listen 127.0.0.1:0` picks a free port";
        assert_eq!(
            (code, out, err),
            (1, String::new(), format!("error: {address} is taken\nhint: {hint}\n"))
        );
    }
    // Nothing is left behind that the next one would stumble over.
    drop(taken);
    home.serve(&["--listen", &address]);
}

#[test]
fn a_failure_is_one_object_for_whoever_asked_for_json() {
    let home = Home::new();
    let failed = |words: &[&str]| {
        let (code, out, err) = home.run(words);
        assert_eq!((out.as_str(), err.lines().count()), ("", 1), "{err}");
        (code, serde_json::from_str::<Value>(&err).unwrap())
    };
    let (code, problem) = failed(&["status", "--json"]);
    assert_eq!(code, 1);
    assert_eq!(
        problem,
        json!({
            "type": "urn:rethread:problem:no-keeper", "title": "Service Unavailable", "status": 503,
            "detail": "no keeper runs", "code": "no-keeper", "retryable": true, "hint": "`rethread serve` starts one",
        })
    );
    let (code, problem) = failed(&["show", "nobody", "--json"]);
    assert_eq!((code, &problem["code"], &problem["status"]), (1, &json!("not-found"), &json!(404)));
    let (code, problem) = failed(&["list", "--json", "--nonsense"]);
    assert_eq!((code, &problem["code"], &problem["retryable"]), (2, &json!("bad-request"), &json!(false)));
    assert!(problem["hint"].is_string(), "{problem}");
    // What the keeper says is passed on as it is.
    home.transcript(".claude");
    let _kept = home.serve(&["--listen", "127.0.0.1:0"]);
    let (code, problem) = failed(&["send", ID, "Go on.", "--json"]);
    assert_eq!((code, &problem["code"], &problem["status"]), (1, &json!("no-agent"), &json!(503)));
    assert!(problem["hint"].as_str().unwrap().starts_with("`npm install"), "{problem}");
    // A word of a prompt is none of the program's.
    assert!(home.run(&["send", ID, "--", "--json"]).2.starts_with("error: this keeper only reads"));
}

#[test]
fn a_settings_file_names_the_store_claude_codes_folder_and_what_serve_needs() {
    let home = Home::new();
    home.transcript("theirs");
    fs::create_dir(home.path().join("root")).unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    home.configure(&format!(
        "store = '{}'\nclaude-dir = '{}'\n[serve]\nlisten = '127.0.0.1:0'\nno-open = true\nallow-bypass = true\n\
         allow-host = ['sessions.example.org']\n",
        at("elsewhere"),
        at("theirs")
    ));
    let (code, id, err) = home.run(&["new", "--id", "s"]);
    assert_eq!((code, id.as_str(), err.as_str()), (0, "s\n", ""));
    assert!(home.path().join("elsewhere/sessions/s").try_exists().unwrap());
    let kept = home.serve(&[]);
    assert!(!kept.line.contains("#boot="), "{}", kept.line);
    assert_eq!(home.get("/info")["bypass_allowed"], true);
    let listed = home.get("/sessions")["items"].as_array().unwrap().clone();
    let mut ids: Vec<&str> = listed.iter().map(|it| it["session_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [ID, "s"]);
    // Flags win, and so does the environment.
    let (_, out, _) = home.run(&["--store", "mine", "--claude-dir", "none", "list", "--json"]);
    assert_eq!(out, "");
    for (name, place) in [("RETHREAD_STORE", "mine"), ("RETHREAD_HOME", "mine")] {
        let mut command = home.command(&["list", "--json"]);
        let output = command.env(name, at(place)).env("CLAUDE_CONFIG_DIR", at("none")).output().unwrap();
        assert_eq!(output.stdout, b"", "{name}");
    }
    // What makes no sense is said, whatever was typed.
    for (text, why) in [
        ("[serve]\nport = 1\n", "unknown field `port`"),
        ("stroe = 'x'\n", "unknown field `stroe`"),
        ("store = 'relative'\n", "no absolute path"),
        ("claude-dir = 'relative'\n", "no absolute path"),
        ("[serve]\ntls-cert = '/x'\n", "`tls-cert` and `tls-key` go together"),
    ] {
        home.configure(text);
        let (code, _, err) = home.run(&["list"]);
        assert!(code == 2 && err.contains(why), "{err}");
    }
}

#[test]
fn other_machines_are_let_in_with_a_certificate_and_a_name_and_what_is_missing_is_said() {
    let home = Home::new();
    let file =
        |name: &str| format!("{}/../backends/postgres/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key) = (file("server.pem"), file("server.key"));
    let (open, tls) = (["--listen", "0.0.0.0:0"], ["--tls-cert", &certificate, "--tls-key", &key]);
    let refused = |words: &[&str], why: &str, hint: &str| {
        let (code, _, err) = home.run(&[&["serve"], words].concat());
        let lines: Vec<&str> = err.lines().collect();
        assert!(code == 2 && lines.len() == 2 && lines[0].contains(why) && lines[1].contains(hint), "{err}");
    };
    refused(&open, "there is no TLS", "--tls-cert");
    refused(&[&open[..], &tls].concat(), "no name", "--allow-host NAME");
    refused(&["--tls-cert", &key, "--tls-key", &key], "is of no use for TLS", "PEM");
    let kept = home.serve(&[&open[..], &tls, &["--allow-host", "keeper.example"]].concat());
    assert!(kept.line.contains(": https://keeper.example:"), "{}", kept.line);
    let (code, out, _) = home.run(&["open"]);
    assert!(code == 0 && out.starts_with("https://keeper.example:"), "{out}");
}

#[test]
fn units_run_this_program_as_a_service_manager_reads_them() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_rethread");
    let (code, unit, _) = home.run(&["service", "systemd"]);
    assert!(code == 0 && unit.contains(&format!("ExecStart=\"{program}\" serve --no-open\n")), "{unit}");
    let file = home.path().join("rethread.service");
    fs::write(&file, unit).unwrap();
    match Command::new("systemd-analyze").args(["verify", "--user"]).arg(&file).output() {
        Ok(output) => {
            let said = String::from_utf8(output.stderr).unwrap();
            let about_it: Vec<&str> = said.lines().filter(|line| line.contains("rethread.service")).collect();
            assert_eq!(about_it, [""; 0]);
        }
        Err(_) => cannot("systemd is not installed"),
    }
    let (code, unit, _) = home.run(&["service", "launchd"]);
    assert_eq!(code, 0);
    let file = home.path().join("keeper.plist");
    fs::write(&file, unit).unwrap();
    let read = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let output = Command::new("python3").args(["-c", read]).arg(&file).output().unwrap();
    let unit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(unit["ProgramArguments"], json!([program, "serve", "--no-open"]));
    assert_eq!((&unit["RunAtLoad"], &unit["KeepAlive"]["SuccessfulExit"]), (&json!(true), &json!(false)));
}

#[test]
fn logs_are_the_last_lines_that_the_keeper_wrote() {
    let home = Home::new();
    let (code, out, err) = home.run(&["logs"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(err, "error: there is no log yet\nhint: `rethread serve` starts a keeper\n");
    let kept = home.serve(&["--listen", "127.0.0.1:0", "--log", "debug"]);
    home.get("/info");
    drop(kept);
    fs::write(home.usual().join("keeper/log.jsonl"), "one\ntwo\nthree\n").unwrap();
    assert_eq!(home.run(&["logs", "-n", "2"]).1, "two\nthree\n");
    assert_eq!(home.run(&["logs"]).1, "one\ntwo\nthree\n");
    assert_eq!(home.run(&["logs", "-n", "0"]).1, "");
}

//! The page apart from its keeper, as people run it: two processes, and everything that can be wrong between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A process that ends with its test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn command(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
    command.args(words).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).env("RETHREAD_HOME", home.join("r")).stdin(Stdio::null());
    command
}

/// Starts something that goes on running; returns it and the address in its first line.
fn start(home: &Path, words: &[&str]) -> (Ended, String) {
    let mut child =
        Ended(command(home, words).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (_, way) = line.trim_end().rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
    (child, way.to_owned())
}

fn refused(home: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = command(home, words).output().unwrap();
    assert_eq!(output.stdout, b"");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Answers every request with the same.
fn answers(status: &'static str, kind: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
        }
    });
    url
}

#[test]
fn a_page_apart_lists_what_its_keeper_lists_and_its_browser_has_only_a_cookie() {
    let home = tempfile::tempdir().unwrap();
    let id = "0198f2aa-1111-4111-8111-111111111111";
    let transcript = home.path().join(format!(".claude/projects/-tmp/{id}.jsonl"));
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    let line = json!({ "type": "user", "uuid": "u1", "sessionId": id, "cwd": "/tmp", "version": "2.1.325",
        "timestamp": "2026-11-15T10:00:00.000Z", "message": { "role": "user", "content": "Hello." } });
    fs::write(&transcript, format!("{line}\n")).unwrap();
    let (_keeper, url) = start(home.path(), &["serve", "--listen", "127.0.0.1:0", "--no-open"]);
    let keeper = url.trim_end_matches('/');
    // The token's place is known where both are of the same home; elsewhere it is named.
    let (_ui, way) = start(home.path(), &["ui", "--keeper", keeper, "--listen", "127.0.0.1:0"]);
    let (address, code) = way.strip_prefix("http://").unwrap().split_once("/#boot=").unwrap();
    let body = json!({ "code": code }).to_string();
    let say = |request: String| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = say(format!(
        "POST /api/v1/auth/exchange HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nX-Rethread: 1\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ));
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let list = |cookie: &str| {
        say(format!(
            "GET /api/v1/sessions HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        ))
    };
    let listed = list(cookie);
    let token = fs::read_to_string(home.path().join("r/keeper/token")).unwrap();
    assert!(
        listed.starts_with("HTTP/1.1 200") && listed.contains(id) && !listed.contains(&token),
        "{listed}"
    );
    assert!(list("").starts_with("HTTP/1.1 401"));
    // A second one would share its logins.
    let (code, said) = refused(home.path(), &["ui", "--keeper", keeper, "--listen", "127.0.0.1:0"]);
    assert!(code == Some(1) && said.starts_with("error: a page runs already, as process "), "{said}");
}

#[test]
fn a_page_apart_that_cannot_begin_says_why_in_one_line_and_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path();
    let token = at.join("token");
    let token_text = token.to_str().unwrap();
    fs::write(&token, "wrong").unwrap();
    let ui = |url: &str| {
        refused(at, &["ui", "--keeper", url, "--token-file", token_text, "--listen", "127.0.0.1:0"])
    };
    let both = |message: String, hint: &str| format!("error: {message}\nhint: {hint}\n");

    // Nobody listens there.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}");
    let hint = "`rethread serve` starts one there; `ssh -L 7717:localhost:7717 HOST` brings one of another machine here";
    assert_eq!(ui(&url), (Some(1), both(format!("no keeper answers at {url}"), hint)));

    // A keeper with another token.
    let (_keeper, address) = start(at, &["serve", "--listen", "127.0.0.1:0", "--no-open"]);
    let url = address.trim_end_matches('/');
    let hint = "`--token-file F` names a copy of `keeper/token` from that keeper's RETHREAD_HOME";
    let message = format!("the keeper at {url} does not know the token in {token_text}");
    assert_eq!(ui(url), (Some(1), both(message, hint)));

    // No token at all.
    let absent = at.join("absent");
    let (code, said) = refused(at, &["ui", "--keeper", url, "--token-file", absent.to_str().unwrap()]);
    assert!(code == Some(1) && said.starts_with("error: cannot read the keeper's token "), "{said}");
    assert!(said.contains("\nhint: copy `keeper/token`"), "{said}");

    // Keepers of another version: one that says so, and one that has no such place any more.
    let problem = json!({ "type": "urn:rethread:problem:not-found", "title": "Not Found", "status": 404,
        "code": "not-found", "retryable": false });
    let hint = "install the same version of rethread on both sides";
    let newer = answers("200 OK", "application/json", json!({ "api": 2, "version": "9.0.0" }).to_string());
    let message =
        format!("the keeper at {newer} speaks version 2 of the API, and this program speaks version 1");
    assert_eq!(ui(&newer), (Some(1), both(message, hint)));
    let gone = answers("404 Not Found", "application/problem+json", problem.to_string());
    let message =
        format!("the keeper at {gone} speaks another version of the API, and this program speaks version 1");
    assert_eq!(ui(&gone), (Some(1), both(message, hint)));

    // Somebody else.
    let other = answers("200 OK", "text/html", "<h1>It works!</h1>".into());
    let hint = "`rethread status` on the keeper's machine prints its address";
    assert_eq!(ui(&other), (Some(1), both(format!("what answers at {other} is no keeper"), hint)));

    // Nowhere that a token may be sent to.
    let hint = "`--keeper https://HOST:7717` goes over TLS; `ssh -L 7717:localhost:7717 HOST` brings a keeper here, as http://localhost:7717";
    let message = "http://keeper.example:7717 is no address of a keeper: the token would travel to another machine in plain sight";
    assert_eq!(ui("http://keeper.example:7717"), (Some(2), both(message.into(), hint)));
}

#[test]
fn a_root_that_the_keepers_machine_does_not_have_is_refused_when_the_page_starts() {
    let home = tempfile::tempdir().unwrap();
    let (_keeper, address) = start(home.path(), &["serve", "--listen", "127.0.0.1:0", "--no-open"]);
    let words = [
        "ui",
        "--keeper",
        address.trim_end_matches('/'),
        "--listen",
        "127.0.0.1:0",
        "--allowed-root",
        "/no/such",
    ];
    let (code, said) = refused(home.path(), &words);
    let told = "error: the allowed root /no/such is no directory\nhint: name a directory of the keeper's machine that is there\n";
    assert_eq!((code, said.as_str()), (Some(1), told));
    let info: Value =
        serde_json::from_slice(&command(home.path(), &["status", "--json"]).output().unwrap().stdout)
            .unwrap();
    assert_eq!(info["api"], 1);
}

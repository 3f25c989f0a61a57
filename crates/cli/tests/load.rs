//! A keeper that many ask and follow at once: it stays small, whatever it has sent.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

const ID: &str = "0198f2aa-2222-4222-8222-222222222222";
/// How large the session is that is read, how much is added to it, and what one line of it says.
const LINES: usize = 2_000;
const MORE: usize = 1_000;
const WORDS: usize = 20_000;
/// Who asks at once, and how often.
const READERS: usize = 8;
const ROUNDS: usize = 6;
/// What may be in use at most, in KiB: three times the pages of 10 MB that are made at once, and the events that are kept.
/// How much was sent before makes no difference.
const MOST: u64 = 448 << 10;

struct Keeper {
    child: Child,
    home: PathBuf,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Keeper {
    fn start(home: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
        command.args(["serve", "--no-open", "--listen", "127.0.0.1:0"]);
        command.env_clear().env("PATH", home).env("HOME", home).env("RETHREAD_HOME", home.join("rethread"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("The keeper is ready"), "{ready:?}");
        Self { child, home: home.join("rethread/keeper") }
    }

    /// Asks for something, and returns how much came; it is not kept.
    fn ask(&self, path: &str) -> usize {
        let mut stream = self.say(path, "Connection: close\r\n");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(
            all.starts_with(b"HTTP/1.1 200"),
            "{path}: {}",
            String::from_utf8_lossy(&all[..all.len().min(300)])
        );
        all.len()
    }

    /// Follows everything, and never reads a word of it.
    fn follow_and_forget(&self) -> TcpStream {
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let mut stream = self.say("/stream", upgrade);
        let word = json!({ "type": "subscribe", "topics": ["all"] }).to_string();
        // One short text frame, masked with zeros.
        let mut frame = vec![0x81, 0x80 | u8::try_from(word.len()).unwrap(), 0, 0, 0, 0];
        frame.extend(word.as_bytes());
        stream.write_all(&frame).unwrap();
        stream
    }

    fn say(&self, path: &str, more: &str) -> TcpStream {
        let read = |name: &str| fs::read_to_string(self.home.join(name)).unwrap().trim().to_owned();
        let address = read("address");
        let host = address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        let token = read("token");
        let head = format!(
            "GET /api/v1{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Returns what was in use at most, in KiB.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.split_whitespace().next().unwrap().parse().unwrap()
    }
}

fn line(number: usize) -> String {
    let parent = number.checked_sub(1).map(uuid);
    let message = json!({ "role": "user", "content": format!("{number} {}", "word ".repeat(WORDS / 5)) });
    let line: Value = json!({ "type": "user", "uuid": uuid(number), "parentUuid": parent, "sessionId": ID, "cwd": "/tmp",
        "version": "2.1.325", "timestamp": "2026-11-15T10:00:00.000Z", "message": message });
    format!("{line}\n")
}

fn uuid(number: usize) -> String {
    format!("{number:08x}-3333-4333-8333-333333333333")
}

/// Has many read while the session grows; returns how much they got, and what was in use at most, in KiB.
fn load(keeper: &Keeper, transcript: &Path, lines: usize) -> (usize, u64) {
    let sent = thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = OpenOptions::new().append(true).open(transcript).unwrap();
            (lines..lines + MORE).for_each(|number| file.write_all(line(number).as_bytes()).unwrap());
        });
        let read = |reader: usize| {
            let round = |round: usize| {
                let at = uuid((reader * 97 + round * 151) % LINES);
                let around = keeper.ask(&format!("/sessions/{ID}/messages?limit=500&around={at}"));
                let last = keeper.ask(&format!("/sessions/{ID}/messages?limit=500"));
                around + last + keeper.ask("/sessions") + keeper.ask("/search?q=word")
            };
            (0..ROUNDS).map(round).sum::<usize>()
        };
        let readers: Vec<_> = (0..READERS).map(|reader| scope.spawn(move || read(reader))).collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    (sent, keeper.peak())
}

#[test]
fn a_keeper_that_is_asked_and_followed_by_many_stays_small() {
    let home = tempfile::tempdir().unwrap();
    let transcript = home.path().join(format!(".claude/projects/-tmp/{ID}.jsonl"));
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    fs::write(&transcript, (0..LINES).map(line).collect::<String>()).unwrap();
    let keeper = Keeper::start(home.path());
    let forgotten: Vec<TcpStream> = (0..20).map(|_| keeper.follow_and_forget()).collect();
    let (sent, early) = load(&keeper, &transcript, LINES);
    let (more, late) = load(&keeper, &transcript, LINES + MORE);
    assert!(sent > 1 << 29 && more > 1 << 29, "only {sent} and {more} bytes were asked for");
    assert!(late < MOST, "{late} KiB were in use to send {} MiB", (sent + more) >> 20);
    assert!(late < early + early / 4, "{early} KiB were in use at first, and {late} later");
    drop(forgotten);
}

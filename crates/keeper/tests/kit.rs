//! What the tests share: a keeper in a home of its own, and a client that can say anything.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rethread_keeper::{Running, RunningUi, Settings, UiSettings};
use rethread_store::{FileBackend, Options, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take. Long, for machines that have a lot to do: only a test that fails waits to its end.
const PATIENCE: Duration = Duration::from_secs(180);

/// A home with a keeper in it.
pub(crate) struct Home {
    folder: TempDir,
}

/// A keeper that runs in this process.
pub(crate) struct Kept {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) home: PathBuf,
    pub(crate) boot: String,
    /// What a page shows that is logged in; whoever has it does not need the token.
    pub(crate) cookie: Option<String>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {} {text}", self.head))
    }

    /// The body, of an answer that must be good.
    #[track_caller]
    pub(crate) fn good(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.head, String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("claude/projects")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn claude(&self) -> PathBuf {
        self.path().join("claude")
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(FileBackend::new(self.path().join("store")), Options::default())
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.path().join("keeper"), self.store());
        settings.listen = "127.0.0.1:0".parse().unwrap();
        settings.claude_folder = Some(self.claude());
        settings
    }

    pub(crate) fn keeper(&self) -> Kept {
        Kept::start(self.settings())
    }

    /// Returns where a session's transcript is.
    pub(crate) fn transcript(&self, project: &str, id: &str) -> PathBuf {
        self.claude().join("projects").join(project).join(format!("{id}.jsonl"))
    }

    /// Writes a conversation of so many messages, in a directory.
    pub(crate) fn conversation(&self, id: &str, cwd: &str, messages: usize) -> PathBuf {
        let path = self.transcript("-project", id);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let lines: String = (0..messages).map(|number| line(id, cwd, number)).collect();
        fs::write(&path, lines).unwrap();
        path
    }
}

/// Appends to a file with one call.
pub(crate) fn append(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// The n-th line of a conversation.
pub(crate) fn line(id: &str, cwd: &str, number: usize) -> String {
    let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
    let parent = number.checked_sub(1).map(|before| uuid(id, before));
    let entry = json!({
        "parentUuid": parent, "isSidechain": false, "type": role, "uuid": uuid(id, number), "sessionId": id, "cwd": cwd,
        "message": { "role": role, "content": format!("message {number} of {id}") }, "version": "2.1.325",
        "timestamp": format!("2026-11-15T10:{:02}:{:02}.000Z", number / 60 % 60, number % 60), "gitBranch": "main",
    });
    format!("{entry}\n")
}

/// The id of the n-th line.
pub(crate) fn uuid(id: &str, number: usize) -> String {
    format!("{}-0000-4000-8000-{number:012}", &id[..8])
}

/// A new session's id.
pub(crate) fn session() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:08x}-1111-4111-8111-111111111111", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Kept {
    pub(crate) fn start(settings: Settings) -> Self {
        let home = settings.home.clone();
        let (started, starting) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let running = Running::start(settings).await.unwrap();
                started.send((running.address(), running.one_time_url())).unwrap();
                running.until(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let (address, boot) = starting.recv().unwrap();
        let token = fs::read_to_string(home.join("token")).unwrap();
        Self { address, token, home, boot, cookie: None, stop: Some(stop), thread: Some(thread) }
    }

    /// Serves the page apart from its keeper, and logs in at it.
    pub(crate) fn apart(settings: UiSettings) -> Self {
        let home = settings.home.clone();
        let (started, starting) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let running = RunningUi::start(settings).await.unwrap();
                started.send((running.address(), running.one_time_url())).unwrap();
                running.until(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let (address, boot) = starting.recv().unwrap();
        let (stop, thread) = (Some(stop), Some(thread));
        let mut apart = Self { address, token: String::new(), home, boot, cookie: None, stop, thread };
        apart.cookie = Some(apart.log_in());
        apart
    }

    /// Changes the one-time code for a cookie.
    pub(crate) fn log_in(&self) -> String {
        let code = self.boot.split_once("#boot=").unwrap().1;
        let origin = format!("http://{}", self.host());
        let body = json!({ "code": code }).to_string();
        let headers = [("Authorization", ""), ("Origin", &origin)];
        let answer = self.ask("POST", "/api/v1/auth/exchange", &headers, &body);
        assert_eq!(answer.status, 204, "{}", answer.head);
        let cookie = answer.header("set-cookie").unwrap();
        let holds = |word: &str| assert!(cookie.contains(word), "{cookie}");
        ["HttpOnly", "SameSite=Strict", "Path=/"].into_iter().for_each(holds);
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Ends it, as a signal would.
    pub(crate) fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(crate) fn host(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    /// Asks with the token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", &format!("/api/v1{path}"), &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("POST", &format!("/api/v1{path}"), &[], &body.to_string())
    }

    pub(crate) fn patch(&self, path: &str, body: Value) -> Answer {
        self.ask("PATCH", &format!("/api/v1{path}"), &[], &body.to_string())
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", &format!("/api/v1{path}"), &[], "")
    }

    /// Returns a list, and makes sure that it is the same in pages of one.
    pub(crate) fn list(&self, path: &str) -> Value {
        let whole = self.get(path).good();
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let joint = if path.contains('?') { '&' } else { '?' };
            let page = self.get(&format!("{path}{joint}limit=1{cursor}")).good();
            let page_items = page["items"].as_array().unwrap();
            assert!(page_items.len() <= 1, "{page}");
            items.extend(page_items.iter().cloned());
            cursor = match &page["next"] {
                Value::Null => break,
                Value::String(next) => format!("&cursor={}", next.replace('/', "%2F").replace(' ', "%20")),
                next => format!("&cursor={next}"),
            };
        }
        assert_eq!(whole["items"], json!(items), "{path}");
        whole
    }

    /// Asks as a script with the token would, or as a page with its cookie; headers of the same name take the place of the usual ones.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let bearer = if self.cookie.is_none() { format!("Bearer {}", self.token) } else { String::new() };
        let origin = self.cookie.as_ref().map(|_| format!("http://{}", self.host())).unwrap_or_default();
        let usual = [
            ("Host", self.host()),
            ("Authorization", bearer),
            ("Cookie", self.cookie.clone().unwrap_or_default()),
            ("Origin", origin),
            ("X-Rethread", "1".into()),
            ("Content-Type", "application/json".into()),
            ("Content-Length", body.len().to_string()),
        ];
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        for (name, value) in usual.iter().filter(|(name, value)| !given(name) && !value.is_empty()) {
            head += &format!("{name}: {value}\r\n");
        }
        // An empty value leaves the usual one out.
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head += &format!("{name}: {value}\r\n");
        }
        head += "Connection: close\r\n\r\n";
        self.say(format!("{head}{body}").as_bytes())
    }

    /// Says anything at all.
    pub(crate) fn say(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // It may be refused before all of it was said.
        let _ = stream.write_all(request);
        answer(stream)
    }

    /// Asks over the Unix socket.
    pub(crate) fn local(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = UnixStream::connect(self.home.join("socket")).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-Rethread: 1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        answer(stream)
    }

    /// Waits until something is so.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, is: impl FnMut() -> Option<T>) -> T {
        self.until_or(|| what.to_owned(), is)
    }

    /// As `until`, and says at the end what was wanted.
    #[track_caller]
    pub(crate) fn until_or<T>(&self, what: impl Fn() -> String, mut is: impl FnMut() -> Option<T>) -> T {
        let begun = std::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(found) = is() {
                return found;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("it never came to be: {}", what())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What failed in it has been told already.
            drop(thread.join());
        }
    }
}

fn answer(mut stream: impl Read) -> Answer {
    let mut bytes = Vec::new();
    // A connection that is cut has said what it had to say.
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut body = bytes.get(end + 4..).unwrap_or_default().to_vec();
    if head.to_lowercase().contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    Answer { status, head, body }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&rest[..end]), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    body
}

/// A client of the stream.
pub(crate) struct Socket(tokio_tungstenite::tungstenite::WebSocket<TcpStream>);

impl Socket {
    pub(crate) fn open(kept: &Kept) -> Self {
        use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
        let mut request = format!("ws://{}/api/v1/stream", kept.host()).into_client_request().unwrap();
        match &kept.cookie {
            Some(cookie) => {
                request.headers_mut().insert("cookie", cookie.parse().unwrap());
                let origin = format!("http://{}", kept.host()).parse().unwrap();
                request.headers_mut().insert("origin", origin);
            }
            None => {
                let bearer = format!("Bearer {}", kept.token).parse().unwrap();
                request.headers_mut().insert("authorization", bearer);
            }
        }
        let stream = TcpStream::connect(kept.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(tokio_tungstenite::tungstenite::client(request, stream).unwrap().0)
    }

    /// Says something that may well be refused before all of it was said.
    pub(crate) fn try_say(&mut self, word: Value) {
        let _ = self.0.send(tokio_tungstenite::tungstenite::Message::text(word.to_string()));
    }

    pub(crate) fn say(&mut self, word: Value) {
        self.0.send(tokio_tungstenite::tungstenite::Message::text(word.to_string())).unwrap();
    }

    /// Subscribes to a topic, perhaps after a head.
    pub(crate) fn subscribe(&mut self, topic: &str, after: Option<&Value>) {
        let after = after.map(|head| json!({ "epoch": head["epoch"], "seq": head["seq"] }));
        self.say(json!({ "type": "subscribe", "topics": [topic], "after": after }));
    }

    /// Waits for the next frame.
    pub(crate) fn next(&mut self) -> Value {
        self.try_next().expect("the stream goes on")
    }

    /// Waits for the next frame; none if the stream ended.
    pub(crate) fn try_next(&mut self) -> Option<Value> {
        loop {
            match self.0.read() {
                Ok(message) if message.is_text() => {
                    return Some(serde_json::from_str(message.to_text().unwrap()).unwrap());
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits for a frame of a kind; returns it and all before it.
    pub(crate) fn until(&mut self, kind: &str) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let frame = self.next();
            if frame["type"] == kind {
                return (before, frame);
            }
            before.push(frame);
        }
    }
}

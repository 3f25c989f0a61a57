//! A keeper in a process of its own, as people run it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Outcome;

/// How long a connection is used again.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running keeper.
pub(super) struct Served {
    child: Child,
    pub(super) port: u16,
    token: String,
    /// One connection that is used again and again, as a browser's is.
    connection: Option<BufReader<TcpStream>>,
    used: Instant,
}

impl Served {
    /// Starts a keeper on a folder of Claude Code's, with the program that drives sessions, if any.
    pub(super) fn start(home: &Path, config: &Path, agent: Option<&Path>) -> Outcome<Self> {
        let mut command = Command::new(program()?);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--no-open", "--log", "warn"])
            .arg("--claude-dir")
            .arg(config);
        if let Some(agent) = agent {
            command.arg("--claude-bin").arg(agent);
        }
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", home).env("RETHREAD_HOME", home.join("rethread"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let port = line
            .rsplit("localhost:")
            .next()
            .and_then(|rest| rest.trim_end().trim_end_matches('/').parse().ok());
        let port = port.ok_or_else(|| format!("the keeper did not start: {line}"))?;
        let token = std::fs::read_to_string(home.join("rethread/keeper/token"))?;
        Ok(Self { child, port, token, connection: None, used: Instant::now() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for something, over a connection that stays open.
    pub(super) fn get(&mut self, path: &str) -> Outcome<Vec<u8>> {
        self.ask("GET", path, "")
    }

    /// Has something done.
    pub(super) fn post(&mut self, path: &str, body: &Value) -> Outcome<Value> {
        Ok(serde_json::from_slice(&self.ask("POST", path, &body.to_string())?)?)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<Vec<u8>> {
        // A connection on which nothing was said for a while is closed by the keeper.
        if self.used.elapsed() > PATIENCE {
            self.connection = None;
        }
        self.used = Instant::now();
        let stream = match self.connection.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_nodelay(true)?;
                BufReader::with_capacity(1 << 16, stream)
            }
        };
        let mut stream = stream;
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {}\r\nX-Rethread: 1\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            self.token,
            body.len()
        );
        stream.get_mut().write_all(head.as_bytes())?;
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest.get(..3).and_then(|status| status.parse().ok()).unwrap_or(0);
            }
            if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.trim().parse()?;
            }
            if line == "\r\n" || line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer)?;
        if !(200..300).contains(&status) {
            return Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer)).into());
        }
        self.connection = Some(stream);
        Ok(answer)
    }

    /// Opens the stream for a session.
    pub(super) fn stream(&self, session: &str) -> Outcome<TcpStream> {
        let authorization = format!("Authorization: Bearer {}\r\n", self.token);
        let mut stream = websocket(self.port, "/api/v1/stream", &authorization)?;
        let word = format!("{{\"type\":\"subscribe\",\"topics\":[\"session:{session}\"]}}");
        stream.write_all(&masked(word.as_bytes()))?;
        // It is subscribed when it is told so.
        let mut told = vec![0; 1 << 16];
        let mut seen = Vec::new();
        while memchr::memmem::find(&seen, b"caught_up").is_none() {
            let read = stream.read(&mut told)?;
            if read == 0 {
                return Err("the stream ended".into());
            }
            seen.extend_from_slice(&told[..read]);
        }
        Ok(stream)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is nobody's any more.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Opens a WebSocket.
pub(super) fn websocket(port: u16, path: &str, headers: &str) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{headers}\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    match answer.starts_with(b"HTTP/1.1 101") {
        true => Ok(stream),
        false => Err(String::from_utf8_lossy(&answer).into_owned().into()),
    }
}

/// Returns a frame as a client sends it; the mask is all zeros.
fn masked(text: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | 126, (text.len() >> 8) as u8, text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text);
    frame
}

/// Returns the program itself, which is built beside this one.
fn program() -> Outcome<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("rethread");
    match path.try_exists()? {
        true => Ok(path),
        false => Err("rethread is not built; `make bench` builds it".into()),
    }
}

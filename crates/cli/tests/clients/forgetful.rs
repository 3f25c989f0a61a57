//! A proxy before a keeper that passes every request on and loses half of the answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What becomes of requests, one after another.
const FATES: [Fate; 7] =
    [Fate::Lost, Fate::Twice, Fate::Cut, Fate::Refused, Fate::Twice, Fate::Unavailable, Fate::Twice];

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It is done, and nobody hears of it.
    Lost,
    /// It is done, and half of the answer arrives.
    Cut,
    /// It is done twice, as a network may have it, and answered.
    Twice,
    /// It is done, and the proxy says that it cannot tell.
    Unavailable,
    /// It never arrives.
    Refused,
}

/// The proxy. It ends with the test that started it.
pub(crate) struct Forgetful {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

impl Forgetful {
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let fate = FATES[counted.fetch_add(1, Ordering::Relaxed) % FATES.len()];
                // A client that leaves in the middle is none of the proxy's business.
                thread::spawn(move || drop(pass(&client, port, fate)));
            }
        });
        Self { url, asked }
    }

    /// Returns how many requests came.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn pass(mut client: &TcpStream, port: u16, fate: Fate) -> std::io::Result<()> {
    let request = request(client, port)?;
    let mut answer = Vec::new();
    if !matches!(fate, Fate::Refused) {
        answer = ask(&request, port)?;
    }
    if matches!(fate, Fate::Twice) {
        answer = ask(&request, port)?;
    }
    match fate {
        Fate::Lost | Fate::Refused => {}
        Fate::Cut => client.write_all(&answer[..answer.len() - 10])?,
        Fate::Twice => client.write_all(&answer)?,
        Fate::Unavailable => client.write_all(
            b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        )?,
    }
    client.shutdown(Shutdown::Both)
}

fn ask(request: &[u8], port: u16) -> std::io::Result<Vec<u8>> {
    let (mut keeper, mut answer) = (TcpStream::connect(("127.0.0.1", port))?, Vec::new());
    keeper.write_all(request)?;
    keeper.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Reads one request, and makes it one to the keeper that is the last on its connection.
fn request(client: &TcpStream, port: u16) -> std::io::Result<Vec<u8>> {
    let (mut reader, mut head, mut length) = (BufReader::new(client), String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(bytes) = lower.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap_or(0);
        }
        if !lower.starts_with("host:") && !lower.starts_with("connection:") {
            head += &line;
        }
    }
    let mut request = format!("{head}Host: localhost:{port}\r\nConnection: close\r\n\r\n").into_bytes();
    let begin = request.len();
    request.resize(begin + length, 0);
    reader.read_exact(&mut request[begin..])?;
    Ok(request)
}

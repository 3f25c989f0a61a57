//! A way to an S3 server: it counts, it lets requests about one object take turns, and it loses things.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read, Result, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::long_names::{LONGEST, LongNames};
use crate::s3::Access;

/// What can happen to a request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It is carried out, and its answer is lost.
    LoseAnswer,
    /// It never arrives.
    LoseRequest,
    /// It is carried out twice, and only the second answer comes.
    Twice,
    /// It is carried out twice, and only the first answer comes.
    Echo,
    /// It is carried out, and answered as if the server had failed.
    Fail,
    /// It is not carried out: somebody else is at that object just now.
    Refuse,
    /// It takes a while.
    Slow,
    /// It waits until [`S3Proxy::let_through`], and is carried out then, whether anybody still waits for it or not.
    KeepBack,
}

impl Mishap {
    /// Everything that ends by itself.
    pub const PASSING: [Mishap; 6] =
        [Mishap::LoseAnswer, Mishap::LoseRequest, Mishap::Twice, Mishap::Echo, Mishap::Fail, Mishap::Slow];
}

/// A way to an S3 server.
#[derive(Debug)]
pub struct S3Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: u16,
    access: Access,
    turns: Arc<Turns>,
    requests: Mutex<Vec<String>>,
    /// What happens to the next requests that change something.
    mishaps: Mutex<Vec<Option<Mishap>>>,
    /// Of so many requests, one meets something; 0: none does.
    bad_weather: AtomicUsize,
    /// Conditions that the server does not get to see.
    ignored: Mutex<Vec<&'static str>>,
    /// How writes with a condition are answered, instead of being carried out.
    answered: Mutex<Option<&'static str>>,
    is_kept_back: AtomicBool,
}

/// Whose turn it is: requests about one object come one after the other, and a listing comes alone.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    everything: RwLock<()>,
    objects: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    long: Mutex<LongNames>,
}

impl S3Proxy {
    pub(crate) fn to(server: u16, turns: Arc<Turns>, access: Access) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            server,
            access,
            turns,
            requests: Mutex::default(),
            mishaps: Mutex::default(),
            bad_weather: AtomicUsize::new(0),
            ignored: Mutex::default(),
            answered: Mutex::default(),
            is_kept_back: AtomicBool::new(true),
        });
        let own = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                // A client that leaves in the middle is part of many tests.
                thread::spawn(move || drop(own.serve(&client)));
            }
        });
        Self { port, shared }
    }

    /// Returns what the environment of a client has to say.
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        let variables = [
            ("AWS_ACCESS_KEY_ID", "ada"),
            ("AWS_SECRET_ACCESS_KEY", "right"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &endpoint),
            ("AWS_ALLOW_HTTP", "true"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// Returns what was asked since the last time: a method and a path each.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.requests))
    }

    /// Says what happens to the next requests that change something, one after the other.
    pub fn meet(&self, mishaps: impl IntoIterator<Item = Option<Mishap>>) {
        let mut next: Vec<_> = mishaps.into_iter().collect();
        next.reverse();
        *lock(&self.shared.mishaps) = next;
    }

    /// Has one request in so many meet something, whatever it is about; 0 has none.
    pub fn bad_weather(&self, one_in: usize) {
        self.shared.bad_weather.store(one_in, Ordering::SeqCst);
    }

    /// Makes the server look like one that does not know these conditions: headers, in lower case.
    pub fn ignore(&self, conditions: &[&'static str]) {
        assert_eq!(self.shared.access, Access::Open, "what is signed cannot be changed");
        *lock(&self.shared.ignored) = conditions.to_vec();
    }

    /// Answers writes with a condition by a status from now on, such as `501 Not Implemented`; none of them arrives.
    pub fn answer_conditions(&self, status: Option<&'static str>) {
        *lock(&self.shared.answered) = status;
    }

    /// Lets through what was kept back.
    pub fn let_through(&self) {
        self.shared.is_kept_back.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    fn serve(&self, client: &TcpStream) -> Result<()> {
        client.set_nodelay(true)?;
        let (mut incoming, mut server) = (BufReader::new(client.try_clone()?), None);
        while let Some(request) = Message::read(&mut incoming, Whose::Request)? {
            lock(&self.requests).push(request.first.clone());
            let mishap = self.mishap(&request);
            match mishap {
                Some(Mishap::LoseRequest) => return Ok(()),
                Some(Mishap::Slow) => thread::sleep(Duration::from_millis(fastrand::u64(1..60))),
                Some(Mishap::KeepBack) => {
                    while self.is_kept_back.load(Ordering::SeqCst) {
                        thread::sleep(Duration::from_millis(2));
                    }
                }
                _ => {}
            }
            let status = match mishap {
                Some(Mishap::Refuse) => Some("409 Conflict"),
                _ => lock(&self.answered).filter(|_| request.is_conditional_write()),
            };
            let mut answer = match status {
                Some(status) => Message::new(&format!("HTTP/1.1 {status}"), b"as told"),
                None => self.carry_out(&request, &mut server)?,
            };
            match mishap {
                Some(Mishap::Twice) => answer = self.carry_out(&request, &mut server)?,
                Some(Mishap::Echo) => drop(self.carry_out(&request, &mut server)?),
                Some(Mishap::LoseAnswer) => return Ok(()),
                Some(Mishap::Fail) => answer = Message::new("HTTP/1.1 500 Internal Server Error", b"as told"),
                _ => {}
            }
            answer.write(client)?;
        }
        Ok(())
    }

    fn mishap(&self, request: &Message) -> Option<Mishap> {
        let one_in = self.bad_weather.load(Ordering::SeqCst);
        if one_in > 0 && fastrand::usize(..one_in) == 0 {
            return fastrand::choice(Mishap::PASSING);
        }
        if request.first.starts_with("GET") || request.first.starts_with("HEAD") {
            return None;
        }
        lock(&self.mishaps).pop().flatten()
    }

    /// Has the server do it, when it is its turn.
    fn carry_out(&self, request: &Message, server: &mut Option<TcpStream>) -> Result<Message> {
        let path = request.path();
        let (object, query) = path.split_once('?').unwrap_or((path, ""));
        let is_about_all = query.contains("list-type") || query.starts_with("delete");
        let turn = lock(&self.turns.objects).entry(object.to_owned()).or_default().clone();
        let (_all, _some, _own);
        if is_about_all {
            _all = self.turns.everything.write().unwrap_or_else(PoisonError::into_inner);
        } else {
            _some = self.turns.everything.read().unwrap_or_else(PoisonError::into_inner);
            _own = lock(&turn);
        }
        if object.len() > LONGEST {
            return Ok(lock(&self.turns.long).answer(request, object));
        }
        let request = self.changed(request);
        if query.starts_with("delete") {
            lock(&self.turns.long).delete_all(object, &request);
        }
        let answer = self.pass_on(&request, server)?;
        match query.contains("list-type") {
            true => Ok(lock(&self.turns.long).add_to_listing(object, query, answer)),
            false => Ok(answer),
        }
    }

    fn pass_on(&self, request: &Message, server: &mut Option<TcpStream>) -> Result<Message> {
        // A connection that was not used for a while may be gone.
        for _ in 0..2 {
            if server.is_none() {
                *server = Some(TcpStream::connect(("127.0.0.1", self.server))?);
            }
            let Some(stream) = server.as_ref() else { continue };
            stream.set_nodelay(true)?;
            let whose = if request.first.starts_with("HEAD") { Whose::AnswerToHead } else { Whose::Answer };
            let answer = request
                .write(stream)
                .and_then(|()| acknowledge_at_once(stream))
                .and_then(|()| Message::read(&mut BufReader::new(stream), whose));
            match answer {
                Ok(Some(answer)) => return Ok(answer),
                _ => *server = None,
            }
        }
        Err(std::io::ErrorKind::ConnectionReset.into())
    }

    fn changed(&self, request: &Message) -> Message {
        let mut request = request.clone();
        if self.access == Access::Open {
            request.headers.retain(|(name, _)| name != "authorization");
        }
        let ignored = lock(&self.ignored).clone();
        request.headers.retain(|(name, _)| !ignored.contains(&name.as_str()));
        request
    }
}

/// Has the system acknowledge what comes next at once: the server sends the body of an answer only when its head was, and
/// otherwise that takes 40 ms. It holds until something is sent.
fn acknowledge_at_once(stream: &TcpStream) -> Result<()> {
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_quickack(stream, true)?;
    Ok(())
}

/// A request or an answer.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Request,
    Answer,
    /// It tells the length of what it does not send.
    AnswerToHead,
}

impl Message {
    pub(crate) fn new(first: &str, body: &[u8]) -> Self {
        let length = ("content-length".to_owned(), body.len().to_string());
        Self { first: first.to_owned(), headers: vec![length], body: body.to_owned() }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Reads one; `None` if the other side has left.
    fn read(reader: &mut BufReader<impl Read>, whose: Whose) -> Result<Option<Self>> {
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            Result::Ok(line.trim_end().to_owned())
        };
        let first = line()?;
        if first.is_empty() {
            return Ok(None);
        }
        let mut headers = Vec::new();
        while let Some((name, value)) = line()?.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut message = Self { first, headers, body: Vec::new() };
        if message.header("transfer-encoding").is_some_and(|encoding| encoding.contains("chunked")) {
            loop {
                let mut size = String::new();
                reader.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16).map_err(std::io::Error::other)?;
                let mut chunk = vec![0; size + 2];
                reader.read_exact(&mut chunk)?;
                message.body.extend(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
            message.headers.retain(|(name, _)| name != "transfer-encoding" && name != "trailer");
            message.headers.push(("content-length".into(), message.body.len().to_string()));
        } else if whose != Whose::AnswerToHead {
            let length = message.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            message.body = vec![0; length];
            reader.read_exact(&mut message.body)?;
        }
        Ok(Some(message))
    }

    fn write(&self, mut stream: &TcpStream) -> Result<()> {
        let mut bytes = format!("{}\r\n", self.first).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(&self.body);
        stream.write_all(&bytes)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn is_conditional_write(&self) -> bool {
        let has = |name| self.header(name).is_some();
        self.first.starts_with("PUT") && (has("if-match") || has("if-none-match"))
    }

    fn path(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

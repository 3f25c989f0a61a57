//! Many clients of a stream in one thread, which do nothing but count what they get.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use rustix::event::epoll;

use crate::failure::Outcome;

/// Nobody waits for a frame that was lost for longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a ping begins, and a pong as a client sends it.
const PING: u8 = 0x89;
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

/// What a frame that is a message says of itself. To make it ready for every frame would be measured as their work.
static UPSERT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("message.upsert"));

/// Clients that count frames.
pub(super) struct Listeners {
    clients: Vec<Client>,
    poll: std::os::fd::OwnedFd,
    buffer: Vec<u8>,
}

struct Client {
    stream: TcpStream,
    /// What is left of a frame that did not come as a whole.
    rest: Vec<u8>,
    seen: usize,
}

impl Listeners {
    pub(super) fn new(streams: Vec<TcpStream>) -> Outcome<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (at, stream) in streams.iter().enumerate() {
            stream.set_nonblocking(true)?;
            epoll::add(&poll, stream.as_fd(), epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN)?;
        }
        let clients =
            streams.into_iter().map(|stream| Client { stream, rest: Vec::new(), seen: 0 }).collect();
        Ok(Self { clients, poll, buffer: vec![0; 1 << 18] })
    }

    /// Waits until each client has got so many more frames; tells of each one when it came.
    pub(super) fn wait(&mut self, frames: usize, mut told: impl FnMut(&[u8])) -> Outcome<()> {
        let wanted: Vec<usize> = self.clients.iter().map(|client| client.seen + frames).collect();
        let mut missing = self.clients.len();
        let (begun, mut events) = (Instant::now(), Vec::with_capacity(256));
        while missing > 0 {
            if begun.elapsed() > PATIENCE {
                return Err(format!("{missing} clients did not get all frames").into());
            }
            events.clear();
            let timeout = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
            epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout))?;
            for event in &events {
                let at = usize::try_from(event.data.u64())?;
                let before = self.clients[at].seen;
                self.clients[at].read(&mut self.buffer, &mut told)?;
                missing -= usize::from(before < wanted[at] && self.clients[at].seen >= wanted[at]);
            }
        }
        Ok(())
    }
}

impl Client {
    fn read(&mut self, buffer: &mut [u8], told: &mut impl FnMut(&[u8])) -> Outcome<()> {
        loop {
            let read = match self.stream.read(buffer) {
                Ok(0) => return Err("a stream ended".into()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let is_whole = self.rest.is_empty();
            if !is_whole {
                self.rest.extend_from_slice(&buffer[..read]);
            }
            let bytes = if is_whole { &buffer[..read] } else { &self.rest[..] };
            let (used, is_pinged) = count(bytes, &mut self.seen, told);
            match is_whole {
                true => self.rest.extend_from_slice(&buffer[used..read]),
                false => drop(self.rest.drain(..used)),
            }
            if is_pinged {
                // Whoever does not answer is taken to be gone.
                self.stream.write_all(&PONG)?;
            }
        }
    }
}

/// Counts the whole frames that are messages; returns how many bytes they and others take, and whether one was a ping.
fn count(bytes: &[u8], seen: &mut usize, told: &mut impl FnMut(&[u8])) -> (usize, bool) {
    let (mut at, mut is_pinged) = (0, false);
    while let Some((head, length)) = header(&bytes[at..]) {
        let Some(payload) = bytes.get(at + head..at + head + length) else { break };
        // What is about lists, and heartbeats, are not counted. It stands near the beginning.
        if UPSERT.find(&payload[..payload.len().min(240)]).is_some() {
            *seen += 1;
            told(payload);
        }
        is_pinged |= bytes[at] == PING;
        at += head + length;
    }
    (at, is_pinged)
}

/// Returns how long a frame's head and its payload are.
fn header(bytes: &[u8]) -> Option<(usize, usize)> {
    match *bytes.get(1)? {
        126 => Some((4, usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?])))),
        127 => {
            let length: [u8; 8] = bytes.get(2..10)?.try_into().ok()?;
            Some((10, usize::try_from(u64::from_be_bytes(length)).ok()?))
        }
        short => Some((2, usize::from(short))),
    }
}

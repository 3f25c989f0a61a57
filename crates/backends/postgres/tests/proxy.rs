//! A way to the server that loses answers, keeps requests back, and lets nobody else through.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A way to the server.
pub(crate) struct Proxy {
    port: u16,
    /// How many answers still come through before one is lost; below zero, none is.
    answers: Arc<AtomicI64>,
    /// What keeps requests back, for each connection.
    valves: Arc<Mutex<Vec<Arc<AtomicBool>>>>,
    /// Who waits to be let through; `None` if whoever comes is.
    waiting: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Proxy {
    /// Opens a way to a port on the loopback.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, valves) = (Arc::new(AtomicI64::new(-1)), Arc::new(Mutex::new(Vec::new())));
        let waiting = Arc::new(Mutex::new(None::<Vec<TcpStream>>));
        let (left, all, queue) = (answers.clone(), valves.clone(), waiting.clone());
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if let Some(queue) = &mut *queue.lock().unwrap() {
                    queue.push(client);
                    continue;
                }
                let server = TcpStream::connect(("127.0.0.1", server));
                // The server may be down.
                let Ok(server) = server else { continue };
                let (valve, left) = (Arc::new(AtomicBool::new(false)), left.clone());
                all.lock().unwrap().push(valve.clone());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    pump(from, to, || {
                        while valve.load(Ordering::SeqCst) {
                            thread::sleep(Duration::from_millis(2));
                        }
                        true
                    });
                });
                thread::spawn(move || pump(server, client, || left.fetch_sub(1, Ordering::SeqCst) != 0));
            }
        });
        Self { port, answers, valves, waiting }
    }

    /// Returns the URL of a database this way.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://rethread@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Loses one answer, after some more that come through, and the connection with it.
    pub(crate) fn lose_after(&self, answers: i64) {
        self.answers.store(answers, Ordering::SeqCst);
    }

    /// Loses nothing any more. Returns whether anything was lost.
    pub(crate) fn lose_nothing(&self) -> bool {
        self.answers.swap(-1, Ordering::SeqCst) < 0
    }

    /// Keeps back what is sent on the connections there are now.
    pub(crate) fn keep_back(&self) {
        self.valves.lock().unwrap().iter().for_each(|valve| valve.store(true, Ordering::SeqCst));
    }

    /// Lets whoever comes from now on wait.
    pub(crate) fn leave_waiting(&self) {
        *self.waiting.lock().unwrap() = Some(Vec::new());
    }

    /// Returns how many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    /// Turns those away who wait, and lets the next ones through.
    pub(crate) fn turn_away(&self) {
        *self.waiting.lock().unwrap() = None;
    }

    /// Lets through what was kept back.
    pub(crate) fn let_through(&self) {
        self.valves.lock().unwrap().iter().for_each(|valve| valve.store(false, Ordering::SeqCst));
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, may_pass: impl Fn() -> bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(size @ 1..) = from.read(&mut buffer) {
        if !may_pass() || to.write_all(&buffer[..size]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

//! What `make torture` runs for long: a keeper that is asked, followed and left by many while its sessions grow.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::{Home, Kept, Socket, append, line, session, uuid};

/// How much more memory may be in use at the end than after the beginning: the ring and its like, not what was sent.
const GROWTH: u64 = 160 << 20;

/// A session, how many lines it has, and somebody who follows it.
struct Followed {
    id: String,
    lines: usize,
    socket: Socket,
    seen: BTreeSet<String>,
    head: Value,
}

impl Followed {
    fn begin(home: &Home, kept: &Kept) -> Self {
        let id = session();
        home.conversation(&id, "/tmp", 2);
        kept.until("it is listed", || (kept.get(&format!("/sessions/{id}")).status == 200).then_some(()));
        let mut followed =
            Self { lines: 2, socket: Socket::open(kept), seen: BTreeSet::new(), head: Value::Null, id };
        followed.read(kept);
        followed.subscribe(kept);
        followed
    }

    /// Reads all there is, from scratch.
    fn read(&mut self, kept: &Kept) {
        let mut page = kept.get(&format!("/sessions/{}/messages?limit=500", self.id)).good();
        self.head = page["head"].clone();
        loop {
            let items = page["items"].as_array().unwrap();
            self.seen.extend(items.iter().map(|item| item["uuid"].as_str().unwrap().to_owned()));
            let Some(before) = page["page"]["before"].as_str().map(str::to_owned) else { return };
            page = kept.get(&format!("/sessions/{}/messages?limit=500&before={before}", self.id)).good();
        }
    }

    fn subscribe(&mut self, kept: &Kept) {
        self.socket = Socket::open(kept);
        self.socket.subscribe(&format!("session:{}", self.id), Some(&self.head));
    }

    /// Follows until it knows all lines.
    fn catch_up(&mut self, kept: &Kept) {
        while self.seen.len() < self.lines {
            let frame = self.socket.next();
            match frame["type"].as_str().unwrap() {
                "message.upsert" => self.seen.extend(frame["data"]["uuid"].as_str().map(str::to_owned)),
                "resync" => self.read(kept),
                _ => {}
            }
            if let Some(seq) = frame["seq"].as_u64() {
                self.head["seq"] = seq.into();
            }
        }
        let all: BTreeSet<String> = (0..self.lines).map(|number| uuid(&self.id, number)).collect();
        assert_eq!(self.seen, all);
    }
}

#[test]
fn a_keeper_under_load_stays_exact_and_small() {
    let seconds = std::env::var("RETHREAD_TORTURE_SECONDS").ok().and_then(|it| it.parse().ok());
    let deadline = Instant::now() + Duration::from_secs(seconds.unwrap_or(3));
    let home = Home::new();
    let kept = home.keeper();
    let mut all: Vec<Followed> = (0..5).map(|_| Followed::begin(&home, &kept)).collect();
    let (mut rounds, mut settled) = (0, None);
    while Instant::now() < deadline || rounds < 12 {
        let at = fastrand::usize(..all.len());
        let followed = &mut all[at];
        let more = fastrand::usize(1..200);
        let text: String =
            (followed.lines..followed.lines + more).map(|it| line(&followed.id, "/tmp", it)).collect();
        append(&home.transcript("-project", &followed.id), &text);
        followed.lines += more;
        match fastrand::u8(..4) {
            // Somebody leaves in the middle and comes back.
            0 => followed.subscribe(&kept),
            1 => drop(kept.get("/search?q=message%201&limit=20").good()),
            2 => drop(kept.get("/sessions?limit=3").good()),
            _ => drop(kept.get(&format!("/sessions/{}/messages?limit=20", followed.id)).good()),
        }
        followed.catch_up(&kept);
        // A session does not grow for ever.
        if followed.lines > 5_000 {
            *followed = Followed::begin(&home, &kept);
        }
        rounds += 1;
        if rounds == 10 {
            settled = resident();
        }
    }
    // Only where no other test runs in this process.
    if let (Some(_), Some(settled), Some(now)) = (seconds, settled, resident()) {
        assert!(now < settled + GROWTH, "{} MiB after {} MiB, {rounds} rounds", now >> 20, settled >> 20);
    }
}

/// Returns how much memory this process uses, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    kibibytes.parse::<u64>().ok().map(|it| it << 10)
}

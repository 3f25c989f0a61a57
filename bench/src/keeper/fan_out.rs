//! One session to many clients: as fast as it goes, and a line now and then.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::broadcaster::Broadcaster;
use super::listeners::Listeners;
use super::served::Served;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::samples::Samples;

/// How many clients, how many lines in a burst, and what our rate must be compared with node's.
const SHAPES: [(usize, usize, f64); 3] = [(1, 8_000, 3.0), (100, 2_000, 5.0), (1_000, 400, 3.0)];
/// How much a pipe holds.
const PIPE: usize = 64 << 10;
/// Lines that come one by one.
const PACED: usize = 200;

const SESSION: &str = "00000000-0000-4000-8000-000000000000";

/// To one client.
pub(super) fn one(bench: &Bench) -> Outcome<Vec<Row>> {
    shape(SHAPES[0], bench)
}

/// To a hundred.
pub(super) fn hundred(bench: &Bench) -> Outcome<Vec<Row>> {
    shape(SHAPES[1], bench)
}

/// To a thousand.
pub(super) fn thousand(bench: &Bench) -> Outcome<Vec<Row>> {
    shape(SHAPES[2], bench)
}

/// A line now and then.
pub(super) fn slowly(bench: &Bench) -> Outcome<Vec<Row>> {
    Ok(vec![paced(if bench.scale.judged { 100 } else { 3 }, bench)?])
}

fn shape((clients, lines, wanted): (usize, usize, f64), bench: &Bench) -> Outcome<Vec<Row>> {
    let (clients, lines) =
        if bench.scale.judged { (clients, lines) } else { (clients.min(5), lines.min(20)) };
    Ok(vec![burst(clients, lines, wanted, bench)?])
}

/// A keeper whose transcript grows, and its clients.
struct Ours {
    _served: Served,
    transcript: PathBuf,
    listeners: Listeners,
    next: usize,
}

impl Ours {
    fn start(clients: usize, bench: &Bench) -> Outcome<Self> {
        let (home, config) = (bench.fresh()?, bench.fresh()?);
        let transcript = config.join("projects/-tmp").join(format!("{SESSION}.jsonl"));
        std::fs::create_dir_all(transcript.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(&transcript, line(0))?;
        let served = Served::start(&home, &config, None)?;
        let streams = (0..clients).map(|_| served.stream(SESSION)).collect::<Outcome<_>>()?;
        Ok(Self { _served: served, transcript, listeners: Listeners::new(streams)?, next: 1 })
    }

    /// Returns what is said next: making it up is nobody's work that is measured.
    fn next(&mut self, lines: usize) -> String {
        self.next += lines;
        (self.next - lines..self.next).map(line).collect()
    }

    /// Writes whole lines, as Claude Code does, and no more at once than the other side's pipe takes: whoever follows can
    /// begin before all is written.
    fn send(&self, text: &str) -> Outcome<()> {
        let mut transcript = OpenOptions::new().append(true).open(&self.transcript)?;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let most = &rest[..rest.len().min(PIPE)];
            let piece = memchr::memrchr(b'\n', most).map_or(rest.len(), |newline| newline + 1);
            transcript.write_all(&rest[..piece])?;
            rest = &rest[piece..];
        }
        Ok(())
    }
}

struct Theirs {
    broadcaster: Broadcaster,
    listeners: Listeners,
    next: usize,
}

impl Theirs {
    fn start(clients: usize) -> Outcome<Self> {
        let broadcaster = Broadcaster::start()?;
        let listeners = Listeners::new(broadcaster.clients(clients)?)?;
        Ok(Self { broadcaster, listeners, next: 0 })
    }

    fn next(&mut self, lines: usize) -> String {
        self.next += lines;
        (self.next - lines..self.next).map(frame).collect()
    }

    fn send(&mut self, text: &str) -> Outcome<()> {
        self.broadcaster.send(text.as_bytes())
    }
}

fn burst(clients: usize, lines: usize, wanted: f64, bench: &Bench) -> Outcome<Row> {
    let (mut ours, mut theirs) = (Ours::start(clients, bench)?, Theirs::start(clients)?);
    let rate = |begun: Instant| (clients * lines) as f64 / begun.elapsed().as_secs_f64();
    let what = format!("burst of {lines} messages to {clients} clients, deliveries");
    let contest = Contest::new(what, Unit::EntriesPerSecond, |_| {
        let text = ours.next(lines);
        let begun = Instant::now();
        ours.send(&text)?;
        ours.listeners.wait(lines, |_| {})?;
        Ok(rate(begun))
    })
    .peer("node with ws", Bar::AtLeast(wanted), |_| {
        let text = theirs.next(lines);
        let begun = Instant::now();
        theirs.send(&text)?;
        theirs.listeners.wait(lines, |_| {})?;
        Ok(rate(begun))
    });
    // One client has everything within a moment.
    if clients == 1 { contest.run_rounds(bench.scale.many_rounds, bench) } else { contest.run(bench) }
}

fn paced(clients: usize, bench: &Bench) -> Outcome<Row> {
    let (mut ours, mut theirs) = (Ours::start(clients, bench)?, Theirs::start(clients)?);
    let what = format!("one message at a time to {clients} clients, until one has it (p50)");
    let each = |send: &mut dyn FnMut() -> Outcome<()>,
                wait: &mut dyn FnMut(&mut dyn FnMut()) -> Outcome<()>| {
        let times = RefCell::new(Vec::with_capacity(PACED * clients));
        for _ in 0..PACED {
            let begun = Instant::now();
            send()?;
            wait(&mut || times.borrow_mut().push(begun.elapsed().as_secs_f64() * 1e6))?;
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Ok(times.into_inner().into_iter().collect::<Samples>().median())
    };
    let (ours, theirs) = (RefCell::new(&mut ours), RefCell::new(&mut theirs));
    Contest::new(what, Unit::Microseconds, |_| {
        let send = &mut || {
            let text = ours.borrow_mut().next(1);
            ours.borrow().send(&text)
        };
        each(send, &mut |told| ours.borrow_mut().listeners.wait(1, |_| told()))
    })
    .peer("node with ws", Bar::AtMost(1.0), |_| {
        let send = &mut || {
            let text = theirs.borrow_mut().next(1);
            theirs.borrow_mut().send(&text)
        };
        each(send, &mut |told| theirs.borrow_mut().listeners.wait(1, |_| told()))
    })
    .run(bench)
}

/// A line of a transcript.
fn line(number: usize) -> String {
    let parent = number.checked_sub(1).map_or("null".into(), |before| format!("\"{}\"", uuid(before)));
    let text = "x".repeat(120);
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"type\":\"assistant\",\"uuid\":\"{}\",\"cwd\":\"/tmp\",\"sessionId\":\"{SESSION}\",\
         \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n",
        uuid(number)
    )
}

/// A frame of about the size that ours has.
fn frame(number: usize) -> String {
    let text = "x".repeat(120);
    format!(
        "{{\"v\":1,\"epoch\":\"00000000000000000000000000000000\",\"seq\":{number},\"ts\":\"2026-01-01T00:00:00.000000000Z\",\
         \"topic\":\"session:{SESSION}\",\"type\":\"message.upsert\",\"data\":{{\"uuid\":\"{}\",\"parent_uuid\":\"{}\",\"message_id\":null,\
         \"role\":\"assistant\",\"kind\":\"reply\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\
         \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"model\":null,\"offset\":{number},\"provisional\":false}}}}\n",
        uuid(number),
        uuid(number)
    )
}

fn uuid(number: usize) -> String {
    format!("{number:08x}-1111-4111-8111-111111111111")
}

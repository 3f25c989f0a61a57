//! What a crash of the machine leaves when the blocks of one write reach the disk in any order.

use std::ops::Range;

use bytes::Bytes;
use rethread_store::backend::{Append, Backend, Durability, From, LogKey, LogName};
use rethread_store::{FileBackend, Line, Options, Store};

use crate::kit::{Home, chain_of, message, run};

const SECTOR: usize = 512;

/// A log whose last write holds many records, and where each of them stands in the file.
struct Written {
    home: Home,
    whole: Vec<u8>,
    records: Vec<(Range<usize>, Line)>,
}

impl Written {
    fn new() -> Self {
        let home = Home::new();
        let store = home.open();
        let session = crate::kit::conversation(&store, "s", 3);
        // What is accepted while the log is locked, and while an earlier batch waits for it, becomes one write.
        let lock = std::fs::File::open(home.session_folder(session.id()).join("lock")).unwrap();
        lock.lock().unwrap();
        let first = run(session.append(message(4))).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let tickets: Vec<_> = (5..64).map(|n| run(session.append(message(n))).unwrap()).collect();
        lock.unlock().unwrap();
        [first].into_iter().chain(tickets).for_each(|ticket| drop(ticket.wait().unwrap()));
        store.close().unwrap();
        let whole = std::fs::read(home.log(session.id())).unwrap();
        let mut records = Vec::new();
        let mut start = 0;
        for end in (0..whole.len()).filter(|&at| whole[at] == b'\n') {
            let line = Line::parse(Bytes::copy_from_slice(&whole[start..end])).unwrap();
            records.push((start..end, line));
            start = end + 1;
        }
        Self { home, whole, records }
    }

    /// Returns how many records were durable when the last one was written.
    fn settled(&self) -> usize {
        self.records.last().unwrap().1.stamp().settled() as usize
    }

    /// Puts the log back as it was, with NULs instead of some bytes.
    fn with_hole(&self, hole: Range<usize>) {
        let mut bytes = self.whole.clone();
        bytes[hole].fill(0);
        let folder = self.home.log(&"s".parse().unwrap()).parent().unwrap().to_owned();
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("messages.jsonl"), bytes).unwrap();
    }

    /// Returns the ids of the entries among the first `count` records.
    fn chain(&self, count: usize) -> String {
        let entries = self.records[..count].iter().map(|(_, line)| line.stamp());
        let entries = entries.filter(|stamp| stamp.kind == rethread_store::Kind::Entry);
        entries.map(|stamp| stamp.id.to_string()).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn d3_whatever_of_the_last_write_is_missing_what_is_left_is_a_prefix() {
    let written = Written::new();
    let settled = written.settled();
    assert!(written.records.len() - settled > 20, "the last write holds many records");
    let begin = written.records[settled].0.start;
    for from in (begin.next_multiple_of(SECTOR)..written.whole.len()).step_by(SECTOR) {
        for length in [SECTOR, 4 * SECTOR] {
            let hole = from..(from + length).min(written.whole.len());
            written.with_hole(hole.clone());
            let whole = written.records.iter().take_while(|(place, _)| place.end <= hole.start).count();
            let before = written.chain(whole);
            // A reader, the writer that comes next, and whoever opens the log after that agree.
            let session = run(written.home.open().open(&"s".parse().unwrap())).unwrap();
            assert_eq!(chain_of(&session), before, "read with a hole {hole:?}");
            let store = written.home.open();
            let session = run(store.open(session.id())).unwrap();
            let placed = run(async { session.append(message(90)).await.unwrap().await }).unwrap();
            assert_eq!(placed.records[0].position, whole as u64, "hole {hole:?}");
            store.close().unwrap();
            let store = written.home.open();
            let session = run(store.open(session.id())).unwrap();
            assert_eq!(chain_of(&session), format!("{before} u90"), "reopened with a hole {hole:?}");
            let report = run(store.verify(session.id())).unwrap();
            // A hole that reaches to the end is a torn tail, which is closed off; all others were left behind.
            assert!(report.is_ok() || hole.end == written.whole.len(), "{:?}", report.problems);
        }
    }
}

#[test]
fn d11_a_hole_in_an_earlier_write_is_a_gap_and_both_sides_stay_readable() {
    let written = Written::new();
    let (place, lost) = &written.records[2];
    written.with_hole(place.start + 5..place.start + 9);
    let session = run(written.home.open().open(&"s".parse().unwrap())).unwrap();
    let history = run(session.messages()).unwrap();
    assert_eq!(history.gaps.len(), 1);
    let all = written.chain(written.records.len());
    assert_eq!(chain_of(&session), all.replace(&format!("{} ", lost.stamp().id), ""));
}

/// The end of a short log was read without knowing its first position once, and the writer took for promised what the
/// readers did not.
#[test]
fn d3_behind_a_lost_beginning_nothing_counts_for_readers_and_writers_alike() {
    let (home, left) = (Home::new(), Home::new());
    let options = Options { durability: Durability::Written, ..Options::default() };
    let store = Store::new(FileBackend::new(home.root()), options);
    let session = crate::kit::conversation(&store, "s", 8);
    let mut bytes = std::fs::read(home.log(session.id())).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let first = Line::parse(Bytes::copy_from_slice(&bytes[..end])).unwrap();
    bytes[..end].fill(0);
    let log = left.log(session.id());
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, bytes).unwrap();
    let (files, key) = (FileBackend::new(left.root()), LogKey::new(session.id().clone(), LogName::Messages));
    assert_eq!(run(files.read(&key, From::Position(0), usize::MAX)).unwrap().next, 0);
    assert_eq!(run(files.read(&key, From::Last, 1)).unwrap().next, 0);
    let again = run(files.append(&key, 0, std::slice::from_ref(&first), Durability::Synced)).unwrap();
    assert!(matches!(again, Append::Done { .. }), "{again:?}");
    assert_eq!(run(files.read(&key, From::Position(0), usize::MAX)).unwrap().lines, [first]);
}

#[test]
fn d3_a_repair_does_not_bring_back_what_stands_behind_a_hole() {
    let written = Written::new();
    let place = &written.records[written.settled() + 5].0;
    written.with_hole(place.clone());
    let store = written.home.open();
    let id = "s".parse().unwrap();
    assert!(!run(store.verify(&id)).unwrap().is_ok());
    run(store.repair(&id, rethread_store::Mode::Apply)).unwrap();
    assert!(run(store.verify(&id)).unwrap().is_ok());
    let session = run(store.open(&id)).unwrap();
    assert_eq!(chain_of(&session), written.chain(written.settled() + 5));
}

#[test]
fn a_store_that_never_syncs_does_not_ask_readers_to_look_at_all_of_it() {
    // Once, every record said that all before it might be lost, and whoever looked at the last one read the whole log.
    let home = Home::new();
    let options = Options { durability: Durability::Off, ..Options::default() };
    let store = Store::new(FileBackend::new(home.root()), options);
    let session = crate::kit::conversation(&store, "s", 20);
    store.close().unwrap();
    let text = std::fs::read_to_string(home.log(session.id())).unwrap();
    let last = Line::parse(Bytes::copy_from_slice(text.lines().last().unwrap().as_bytes())).unwrap();
    assert_eq!(last.stamp().unsettled, 0);
}

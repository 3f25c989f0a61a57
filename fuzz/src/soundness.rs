//! What must hold for a session's log, whatever its files hold.

use std::collections::BTreeMap;

use rethread_store::backend::{Backend, From, Position};
use rethread_store::{Error, Filter, Line, Mode, Page, Problem, Session, Store};

use super::home::{Home, Stored, Whole, entry, read_all, run, stored};
use super::reference;

/// How many single positions are looked at.
const PLACES: usize = 24;

/// Reads, extends and repairs the session's conversation and checks that nothing that could be read is ever lost.
pub fn check(home: &Home) {
    let before = readers_agree(home);
    everything_can_be_called(home);
    let after = an_append_takes_nothing_away(home, &before);
    a_repair_takes_nothing_away(home, &after);
}

/// Reads, extends and repairs a log that no writer of ours would leave: nothing panics, and no byte is lost.
pub fn survives(home: &Home) {
    everything_can_be_called(home);
    let store = home.store();
    if let Some(session) = load(&store, home) {
        drop(run(async { session.append(entry("more")).await?.await }));
    }
    let files = home.files();
    if run(store.repair(&home.session(), Mode::Apply)).is_ok() {
        files_are_kept(home, &files);
        readers_agree(home);
    }
    drop(store.close());
}

/// Every way to read the log gives the same records, and every missing one is reported. Returns the records.
pub fn readers_agree(home: &Home) -> Vec<Stored> {
    let expected = reference::records(&home.files(), "messages");
    for size in [1, 400, 1 << 20] {
        let Whole { records, lost, next, .. } = read_all(&home.backend(), &home.messages(), size);
        assert!(
            records == expected,
            "{size} bytes at a time: {} are not {}",
            show(&records),
            show(&expected)
        );
        assert_eq!(lost, gaps(&expected), "{size} bytes at a time: what is missing is reported");
        assert_eq!(next, expected.last().map_or(0, |(last, _)| last + 1));
    }
    for position in places(&expected) {
        let chunk =
            run(home.backend().read(&home.messages(), From::Position(position), 1)).expect("readable");
        let wanted = expected.iter().find(|(found, _)| *found >= position);
        let found = chunk.lines.first().map(stored);
        let (found, wanted) = (found.as_ref().map(show_one), wanted.map(show_one));
        assert_eq!(found, wanted, "read from {position} of {}", show(&expected));
    }
    let last = run(home.backend().read(&home.messages(), From::Last, 1)).expect("readable");
    let found: Vec<Stored> = last.lines.last().map(stored).into_iter().collect();
    let wanted: Vec<Stored> = expected.last().cloned().into_iter().collect();
    assert!(found == wanted, "read from the end: {} is not {}", show(&found), show(&wanted));
    expected
}

fn show(records: &[Stored]) -> String {
    records.iter().take(40).map(|record| format!("\n  {}", show_one(record))).collect()
}

/// A record's two ends: which one it is, and its stamp.
fn show_one((_, bytes): &Stored) -> String {
    let text = String::from_utf8_lossy(bytes);
    let (start, end): (String, String) =
        (text.chars().take(30).collect(), text.chars().rev().take(50).collect());
    format!("{start}…{} ({} bytes)", end.chars().rev().collect::<String>(), bytes.len())
}

/// Returns the runs of positions that are missing before the last one.
fn gaps(records: &[Stored]) -> Vec<std::ops::Range<Position>> {
    let mut next = 0;
    let gap = records.iter().map(|(position, _)| {
        let gap = next..*position;
        next = position + 1;
        gap
    });
    gap.filter(|gap| !gap.is_empty()).collect()
}

/// Returns positions worth looking at: those of records, and those beside them.
fn places(records: &[Stored]) -> Vec<Position> {
    let step = records.len() * 2 / PLACES + 1;
    let near = records.iter().flat_map(|(position, _)| [*position, position + 1]);
    [0, 1].into_iter().chain(near.step_by(step)).collect()
}

/// Calls everything that only reads.
pub fn everything_can_be_called(home: &Home) {
    let store = home.store();
    let files = home.files();
    if let Some(session) = load(&store, home) {
        let history = run(session.messages()).expect("readable");
        let depths: Vec<u64> = history.records.iter().map(|record| record.depth).collect();
        assert!(depths.is_sorted_by(|one, other| one < other), "one entry of each depth: {depths:?}");
        for page in [Page::Last(3), Page::First(3)] {
            assert!(run(session.page(page)).expect("readable").records.len() <= 3);
        }
        for record in run(session.all_branches()).expect("readable").iter().rev().take(3) {
            run(session.messages_up_to(record.record.entry.id())).expect("an entry that was just read");
        }
        run(session.metadata()).expect("readable");
        run(session.driver()).expect("readable");
    }
    let report = run(store.verify(&home.session()));
    assert!(matches!(report, Ok(_) | Err(Error::SessionNotFound(_))), "{report:?}");
    let plan = run(store.repair(&home.session(), Mode::Plan));
    assert!(matches!(plan, Ok(_) | Err(Error::SessionNotFound(_))), "{plan:?}");
    drop(run(store.export(&home.session(), &mut std::io::sink())));
    store.close().expect("nothing was written");
    let logs = |(name, _): &(&String, &Vec<u8>)| name.ends_with(".jsonl");
    assert!(files.iter().filter(logs).eq(home.files().iter().filter(logs)), "reading changes no log");
    let listing = run(home.store().list(&Filter::everything())).expect("a list");
    assert!(listing.sessions.len() + listing.unreadable.len() <= 1);
}

fn load(store: &Store, home: &Home) -> Option<Session> {
    match run(store.load(&home.session())) {
        Ok(session) => session,
        Err(Error::Damaged { .. } | Error::Trashed(_)) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// Appends to the session, if there is one. Returns the records that can be read then.
pub fn an_append_takes_nothing_away(home: &Home, before: &[Stored]) -> Vec<Stored> {
    let (store, files) = (home.store(), home.files());
    if let Some(session) = load(&store, home) {
        for id in ["more-1", "more-2"] {
            let known = reference::records(&home.files(), "messages");
            let ack = run(async { session.append(entry(id)).await?.await });
            let placed = match ack {
                Ok(ack) => ack.records[0].clone(),
                Err(Error::Trashed(_) | Error::Gone(_) | Error::SessionNotFound(_)) => break,
                Err(error) => panic!("{error:?}"),
            };
            let now = readers_agree(home);
            let (last, others) = now.split_last().expect("what was acknowledged");
            let line = Line::parse(last.1.clone().into()).expect("a record");
            assert_eq!(
                (last.0, line.stamp().id.as_str()),
                (placed.position, id),
                "an acknowledged record is read"
            );
            assert!(others == known, "nothing else has changed");
        }
    }
    store.close().expect("all was acknowledged");
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".jsonl")) {
        assert!(home.files()[name].starts_with(bytes), "{name} is only added to");
    }
    let after = readers_agree(home);
    assert!(after.starts_with(before));
    after
}

/// Repairs the session. Every record stays, the log is whole then, and the files as they were are kept.
pub fn a_repair_takes_nothing_away(home: &Home, before: &[Stored]) {
    let store = home.store();
    let files = home.files();
    let repair = match run(store.repair(&home.session(), Mode::Apply)) {
        Ok(repair) => repair,
        // More is missing than a repair should paper over.
        Err(Error::Damaged { reason, .. }) if reason.contains("before it are not") => return,
        Err(Error::SessionNotFound(_)) => return assert!(before.is_empty()),
        Err(error) => panic!("{error:?}"),
    };
    let after = readers_agree(home);
    let body = |(position, bytes): &Stored| {
        let line = Line::parse(bytes.clone().into()).expect("a record");
        (*position, line.stamp().kind, line.stamp().id.clone(), line.body())
    };
    let kept: Vec<_> = after.iter().map(body).collect();
    for record in before.iter().map(body) {
        assert!(kept.contains(&record), "a repair keeps record {}", record.0);
    }
    assert_eq!(gaps(&after), [], "positions are dense");
    let report = repair.after.expect("it was applied");
    let unwell = |problem: &&Problem| matches!(problem, Problem::Damage(..) | Problem::Metadata);
    assert_eq!(report.problems.iter().find(unwell), None, "a repaired log is whole");
    files_are_kept(home, &files);
    let again = run(store.repair(&home.session(), Mode::Apply)).expect("a whole session");
    assert!(again.rewrites.is_empty(), "a repaired session needs no repair");
    store.close().expect("nothing waits");
}

fn files_are_kept(home: &Home, files: &BTreeMap<String, Vec<u8>>) {
    let left: Vec<Vec<u8>> = home.disk.files().into_values().collect();
    for (name, bytes) in files.iter().filter(|(name, _)| name.ends_with(".jsonl")) {
        assert!(bytes.is_empty() || left.contains(bytes), "{name} as it was is kept");
    }
}

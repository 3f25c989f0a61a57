//! What must hold for a session's log, whatever its files hold.

use std::collections::BTreeMap;
use std::time::Duration;

use rethread_store::{Error, Filter, Line, Mode, Page, Problem, Session, Store};

use super::agreement::{all_is_read, can_be_searched, gaps, readers_agree, show_files};
use super::home::{Home, Stored, entry, run};
use super::reference;

/// How long an append may take.
const PATIENCE: Duration = Duration::from_secs(5);

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
    if let Some(session) = load(&store, home)
        && let Ok(ticket) = run(session.append(entry("more")))
    {
        // A log that nobody can tell the end of may refuse for good.
        drop(ticket.wait_for(Duration::from_millis(100)));
    }
    let files = home.files();
    if let Ok(repair) = run(store.repair(&home.session(), Mode::Apply)) {
        files_are_kept(home, &files);
        if !repair.rewrites.is_empty() {
            readers_agree(home);
        }
    }
    drop(store.close());
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
            let history = run(session.messages_up_to(record.record.entry.id()));
            assert!(history.is_ok() || !can_be_searched(home), "an entry that was just read: {history:?}");
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
    // A stray line in a long log can hide what comes after it; whether it did is for a repair to find out.
    let searchable = can_be_searched(home);
    if let Some(session) = load(&store, home) {
        for id in ["more-1", "more-2"] {
            let known = reference::records(&home.files(), "messages");
            let ack = run(session.append(entry(id))).and_then(|ticket| {
                // What cannot be written for now is tried again and again; in memory nothing gets in the way.
                ticket
                    .wait_for(PATIENCE)
                    .unwrap_or_else(|| panic!("stuck: {:?}, {}", store.health(), show_files(home)))
            });
            let placed = match ack {
                Ok(ack) => ack.records[0].clone(),
                Err(Error::Trashed(_) | Error::Gone(_) | Error::SessionNotFound(_)) => break,
                Err(error) => panic!("{error:?}"),
            };
            let now = all_is_read(home, 1 << 20);
            if !searchable {
                continue;
            }
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
    assert_eq!(gaps(&after, 0), [], "positions are dense");
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

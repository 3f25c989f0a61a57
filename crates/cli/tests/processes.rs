//! Many processes on one session: what it holds afterwards is what a model of them says, byte for byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;
use std::time::Duration;

use crate::fire::appender::{Appender, Ended, Pace};
use crate::fire::ledger::{Ledger, Run};
use crate::kit::{Home, cannot};

const PROCESSES: usize = 8;
const ENTRIES: usize = 300;

/// Has each process append its entries to one session of every kind of store, plain and encrypted; holds the session
/// against what they were told.
fn in_every_store(append: impl Fn(&Home, usize) -> Ended + Sync, afterwards: impl Fn(&Home)) {
    let plain = Home::of_every_kind();
    let encrypted = Home::of_every_kind().into_iter().map(Home::encrypted);
    for home in plain.into_iter().chain(encrypted) {
        home.answer(&["new", "--id", "s"]);
        let (mut ledger, home, append) = (Ledger::new("s"), &home, &append);
        std::thread::scope(|scope| {
            let running: Vec<_> =
                (0..PROCESSES).map(|process| scope.spawn(move || append(home, process))).collect();
            running.into_iter().for_each(|process| ledger.add(process.join().unwrap().run));
        });
        ledger.check(home);
        afterwards(home);
    }
}

fn start(home: &Home, process: usize) -> Appender {
    // Of all lengths, so that records begin and end anywhere in a block.
    let sizes = (0..ENTRIES).map(|n| (n * 37 + process * 11) % 900);
    let pace = if process.is_multiple_of(4) { Pace::Lockstep } else { Pace::Flood };
    Appender::start(home.command(&["append", "s"]), Run::new(format!("p{process}"), sizes), pace)
}

#[test]
fn eight_processes_append_to_one_session_at_once() {
    let append = |home: &Home, process| {
        let ended = start(home, process).end();
        assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), ENTRIES), "{}", ended.err);
        ended
    };
    in_every_store(append, |home| assert_eq!(home.run(&["verify"]).code, 0));
}

#[test]
fn processes_that_are_killed_among_others_lose_nothing_that_was_acknowledged() {
    let append = |home: &Home, process: usize| {
        let appender = start(home, process);
        if process.is_multiple_of(2) {
            // Somewhere on its way; what it had said by then counts.
            appender.wait_for(20 + process * 15, Duration::from_secs(120));
            return appender.kill();
        }
        let ended = appender.end();
        assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), ENTRIES), "{}", ended.err);
        ended
    };
    in_every_store(append, |_| {});
}

#[test]
fn a_sync_that_really_fails_sends_the_records_to_another_file() {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return cannot("trace with strace");
    }
    let home = Home::new();
    home.conversation("s", 2);
    let log = home.log("s");
    let path = log.to_str().unwrap();
    let inject = "inject=fsync,fdatasync:error=EIO:when=1";
    let runner =
        ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path, "-e", "trace=fsync,fdatasync", "-e", inject];
    let said = home.feed_to(home.through(&runner, &["append", "s"]), "{\"uuid\":\"after\"}\n");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains(r#""uuid":"after""#) && said.out.contains(r#""durable":true"#), "{}", said.out);
    let segment = std::fs::read_to_string(log.with_file_name("messages.1.jsonl")).unwrap();
    assert!(segment.contains("after"), "{segment}");
    assert_eq!(home.answer(&["show", "s", "--json"]).lines().count(), 3);
    assert_eq!(home.run(&["verify"]).code, 0);
}

//! Many processes on one session: nothing is lost, nothing interleaves, each one's own order is kept.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::kit::{Home, cannot};

const PROCESSES: usize = 8;
const ENTRIES: usize = 300;

fn lines(process: usize) -> String {
    let mut text = String::new();
    for n in 0..ENTRIES {
        // Of all lengths, so that records begin and end anywhere in a block.
        let filling = "x".repeat((n * 37 + process * 11) % 900);
        let _ = writeln!(text, r#"{{"uuid":"p{process}.{n}","filling":"{filling}"}}"#);
    }
    text
}

/// The numbers of each process's entries, in the order in which they are stored.
fn stored(home: &Home) -> HashMap<usize, Vec<usize>> {
    let mut order: HashMap<usize, Vec<usize>> = HashMap::new();
    for line in home.answer(&["show", "s", "--json"]).lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let (process, n) = entry["uuid"].as_str().unwrap()[1..].split_once('.').unwrap();
        order.entry(process.parse().unwrap()).or_default().push(n.parse().unwrap());
    }
    order
}

#[test]
fn eight_processes_append_to_one_session_at_once() {
    Home::of_every_kind().iter().for_each(eight_append);
}

fn eight_append(home: &Home) {
    home.answer(&["new", "--id", "s"]);
    std::thread::scope(|scope| {
        for process in 0..PROCESSES {
            scope.spawn(move || {
                let said = home.feed(&["append", "s"], lines(process));
                assert_eq!((said.code, said.out.lines().count()), (0, ENTRIES), "{}", said.err);
            });
        }
    });
    let order = stored(home);
    for process in 0..PROCESSES {
        assert_eq!(order[&process], (0..ENTRIES).collect::<Vec<_>>(), "process {process}");
    }
    assert_eq!(home.run(&["verify"]).code, 0);
}

#[test]
fn processes_that_are_killed_among_others_lose_nothing_that_was_acknowledged() {
    Home::of_every_kind().iter().for_each(some_are_killed);
}

fn some_are_killed(home: &Home) {
    home.answer(&["new", "--id", "s"]);
    let acknowledged: Vec<usize> = std::thread::scope(|scope| {
        let appenders: Vec<_> = (0..PROCESSES)
            .map(|process| {
                scope.spawn(move || {
                    let mut command = home.command(&["append", "s"]);
                    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
                    let mut stdin = child.stdin.take().unwrap();
                    let feeding = std::thread::spawn(move || stdin.write_all(lines(process).as_bytes()));
                    let out = BufReader::new(child.stdout.take().unwrap());
                    // Every second one is killed somewhere on its way; what it had said by then counts.
                    let deadline = if process % 2 == 0 { 20 + process * 15 } else { ENTRIES };
                    let mut acknowledged = 0;
                    for line in out.lines() {
                        if line.unwrap().contains("\"durable\":true") {
                            acknowledged += 1;
                        }
                        if acknowledged == deadline && process % 2 == 0 {
                            child.kill().unwrap();
                        }
                    }
                    child.wait().unwrap();
                    let _ = feeding.join().unwrap();
                    acknowledged
                })
            })
            .collect();
        appenders.into_iter().map(|appender| appender.join().unwrap()).collect()
    });
    let order = stored(home);
    for (process, acknowledged) in acknowledged.into_iter().enumerate() {
        let there = &order[&process];
        assert_eq!(*there, (0..there.len()).collect::<Vec<_>>(), "process {process}: a prefix of its own");
        assert!(
            there.len() >= acknowledged,
            "process {process}: {acknowledged} acknowledged, {}",
            there.len()
        );
    }
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

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use crate::kit::{Home, Said, ack, cannot, entry, uuid_in};

#[test]
fn each_entry_is_acknowledged_in_order_with_its_position() {
    let home = Home::new();
    home.conversation("s", 0);
    let input = [entry(1), "\n  \n".into(), r#"{"id":"own"}"#.into()].concat();
    let expected = [ack("u1", 1), ack("own", 2)].concat();
    assert_eq!(home.feed(&["append", "s"], input), Said::answer(expected));
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1) + "{\"id\":\"own\"}\n");
}

#[test]
fn an_entry_without_an_id_is_acknowledged_by_a_new_one() {
    let home = Home::new();
    home.conversation("s", 0);
    let said = home.feed(&["append", "s"], "{}");
    assert_eq!(uuid_in(&said.out).unwrap().len(), 36);
}

#[test]
fn a_script_may_wait_for_each_acknowledgement_before_it_writes_the_next_line() {
    let home = Home::new();
    home.conversation("s", 0);
    let mut child = home.start(&["append", "s"]);
    let mut input = child.stdin.take().unwrap();
    let mut acks = BufReader::new(child.stdout.take().unwrap());
    for number in 1..=20 {
        input.write_all(entry(number).as_bytes()).unwrap();
        let mut line = String::new();
        acks.read_line(&mut line).unwrap();
        assert_eq!(line, ack(&format!("u{number}"), number as u64));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_was_acknowledged_is_there_for_everybody_while_the_input_stays_open() {
    let home = Home::new();
    home.conversation("s", 0);
    let mut child = home.start(&["append", "s"]);
    child.stdin.as_mut().unwrap().write_all(entry(1).as_bytes()).unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn many_lines_share_a_sync() {
    let home = Home::new();
    home.conversation("s", 0);
    let trace = home.path().join("trace");
    let runner = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", trace.to_str().unwrap()];
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return cannot("strace is not installed");
    }
    let input: String = (1..=2000).map(entry).collect();
    let said = home.feed_to(home.through(&runner, &["append", "s"]), input);
    assert_eq!((said.code, said.out.lines().count()), (0, 2000), "{}", said.err);
    let syncs = std::fs::read_to_string(trace).unwrap().matches("sync(").count();
    assert!((1..400).contains(&syncs), "{syncs} syncs for 2000 lines");
}

#[test]
fn a_malformed_line_stops_there_and_everything_before_it_is_kept() {
    let home = Home::new();
    home.conversation("s", 0);
    let input = [&entry(1), &entry(2), "{\"uuid\":\"u3\",}\n", &entry(4)].concat();
    let message = "line 3: not an entry: trailing comma at column 14";
    let hint = "mend it and append from line 3 on; everything before line 3 is durable";
    let mut expected = Said::error(1, message, hint);
    expected.out = ack("u1", 1) + &ack("u2", 2);
    assert_eq!(home.feed(&["append", "s"], input), expected);
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1) + &entry(2));
}

#[test]
fn what_is_no_object_or_no_text_is_refused() {
    let home = Home::new();
    home.conversation("s", 0);
    for input in ["[1]\n", "null\n", "{\"a\":1} x\n", "{\"torn\":"] {
        let said = home.feed(&["append", "s"], input);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{input}");
        assert!(said.err.starts_with("error: line 1: not an entry: "), "{}", said.err);
        assert!(said.err.ends_with("; nothing was appended\n"), "{}", said.err);
    }
    assert_eq!(home.answer(&["show", "s", "--json"]), "");
}

#[test]
fn a_closed_pipe_is_no_error_and_the_whole_input_is_still_stored() {
    let home = Home::new();
    home.conversation("s", 0);
    let mut child = home.start(&["append", "s"]);
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    input.write_all((1..=50).map(entry).collect::<String>().as_bytes()).unwrap();
    drop(input);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
    let stored = home.answer(&["show", "s", "--json"]);
    assert_eq!(stored, (1..=50).map(entry).collect::<String>());
}

#[test]
fn appending_at_an_entry_makes_a_branch() {
    let home = Home::new();
    home.conversation("s", 4);
    let branch = "{\"uuid\":\"b\"}\n";
    assert_eq!(home.feed(&["append", "s", "--at", "u2"], branch), Said::answer(ack("b", 5)));
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1) + &entry(2) + branch);
    let all = (1..=4).map(entry).collect::<String>() + branch;
    assert_eq!(home.answer(&["show", "s", "--all", "--json"]), all);
}

#[test]
fn the_transcript_is_a_log_of_its_own() {
    let home = Home::new();
    home.conversation("s", 1);
    let line = "{\"uuid\":\"t\",\"type\":\"stream\"}\n";
    assert_eq!(home.feed(&["append", "s", "--transcript"], line), Said::answer(ack("t", 0)));
    assert_eq!(home.answer(&["show", "s", "--transcript", "--json"]), line);
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1));
}

#[test]
fn an_unknown_session_takes_nothing() {
    let home = Home::new();
    let expected = Said::error(1, "no session s", "`rethread list --all` shows what there is");
    assert_eq!(home.feed(&["append", "s"], entry(1)), expected);
    assert!(!home.store().try_exists().unwrap());
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let home = Home::new();
    home.conversation("s", 0);
    let (mut acknowledged, mut number) = (Vec::new(), 0);
    for cycle in 0..20 {
        let mut child = home.start(&["append", "s"]);
        let mut input = child.stdin.take().unwrap();
        let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines: String = (number + 1..=number + 3000).map(entry).collect();
        number += 3000;
        let feeder = std::thread::spawn(move || input.write_all(lines.as_bytes()));
        acknowledged.extend(acks.by_ref().take(1 + 37 * cycle).map(Result::unwrap));
        child.kill().unwrap();
        acknowledged.extend(acks.map_while(Result::ok));
        child.wait().unwrap();
        let _ = feeder.join().unwrap();
    }
    let stored = home.answer(&["show", "s", "--json"]);
    let stored: HashSet<&str> = stored.lines().filter_map(uuid_in).collect();
    let missing: Vec<_> = acknowledged.iter().filter(|ack| !stored.contains(uuid_in(ack).unwrap())).collect();
    assert!(missing.is_empty() && acknowledged.len() >= 20, "{missing:?}");
}

use std::io::{BufRead as _, BufReader};

use crate::kit::{Home, entry};

#[test]
fn tail_gives_what_is_there_and_then_each_new_entry_once() {
    let home = Home::new();
    home.conversation("s", 5);
    let mut child = home.start(&["tail", "s", "-n", "2", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap() + "\n");
    assert_eq!([lines.next(), lines.next()], [Some(entry(4)), Some(entry(5))]);
    for number in 6..=12 {
        home.feed(&["append", "s"], entry(number));
        assert_eq!(lines.next(), Some(entry(number)));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lines.next(), None);
}

#[test]
fn tail_ends_with_an_error_when_the_session_is_purged() {
    let home = Home::new();
    home.conversation("s", 1);
    let mut child = home.start(&["tail", "s"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    assert_eq!(home.run(&["purge", "s"]).code, 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(err, "error: session s was purged\nhint: `rethread list --all` shows what there is\n");
}

use std::fs;
use std::process::Command;

use crate::kit::{Home, Said, cannot, entry};

#[test]
fn persistence_switched_off_answers_as_if_and_promises_nothing() {
    let home = Home::new();
    assert_eq!(home.answer(&["--store", "off:", "new", "--id", "s"]), "s\n");
    let ack = "{\"uuid\":\"u1\",\"position\":0,\"durable\":false}\n";
    assert_eq!(home.feed(&["--store", "off:", "append", "s"], entry(1)), Said::answer(ack));
    assert_eq!(home.answer(&["--store", "off:", "show", "s", "--json"]), "");
    assert_eq!(
        home.run(&["--store", "off:", "list"]),
        Said::told("A store that is off keeps no sessions.\n")
    );
}

#[test]
fn persistence_switched_off_opens_no_file_for_writing() {
    let home = Home::new();
    if Command::new("strace").arg("-V").output().is_err() {
        return cannot("strace is not installed");
    }
    for words in
        [vec!["new"], vec!["append", "s"], vec!["fork", "s"], vec!["list"], vec!["show", "s"], vec!["gc"]]
    {
        let trace = home.path().join("trace");
        let runner = ["strace", "-f", "-o", trace.to_str().unwrap(), "-e", "trace=%file"];
        let words: Vec<&str> = ["--store", "off:"].into_iter().chain(words).collect();
        let said = home.feed_to(home.through(&runner, &words), entry(1));
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        let calls = fs::read_to_string(&trace).unwrap();
        assert!(calls.contains("openat("), "{calls}");
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "mkdir", "rename", "unlink", "creat("];
        let written = calls.lines().filter(|call| writes.iter().any(|write| call.contains(write)));
        let written: Vec<&str> = written.filter(|call| !call.contains("\"/dev/")).collect();
        assert_eq!(written, [""; 0], "{words:?}");
    }
    assert!(!home.store().try_exists().unwrap());
}

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};

use crate::kit::{Home, Said, entry};

/// Returns the first column of every line.
fn ids(table: &str) -> Vec<&str> {
    table.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn an_empty_store_says_the_next_step_and_is_not_made() {
    let home = Home::new();
    let hint = "hint: `rethread new` begins one, `rethread tour` shows around\n";
    assert_eq!(home.run(&["list"]), Said::told(format!("There are no sessions yet.\n{hint}")));
    assert_eq!(home.run(&["list", "--json"]), Said::answer(""));
    assert!(!home.store().try_exists().unwrap());
}

#[test]
fn the_newest_session_comes_first_with_its_name_or_first_prompt() {
    let home = Home::new();
    home.conversation("old", 3);
    home.run(&["new", "--id", "named", "--name", "A name\twith\u{1b}[2J a tail"]);
    home.feed(&["append", "named"], entry(1));
    let expected =
        "named  now     1  A name with\u{fffd}[2J a tail  ~\nold    now     3  message 1               ~\n";
    assert_eq!(home.run(&["list"]), Said::answer(expected));
}

#[test]
fn json_is_the_metadata_one_object_per_line() {
    let home = Home::new();
    home.answer(&["new", "--id", "s", "--name", "n", "--model", "m", "--json"]);
    home.feed(&["append", "s"], entry(1));
    let listed: serde_json::Value =
        serde_json::from_str(home.answer(&["list", "--json"]).trim_end()).unwrap();
    for (member, value) in [("session_id", "s"), ("name", "n"), ("model", "m"), ("first_prompt", "message 1")]
    {
        assert_eq!(listed[member], value);
    }
    assert_eq!((&listed["message_count"], &listed["archived"]), (&1.into(), &false.into()));
}

#[test]
fn what_is_put_away_is_listed_only_when_asked_for() {
    let home = Home::new();
    for id in ["plain", "away", "gone"] {
        home.conversation(id, 1);
    }
    home.run(&["archive", "away"]);
    home.run(&["delete", "gone"]);
    assert_eq!(ids(&home.answer(&["list"])), ["plain"]);
    assert_eq!(ids(&home.answer(&["list", "--archived"])), ["away"]);
    assert_eq!(ids(&home.answer(&["list", "--trash"])), ["gone"]);
    let all = home.answer(&["list", "--all"]);
    assert_eq!(ids(&all).len(), 3);
    assert!(all.contains("[archived] message 1") && all.contains("[trash] message 1"), "{all}");
}

#[test]
fn filters_narrow_the_list() {
    let home = Home::new();
    let (one, sub) = (home.path().join("one"), home.path().join("one/sub"));
    fs::create_dir_all(&sub).unwrap();
    fs::create_dir(one.join(".git")).unwrap();
    let (one, sub) = (one.to_str().unwrap(), sub.to_str().unwrap());
    home.answer(&["new", "--id", "a", "--cwd", one, "--name", "Lexer"]);
    home.answer(&["new", "--id", "b", "--cwd", sub, "--name", "Parser"]);
    home.answer(&["new", "--id", "c", "--name", "Printer"]);
    assert_eq!(ids(&home.answer(&["list", "--cwd", sub])), ["b"]);
    assert_eq!(ids(&home.answer(&["list", "--project", sub])), ["b", "a"]);
    assert_eq!(ids(&home.answer(&["list", "--search", "pARs"])), ["b"]);
    assert_eq!(ids(&home.answer(&["list", "--limit", "2"])), ["c", "b"]);
    let none = "No session fits.\nhint: `rethread list --all` shows everything there is\n";
    assert_eq!(home.run(&["list", "--tag", "none"]), Said::told(none));
}

#[test]
fn an_unreadable_session_is_shown_and_hides_no_other() {
    let home = Home::new();
    home.conversation("good", 1);
    fs::create_dir_all(home.log("bad")).unwrap();
    let said = home.run(&["list"]);
    assert_eq!((said.code, ids(&said.out)), (1, vec!["good", "bad"]));
    assert!(said.err.starts_with("warning: session bad cannot be read: "), "{}", said.err);
    assert!(said.err.ends_with("hint: `rethread verify bad` says what is damaged\n"), "{}", said.err);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let home = Home::new();
    for number in 0..40 {
        home.answer(&["new", "--id", &format!("s{number}"), "--name", &"long ".repeat(1000)]);
    }
    let mut child = home.start(&["list", "--json"]);
    let mut first = String::new();
    let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    drop(out);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
    assert!(first.starts_with("{\"session_id\":\"s39\""));
}

use std::fs;

use crate::kit::{Home, Said, entry};

#[test]
fn a_fork_inherits_up_to_its_entry_and_copies_nothing() {
    let home = Home::new();
    home.conversation("s", 500);
    assert_eq!(home.answer(&["fork", "s", "--at", "u400", "--id", "f", "--name", "Other way"]), "f\n");
    let inherited: String = (1..=400).map(entry).collect();
    assert_eq!(home.answer(&["show", "f", "--json"]), inherited);
    assert_eq!(fs::read_to_string(home.log("f")).unwrap().lines().count(), 1);
}

#[test]
fn a_fork_goes_its_own_way() {
    let home = Home::new();
    home.conversation("s", 2);
    home.answer(&["fork", "s", "--id", "f"]);
    home.feed(&["append", "f"], entry(3));
    assert_eq!(home.answer(&["show", "f", "--json"]), entry(1) + &entry(2) + &entry(3));
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1) + &entry(2));
}

#[test]
fn a_fork_as_json_is_its_metadata() {
    let home = Home::new();
    home.conversation("s", 2);
    let fork = home.answer(&["fork", "s", "--at", "u1", "--json"]);
    let fork: serde_json::Value = serde_json::from_str(fork.trim_end()).unwrap();
    assert_eq!((&fork["parent_id"], &fork["fork_message_id"]), (&"s".into(), &"u1".into()));
    assert_eq!((&fork["message_count"], &fork["detached"]), (&1.into(), &false.into()));
    assert_eq!(fork["session_id"].as_str().unwrap().len(), 36);
}

#[test]
fn a_detached_fork_begins_empty() {
    let home = Home::new();
    home.conversation("s", 2);
    home.answer(&["fork", "s", "--detached", "--id", "f"]);
    assert_eq!(home.answer(&["show", "f", "--json"]), "");
}

#[test]
fn a_taken_id_and_an_unknown_entry_are_refused() {
    let home = Home::new();
    home.conversation("s", 1);
    let taken = "`rethread list --all` shows it; `--id NEW` takes another id";
    let expected = Said::error(1, "session s exists already", taken);
    assert_eq!(home.run(&["fork", "s", "--id", "s"]), expected);
    assert_eq!(home.run(&["new", "--id", "s"]), expected);
    let said = home.run(&["fork", "s", "--at", "nope", "--id", "f"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert_eq!(home.run(&["show", "f"]).code, 1);
}

#[test]
fn a_materialized_fork_outlives_its_parents_folder() {
    let home = Home::new();
    home.conversation("s", 3);
    home.answer(&["fork", "s", "--at", "u2", "--id", "f"]);
    let told = "Copied 2 entries into session f; it no longer needs its parent.\n";
    assert_eq!(home.run(&["materialize", "f"]), Said::told(told));
    fs::remove_dir_all(home.store().join("sessions/s")).unwrap();
    assert_eq!(home.answer(&["show", "f", "--json"]), entry(1) + &entry(2));
    let told = "Session f inherits nothing; nothing was copied.\n";
    assert_eq!(home.run(&["materialize", "f"]), Said::told(told));
}

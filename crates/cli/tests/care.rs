use std::fs;
use std::path::Path;

use crate::kit::{Home, Said, entry};

#[test]
fn a_whole_store_is_said_to_be_whole() {
    let home = Home::new();
    home.conversation("a", 2);
    home.conversation("b", 1);
    assert_eq!(home.run(&["verify"]), Said::answer("2 sessions, 5 records: all whole\n"));
    assert_eq!(home.run(&["verify", "b"]), Said::answer("1 session, 2 records: all whole\n"));
    let json =
        "{\"session_id\":\"b\",\"ok\":true,\"records\":2,\"lost\":0,\"problems\":[],\"interrupted\":[]}\n";
    assert_eq!(home.run(&["verify", "b", "--json"]), Said::answer(json));
}

#[test]
fn damage_is_named_with_its_file_and_place() {
    let home = Home::new();
    home.conversation("good", 2);
    home.conversation("bad", 3);
    home.spoil("bad", 2);
    let said = home.run(&["verify"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("bad: messages.jsonl: checksum mismatch at byte "), "{}", said.out);
    assert!(!said.out.contains("good"), "{}", said.out);
    let told = "1 of 2 sessions are damaged.\nhint: `rethread repair bad` says what can be done\n";
    assert_eq!(said.err, told);
}

#[test]
fn a_repair_is_only_planned_until_it_is_agreed_to() {
    let home = Home::new();
    home.conversation("s", 3);
    home.litter("s");
    let before = fs::read(home.log("s")).unwrap();
    let plan = home.run(&["repair", "s"]);
    assert_eq!(plan.code, 0);
    assert!(
        plan.out.starts_with("Would mend session s:\n  messages.jsonl: no stamp at byte"),
        "{}",
        plan.out
    );
    assert_eq!(plan.err, "hint: `rethread repair s --yes` does it\n");
    assert_eq!(fs::read(home.log("s")).unwrap(), before);
}

#[test]
fn a_repair_keeps_every_record_and_the_files_as_they_were() {
    let home = Home::new();
    home.conversation("s", 3);
    home.litter("s");
    let before = fs::read(home.log("s")).unwrap();
    let done = home.run(&["repair", "s", "--yes"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    assert!(done.out.contains("messages: 4 records kept, 0 records lost\n"), "{}", done.out);
    let backup = done.out.lines().find_map(|line| line.strip_prefix("  as it was: ")).unwrap();
    assert_eq!(fs::read(Path::new(backup).join("messages.jsonl")).unwrap(), before);
    assert_eq!(home.answer(&["show", "s", "--json"]), (1..=3).map(entry).collect::<String>());
    let again = home.run(&["repair", "s"]);
    assert_eq!(again, Said::answer("Session s is whole; nothing to repair.\n"));
}

#[test]
fn a_torn_end_is_set_aside_by_the_next_append_which_says_so() {
    let home = Home::new();
    home.conversation("s", 1);
    let mut log = fs::read(home.log("s")).unwrap();
    log.extend(b"{\"torn\":");
    fs::write(home.log("s"), log).unwrap();
    let said = home.feed(&["append", "s"], entry(2));
    assert_eq!(said.code, 0);
    assert!(said.err.starts_with("warning: session s: messages.jsonl: cut short at byte "), "{}", said.err);
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1) + &entry(2));
}

#[test]
fn gc_purges_old_trash_only_when_asked_and_never_in_a_dry_run() {
    let home = Home::new();
    home.conversation("kept", 1);
    home.conversation("trashed", 1);
    home.run(&["delete", "trashed"]);
    assert_eq!(home.run(&["gc"]), Said::told("Nothing to clear away.\n"));
    let would = Said { code: 0, out: "trashed\n".into(), err: "Would clear away 1 session.\n".into() };
    assert_eq!(home.run(&["gc", "--trash-after", "0", "--dry-run"]), would);
    let did = Said { err: "Cleared away 1 session.\n".into(), ..would };
    assert_eq!(home.run(&["gc", "--trash-after", "0"]), did);
    assert_eq!(home.answer(&["list", "--all"]).lines().count(), 1);
}

#[test]
fn a_repair_answers_programs() {
    let home = Home::new();
    home.conversation("s", 3);
    home.litter("s");
    let json = |words: &[&str]| serde_json::from_str::<serde_json::Value>(&home.run(words).out).unwrap();
    let plan = json(&["repair", "s", "--json"]);
    assert_eq!((&plan["applied"], &plan["logs"]), (&false.into(), &serde_json::json!(["messages"])));
    let done = json(&["repair", "s", "--yes", "--json"]);
    assert_eq!((&done["applied"], &done["rewrites"][0]["kept"]), (&true.into(), &4.into()));
    assert_eq!(done["left"], serde_json::json!([]));
    let whole = json(&["repair", "s", "--json"]);
    assert_eq!(whole["problems"], serde_json::json!([]));
}

#[test]
fn a_clean_up_and_an_import_answer_programs() {
    let home = Home::new();
    home.conversation("s", 3);
    home.answer(&["export", "s", "-o", "bundle"]);
    let json = |words: &[&str]| serde_json::from_str::<serde_json::Value>(&home.run(words).out).unwrap();
    let imported = json(&["import", "bundle", "--id", "t", "--json"]);
    assert_eq!((&imported["session_id"], &imported["outcome"]), (&"t".into(), &"imported".into()));
    assert_eq!(imported["records"], 4);
    home.run(&["delete", "t"]);
    let plan = json(&["gc", "--trash-after", "0", "--dry-run", "--json"]);
    assert_eq!((&plan["applied"], &plan["purged"]), (&false.into(), &serde_json::json!(["t"])));
    let done = json(&["gc", "--trash-after", "0", "--json"]);
    assert_eq!((&done["applied"], &done["purged"]), (&true.into(), &serde_json::json!(["t"])));
}

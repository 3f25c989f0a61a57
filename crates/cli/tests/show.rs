use std::fs;

use crate::kit::{Home, Said, entry};

#[test]
fn a_conversation_is_roles_texts_and_a_line_for_each_tool() {
    let home = Home::new();
    home.conversation("s", 1);
    let entries = [
        r#"{"uuid":"a1","type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Look:"},{"type":"tool_use","id":"c","name":"Read","input":{"path":"a.rs"}}]}}"#,
        r#"{"uuid":"t1","role":"tool","tool_call_id":"c","content":"one\ntwo"}"#,
        r#"{"uuid":"x1","type":"summary","summary":"so far"}"#,
        r#"{"uuid":"e1","role":"user","content":"\u001b[2Jwiped"}"#,
    ];
    home.feed(&["append", "s"], entries.join("\n"));
    let expected = "user  u1\n  message 1\n\nassistant  a1\n  Look:\n  > Read {\"path\":\"a.rs\"}\n\n\
                    tool  t1\n  < (2 lines) one two\n\n[summary]  x1\n\nuser  e1\n  \u{fffd}[2Jwiped\n";
    assert_eq!(home.run(&["show", "s"]), Said::answer(expected));
}

#[test]
fn json_gives_every_byte_back_as_it_came() {
    let home = Home::new();
    home.conversation("s", 0);
    let odd =
        "{ \"b\" : 1.0e0, \"a\":\"\\ud83d\", \"a\": null ,\"_rt\":\"1 2 3\"}\n{}\n{\"_rt\":\"\",\"é\":[ ]}\n";
    assert_eq!(home.feed(&["append", "s"], odd).code, 0);
    assert_eq!(home.answer(&["show", "s", "--json"]), odd);
}

#[test]
fn at_an_entry_is_what_resuming_there_would_restore() {
    let home = Home::new();
    home.conversation("s", 4);
    assert_eq!(home.answer(&["show", "s", "--at", "u2", "--json"]), entry(1) + &entry(2));
    let hint = "`rethread show s --all` shows every entry with its id";
    let unknown = Said::error(1, "session s has no entry nope", hint);
    assert_eq!(home.run(&["show", "s", "--at", "nope"]), unknown);
    let ambiguous = Said::error(2, "4 entries begin with u", "one of u1, u2, u3, u4");
    assert_eq!(home.run(&["show", "s", "--at", "u"]), ambiguous);
}

#[test]
fn all_branches_say_which_is_active_and_what_they_follow() {
    let home = Home::new();
    home.conversation("s", 2);
    home.feed(&["append", "s", "--at", "u1"], "{\"uuid\":\"b\",\"role\":\"user\",\"content\":\"again\"}\n");
    let expected = "user  u1\n  message 1\n\n-- not on the active branch --\nassistant  u2\n  message 2\n\n\
                    -- after u1 --\nuser  b\n  again\n";
    assert_eq!(home.answer(&["show", "s", "--all"]), expected);
}

#[test]
fn stamped_lines_are_those_on_disk() {
    let home = Home::new();
    home.conversation("s", 3);
    home.feed(&["append", "s", "--at", "u1"], "{\"uuid\":\"b\"}\n");
    let disk = fs::read_to_string(home.log("s")).unwrap();
    assert_eq!(home.answer(&["show", "s", "--stamped", "--all"]), disk);
    let lines: Vec<&str> = disk.lines().collect();
    assert_eq!(home.answer(&["show", "s", "--stamped"]), format!("{}\n{}\n", lines[1], lines[4]));
}

#[test]
fn a_forks_conversation_says_where_it_leaves_its_parent() {
    let home = Home::new();
    home.conversation("s", 2);
    home.run(&["fork", "s", "--at", "u1", "--id", "f"]);
    home.feed(&["append", "f"], "{\"uuid\":\"x\",\"role\":\"user\",\"content\":\"own\"}\n");
    let expected = "user  u1\n  message 1\n\n-- inherited from s up to here --\n\nuser  x\n  own\n";
    assert_eq!(home.answer(&["show", "f"]), expected);
}

#[test]
fn the_latest_is_that_of_this_directory_or_with_project_of_the_repository() {
    let home = Home::new();
    let sub = home.path().join("repository/sub");
    fs::create_dir_all(&sub).unwrap();
    fs::create_dir(home.path().join("repository/.git")).unwrap();
    let sub = sub.to_str().unwrap();
    home.conversation("here", 1);
    home.answer(&["new", "--id", "root", "--cwd", "repository"]);
    home.feed(&["append", "root"], entry(2));
    assert_eq!(home.answer(&["show", "--latest", "--json"]), entry(1));
    assert_eq!(home.answer(&["show", "--latest", "--project", "--cwd", sub, "--json"]), entry(2));
    let none = "no session to continue in HOME/repository/sub";
    let hint = "`rethread list` shows the sessions of all directories";
    assert_eq!(home.run(&["show", "--latest", "--cwd", sub]), Said::error(1, none, hint));
}

#[test]
fn what_can_be_read_of_a_damaged_history_is_shown_and_the_rest_is_named() {
    let home = Home::new();
    home.conversation("s", 4);
    home.spoil("s", 2);
    let said = home.run(&["show", "s", "--json"]);
    assert_eq!((said.code, said.out), (1, entry(1) + &entry(3) + &entry(4)));
    assert!(said.err.starts_with("warning: entry 2 is missing: session s is damaged there"), "{}", said.err);
    assert!(said.err.ends_with("\nhint: `rethread verify s` says what is damaged\n"), "{}", said.err);
    let all = home.run(&["show", "s", "--all", "--json"]);
    assert_eq!((all.code, all.out), (1, entry(1) + &entry(3) + &entry(4)));
}

#[test]
fn a_last_entry_that_is_damaged_does_not_just_vanish() {
    let home = Home::new();
    home.conversation("s", 3);
    home.spoil("s", 3);
    for words in [vec!["show", "s", "--json"], vec!["show", "s", "--all", "--json"]] {
        let said = home.run(&words);
        assert_eq!((said.code, said.out), (1, entry(1) + &entry(2)), "{words:?}");
        let named = ["warning: entry 3 is missing", "warning: messages.jsonl: checksum mismatch at byte "];
        assert!(named.iter().any(|start| said.err.starts_with(start)), "{}", said.err);
    }
}

#[test]
fn a_damaged_transcript_is_not_shown_as_a_whole_one() {
    let home = Home::new();
    home.conversation("s", 0);
    home.feed(&["append", "s", "--transcript"], entry(1) + &entry(2) + &entry(3));
    let path = home.log("s").with_file_name("transcript.jsonl");
    let text = fs::read_to_string(&path).unwrap().replace("message 2", "massage 2");
    fs::write(path, text).unwrap();
    let said = home.run(&["show", "s", "--transcript", "--json"]);
    assert_eq!((said.code, said.out), (1, entry(1) + &entry(3)));
    assert!(said.err.starts_with("warning: transcript.jsonl: checksum mismatch at byte "), "{}", said.err);
}

#[test]
fn durable_first_makes_sure_and_then_shows_the_same() {
    let home = Home::new();
    home.conversation("s", 2);
    assert_eq!(home.answer(&["show", "s", "--durable", "--json"]), entry(1) + &entry(2));
}

#[test]
fn looking_for_a_session_makes_no_store() {
    let home = Home::new();
    let expected = Said::error(1, "no session s", "`rethread list --all` shows what there is");
    for words in
        [["show", "s"], ["tail", "s"], ["verify", "s"], ["export", "s"], ["delete", "s"], ["purge", "s"]]
    {
        assert_eq!(home.run(&words), expected, "{words:?}");
    }
    assert!(!home.store().try_exists().unwrap());
}

#[test]
fn a_session_without_entries_says_so() {
    let home = Home::new();
    home.conversation("s", 0);
    let expected = "Session s has no entries yet; `rethread append s` adds some.\n";
    assert_eq!(home.run(&["show", "s"]), Said::told(expected));
}

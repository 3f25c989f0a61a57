use std::fs;

use crate::kit::{Home, Said, entry};

#[test]
fn an_exported_session_is_the_same_in_another_store() {
    let (home, other) = (Home::new(), Home::new());
    home.conversation("s", 3);
    home.feed(&["append", "s", "--at", "u1"], "{\"uuid\":\"b\"}\n");
    home.answer(&["export", "s", "-o", "s.bundle"]);
    fs::rename(home.path().join("s.bundle"), other.path().join("s.bundle")).unwrap();
    let said = other.run(&["import", "s.bundle"]);
    assert_eq!(
        (said.code, said.out.as_str(), said.err.as_str()),
        (0, "s\n", "Imported session s, 5 records.\n")
    );
    for words in [vec!["show", "s", "--json"], vec!["show", "s", "--all", "--json"]] {
        assert_eq!(other.answer(&words), home.answer(&words));
    }
}

#[test]
fn an_export_goes_through_a_pipe() {
    let (home, other) = (Home::new(), Home::new());
    home.conversation("s", 2);
    let bundle = home.answer(&["export", "s"]);
    assert_eq!(other.feed(&["import", "-", "--id", "t"], bundle).out, "t\n");
    assert_eq!(other.answer(&["show", "t", "--json"]), entry(1) + &entry(2));
}

#[test]
fn an_import_replaces_nothing_and_takes_no_half_of_a_file() {
    let home = Home::new();
    home.conversation("s", 2);
    let bundle = home.answer(&["export", "s"]);
    let taken = "`rethread list --all` shows it; `--id NEW` takes another id";
    assert_eq!(home.feed(&["import", "-"], &bundle), Said::error(1, "session s exists already", taken));
    let cut = home.feed(&["import", "-", "--id", "t"], &bundle[..bundle.len() / 2]);
    assert_eq!((cut.code, cut.out.as_str()), (1, ""));
    assert_eq!(home.run(&["show", "t"]).code, 1);
}

#[test]
fn a_failed_export_leaves_no_file_behind() {
    let home = Home::new();
    home.conversation("s", 1);
    let said = home.run(&["export", "s", "-o", "nowhere/s.bundle"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with("error: cannot write nowhere/s.bundle: "), "{}", said.err);
    assert_eq!(home.run(&["export", "nope", "-o", "n.bundle"]).code, 1);
    assert!(!home.path().join("n.bundle").try_exists().unwrap());
}

#[test]
fn a_folder_of_an_older_store_is_taken_over_and_what_cannot_be_is_named() {
    let home = Home::new();
    let folder = home.path().join("old/sessions/one");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("metadata.json"), r#"{"id":"one","cwd":"/w","created_at":"2025-01-02T03:04:05Z"}"#)
        .unwrap();
    fs::write(folder.join("messages.jsonl"), entry(1) + "{broken\n" + &entry(2)).unwrap();
    let said = home.run(&["import", "old"]);
    assert_eq!((said.code, said.out.as_str()), (1, "one\n"));
    assert!(said.err.contains("warning: old/sessions/one/messages.jsonl: at byte "), "{}", said.err);
    assert!(said.err.ends_with("Imported 1 session.\n"), "{}", said.err);
    assert_eq!(home.answer(&["show", "one", "--json"]), entry(1) + &entry(2));
    assert!(home.run(&["import", "old"]).err.ends_with("Imported 0 sessions; 1 was here already.\n"));
}

#[test]
fn what_cannot_be_imported_is_one_line_and_a_hint() {
    let home = Home::new();
    fs::write(home.path().join("notes.txt"), "shopping").unwrap();
    fs::create_dir(home.path().join("empty")).unwrap();
    for path in ["notes.txt", "empty", "missing"] {
        let said = home.run(&["import", path]);
        assert_eq!((said.code, said.out.as_str(), said.err.lines().count()), (1, "", 2), "{}", said.err);
    }
    assert!(!home.store().try_exists().unwrap());
}

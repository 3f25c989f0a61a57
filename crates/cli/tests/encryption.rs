//! Stores that are encrypted, as a person meets them.

use std::fs;

use crate::kit::{Home, Said, entry, stores_in};

#[test]
fn an_encrypted_store_of_every_kind_works_like_any_other() {
    let home = Home::new();
    assert_eq!(home.run(&["key", "master.key"]).code, 0);
    for place in stores_in(home.path()) {
        let store = format!("encrypted+{}", place.replace(home.path().to_str().unwrap(), "."));
        let run =
            |words: &[&str]| home.run(&[&["--key-file", "master.key", "--store", &store], words].concat());
        assert_eq!(run(&["new", "--id", "talk", "--name", "Between us"]).code, 0, "{store}");
        let words = ["--key-file", "master.key", "--store", &store, "append", "talk"];
        assert_eq!(home.feed(&words, format!("{}{}", entry(1), entry(2))).code, 0, "{store}");
        let file = home.path().join("secret.txt");
        fs::write(&file, "before").unwrap();
        let root = ["--root", home.path().to_str().unwrap(), "secret.txt"];
        let checkpoint = ["checkpoint", "talk", "--message", "m-1", "--id", "c1"];
        assert_eq!(run(&[&checkpoint[..], &root].concat()).code, 0, "{store}");
        fs::write(&file, "after").unwrap();
        let after = ["checkpoint", "talk", "--message", "m-1", "--after"];
        assert_eq!(run(&[&after[..], &root].concat()).code, 0, "{store}");
        let rewound = run(&[&["rewind", "talk", "--to", "c1"][..], &root[..2]].concat());
        assert_eq!((rewound.code, fs::read(&file).unwrap()), (0, b"before".to_vec()), "{store}: {rewound:?}");
        assert!(run(&["list"]).out.contains("Between us"), "{store}");
        assert_eq!(run(&["show", "talk", "--json"]).out.lines().count(), 2, "{store}");
        assert_eq!(run(&["verify"]).code, 0, "{store}");
        // Copied out of it, it is like any other.
        let open = format!("./open-{}", place.len());
        assert_eq!(run(&["copy", "talk", "--to", &open]).code, 0, "{store}");
        assert_eq!(home.answer(&["--store", &open, "show", "talk", "--json"]).lines().count(), 2, "{store}");
        // And without its key it is nothing.
        let plainly = home.run(&["--store", &store["encrypted+".len()..], "list"]);
        assert!(plainly.code == 1 && plainly.err.contains("the store is encrypted"), "{store}: {plainly:?}");
    }
}

#[test]
fn whoever_has_no_key_or_shows_it_to_others_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let told = |words: &[&str], message: &str| {
        let said = home.run(words);
        assert!(said.code != 0 && said.err.contains(message), "{words:?}: {said:?}");
    };
    told(&["--store", "encrypted+./s", "list"], "an encrypted store needs a key");
    told(&["--store", "encrypted+./s", "--key-file", "none", "list"], "cannot read none");
    assert_eq!(home.run(&["key", "master.key"]).code, 0);
    told(&["key", "master.key"], "never written over");
    told(&["--store", "./s", "--key-file", "master.key", "list"], "no store is encrypted");
    let key = home.path().join("master.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    told(&["--store", "encrypted+./s", "--key-file", "master.key", "list"], "others can read the key");
    fs::write(home.path().join("other.key"), "hunter2").unwrap();
    fs::set_permissions(home.path().join("other.key"), fs::Permissions::from_mode(0o600)).unwrap();
    let said = home.run(&["--store", "encrypted+./s", "--key-file", "other.key", "list"]);
    assert!(said.code == 2 && said.err.contains("holds no key") && !said.err.contains("hunter2"), "{said:?}");
}

#[test]
fn an_erased_session_is_told_of_everywhere_and_goes_with_the_next_gc_while_its_fork_goes_on() {
    for home in Home::of_every_kind().into_iter().map(Home::encrypted) {
        for id in ["talk", "other"] {
            home.conversation(id, 2);
        }
        home.answer(&["fork", "talk", "--id", "fork"]);
        let inherited = home.answer(&["show", "fork", "--json"]);
        assert_eq!(home.run(&["erase", "tal"]).code, 1, "a slip of the finger");
        let told = "Session talk is erased; `rethread gc` clears away what is left of it.\n";
        assert_eq!(home.run(&["erase", "talk"]), Said::told(told));
        assert_eq!(home.run(&["erase", "talk"]), Said::told(told.replace("is erased", "was erased before")));
        let hint = "`rethread gc` clears away what is left of it";
        for words in [&["show", "talk"][..], &["verify", "talk"], &["delete", "talk"], &["export", "talk"]] {
            assert_eq!(home.run(words), Said::error(1, "session talk was erased", hint), "{words:?}");
        }
        let listed = home.run(&["list", "--stored"]);
        assert!(listed.code == 0 && listed.out.lines().count() == 3, "{listed:?}");
        assert!(listed.err.contains("Session talk was erased"), "{listed:?}");
        for words in [&["verify"][..], &["doctor"], &["scan"], &["sync", "--to", "./open"]] {
            let said = home.run(words);
            assert_eq!(said.code, 0, "{words:?}: {said:?}");
            let is_of_stored = !matches!(words[0], "doctor" | "scan");
            assert_eq!(said.err.contains("Session talk was erased"), is_of_stored, "{words:?}: {said:?}");
        }
        assert_eq!(
            home.run(&["gc"]),
            Said { code: 0, out: "talk\n".into(), err: "Cleared away 1 session.\n".into() }
        );
        assert_eq!(home.answer(&["show", "fork", "--json"]), inherited);
        assert_eq!(home.run(&["verify"]).out, "2 sessions, 7 records: all whole\n");
        home.conversation("talk", 1);
        assert_eq!(home.run(&["erase", "talk"]).code, 0);
        assert_eq!(home.run(&["purge", "tal"]), Said::told("Removed session talk for good.\n"));
    }
}

#[test]
fn what_has_no_key_cannot_be_erased() {
    let home = Home::new();
    home.conversation("talk", 1);
    let hint = "`rethread purge ID` removes a session from it";
    let refused = Said::error(2, "this store is not encrypted: its sessions have no keys", hint);
    assert_eq!(home.run(&["erase", "talk"]), refused);
    let encrypted = Home::new().encrypted();
    assert!(encrypted.run(&["erase", "talk"]).err.starts_with("error: no session talk\n"));
}

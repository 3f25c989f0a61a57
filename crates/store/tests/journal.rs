//! The journal of a log: what it saves, and what it is good for once the machine has crashed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rethread_store::{FileBackend, Mode, Options, Session, Store};

use crate::faulty_disk::FaultyDisk;
use crate::kit::{Home, chain_of, conversation, message, run, session_id, tree};

/// A store whose logs get a journal with their second append.
fn open(root: &Path) -> Store {
    open_on(&FaultyDisk::default(), root)
}

/// A disk that does not know which run of the machine this is, so that nobody trusts the log.
fn open_on(disk: &FaultyDisk, root: &Path) -> Store {
    let files = FileBackend::on(Arc::new(disk.clone()), root).with_journal(Some(1), 16 << 10);
    Store::new(files, Options::default())
}

fn append(session: &Session, n: usize) {
    run(async { session.append(message(n)).await.unwrap().await }).unwrap();
}

/// Returns a store as a power cut may leave it: a session of six messages, whose log lost all that its journal has.
fn after_a_power_cut() -> Home {
    let (home, left) = (Home::new(), Home::new());
    let store = open(&home.root());
    conversation(&store, "s", 6);
    for (path, content) in tree(&home.root()) {
        let copy = left.root().join(path.strip_prefix(home.root()).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, content).unwrap();
    }
    let log = left.log(&session_id("s"));
    let journal = fs::read_to_string(log.with_extension("journal")).unwrap();
    let header: serde_json::Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let from = header["journal"]["from"].as_u64().unwrap();
    fs::File::options().write(true).open(&log).unwrap().set_len(from).unwrap();
    assert!(
        fs::read_to_string(&log).unwrap().contains("u1")
            && from < fs::metadata(home.log(&session_id("s"))).unwrap().len()
    );
    left
}

#[test]
fn a_small_append_syncs_the_journal_and_leaves_the_log_to_be_synced_later() {
    let (home, disk) = (Home::new(), FaultyDisk::default());
    let store = open_on(&disk, &home.root());
    let session = conversation(&store, "s", 3);
    let before = disk.appends_and_syncs().1;
    (4..9).for_each(|n| append(&session, n));
    assert_eq!(disk.appends_and_syncs().1, before);
    store.close().unwrap();
    assert!(disk.appends_and_syncs().1 > before);
}

#[test]
fn readers_see_after_a_power_cut_what_only_the_journal_has_and_change_nothing() {
    let home = after_a_power_cut();
    let before = tree(&home.root());
    let store = open(&home.root());
    let session = run(store.open(&session_id("s"))).unwrap();
    assert_eq!(chain_of(&session), "u1 u2 u3 u4 u5 u6");
    assert!(run(store.verify(&session_id("s"))).unwrap().is_ok());
    assert_eq!(tree(&home.root()), before);
}

#[test]
fn whoever_writes_next_puts_what_only_the_journal_has_into_the_log() {
    let home = after_a_power_cut();
    let store = open(&home.root());
    let session = run(store.open(&session_id("s"))).unwrap();
    append(&session, 7);
    store.close().unwrap();
    drop(store);
    let log = home.log(&session_id("s"));
    assert!(!log.with_extension("journal").try_exists().unwrap());
    assert_eq!(chain_of(&run(home.open().open(&session_id("s"))).unwrap()), "u1 u2 u3 u4 u5 u6 u7");
}

#[test]
fn a_repair_keeps_what_only_the_journal_has() {
    let home = after_a_power_cut();
    let log = home.log(&session_id("s"));
    let bytes = fs::read(&log).unwrap();
    // Damage that a repair has something to do for, before the journal's lines.
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut damaged = bytes.clone();
    damaged[line + 12] ^= 1;
    fs::write(&log, damaged).unwrap();
    run(open(&home.root()).repair(&session_id("s"), Mode::Apply)).unwrap();
    let store = home.open();
    let found = chain_of(&run(store.open(&session_id("s"))).unwrap());
    assert!(found.ends_with("u2 u3 u4 u5 u6"), "{found}");
}

#[test]
fn a_journal_that_was_left_behind_does_not_touch_a_log_that_went_on_without_it() {
    let home = Home::new();
    let store = open(&home.root());
    let session = conversation(&store, "s", 4);
    let journal = home.log(session.id()).with_extension("journal");
    let old = fs::read(&journal).unwrap();
    (5..40).for_each(|n| append(&session, n));
    store.close().unwrap();
    drop((session, store));
    let whole = fs::read(home.log(&session_id("s"))).unwrap();
    fs::write(&journal, old).unwrap();
    let expected = (1..40).map(|n| format!("u{n}")).collect::<Vec<_>>().join(" ");
    let store = open(&home.root());
    let session = run(store.open(&session_id("s"))).unwrap();
    assert_eq!(chain_of(&session), expected);
    append(&session, 40);
    assert!(fs::read(home.log(&session_id("s"))).unwrap().starts_with(&whole));
    assert_eq!(chain_of(&session), format!("{expected} u40"));
}

#[test]
fn a_journal_of_another_log_counts_for_nothing() {
    let (home, other) = (Home::new(), after_a_power_cut());
    let store = open(&home.root());
    let session = conversation(&store, "s", 0);
    (7..9).for_each(|n| append(&session, n));
    store.close().unwrap();
    drop((session, store));
    let path = |home: &Home| home.log(&session_id("s")).with_extension("journal");
    fs::copy(path(&other), path(&home)).unwrap();
    let store = open(&home.root());
    let session = run(store.open(&session_id("s"))).unwrap();
    assert_eq!(chain_of(&session), "u7 u8");
    append(&session, 9);
    assert_eq!(chain_of(&session), "u7 u8 u9");
}

#[test]
fn whoever_had_a_session_that_was_purged_does_not_remove_the_journal_of_the_next_one() {
    let home = Home::new();
    let first = open(&home.root());
    let session = conversation(&first, "s", 4);
    let second = open(&home.root());
    run(second.delete(session.id())).unwrap();
    run(second.purge(session.id())).unwrap();
    let again = conversation(&second, "s", 4);
    let journal = home.log(again.id()).with_extension("journal");
    let before = fs::read(&journal).unwrap();
    drop((session, first));
    assert_eq!(fs::read(&journal).unwrap(), before);
}

#[test]
fn the_reader_of_the_documentation_reads_it() {
    let home = after_a_power_cut();
    let text = include_str!("../../../docs/format.md");
    let begin = text.find("```python\n").unwrap() + "```python\n".len();
    let program = &text[begin..begin + text[begin..].find("```").unwrap()];
    let mut command = Command::new("python3");
    let output = command.args(["-c", program]).arg(home.root()).arg("s").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let ids: Vec<&str> = printed.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(ids.join(" "), "u1 u2 u3 u4 u5 u6", "{errors}");
}

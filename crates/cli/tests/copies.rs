//! Sessions in two stores: copied, brought up to date, and never mixed up.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use pollster::block_on;
use rethread_store::backend::Expect;
use rethread_store::{Entry, FileBackend, Fork, ForkKind, NewSession, Options, Session, Store};
use rustix::pty::{self, OpenptFlags};
use serde_json::Value;

use crate::kit::{Home, Said, entry, stores_in};

#[test]
fn a_copy_shows_what_its_original_shows_and_goes_on_from_there() {
    let home = Home::new();
    home.conversation("talk", 5);
    let others = stores_in(home.path());
    for other in &others {
        let told = home.run(&["copy", "talk", "--to", other]);
        assert_eq!((told.code, told.err.as_str()), (0, "Copied 6 records and 0 file contents.\n"), "{other}");
        assert_eq!(
            home.answer(&["--store", other, "show", "talk", "--json"]),
            home.answer(&["show", "talk", "--json"])
        );
        assert_eq!(home.run(&["--store", other, "verify"]).code, 0);
        let again = home.run(&["copy", "talk", "--to", other]);
        assert_eq!(again.err, "It is there already, up to its last record.\n", "{other}");
    }
    home.feed(&["append", "talk"], entry(9));
    for other in others {
        let json = home.answer(&["copy", "talk", "--to", &other, "--json"]);
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["records"], 1, "{other}");
        home.feed(&["--store", &other, "append", "talk"], entry(10));
        assert_eq!(home.answer(&["--store", &other, "show", "talk", "--json"]).lines().count(), 7, "{other}");
        // The copy is ahead now, and nothing of it is lost by copying once more.
        assert_eq!(home.run(&["copy", "talk", "--to", &other]).code, 0, "{other}");
        assert_eq!(home.answer(&["--store", &other, "show", "talk", "--json"]).lines().count(), 7, "{other}");
    }
}

#[test]
fn a_copy_is_taken_from_any_store_as_well() {
    let home = Home::new();
    home.conversation("talk", 5);
    for (number, other) in stores_in(home.path()).iter().enumerate() {
        assert_eq!(home.run(&["copy", "talk", "--to", other]).code, 0, "{other}");
        let [copied, synced] =
            ["copied", "synced"].map(|name| format!("file:{}/{name}-{number}", home.path().display()));
        assert_eq!(home.run(&["copy", "talk", "--from", other, "--to", &copied]).code, 0, "{other}");
        assert_eq!(home.run(&["sync", "--from", other, "--to", &synced]).code, 0, "{other}");
        for store in [copied, synced] {
            assert_eq!(
                home.answer(&["--store", &store, "show", "talk", "--json"]),
                home.answer(&["show", "talk", "--json"]),
                "{other}"
            );
        }
    }
}

/// Once, a fork whose parent was not there any more was left out of a copy of the store without a word.
#[test]
fn a_sync_says_which_session_it_leaves_out_because_its_parent_is_missing() {
    let home = Home::new();
    let other = stores_in(home.path()).remove(0);
    home.conversation("talk", 2);
    home.conversation("quiet", 1);
    assert_eq!(home.run(&["fork", "talk", "--id", "fork"]).code, 0);
    fs::remove_dir_all(home.log("talk").parent().unwrap()).unwrap();
    let told = home.run(&["sync", "--to", &other]);
    let warning = "fork was left out: it inherits from session talk, which is not there";
    assert!(told.code == 1 && told.err.contains(warning), "{told:?}");
    assert_eq!(home.answer(&["--store", &other, "show", "quiet", "--json"]).lines().count(), 1);
}

#[test]
fn sessions_that_went_apart_are_both_left_as_they_are() {
    let home = Home::new();
    let other = stores_in(home.path()).remove(0);
    home.conversation("talk", 2);
    home.conversation("quiet", 1);
    assert_eq!(home.run(&["sync", "--to", &other]).code, 0);
    home.feed(&["append", "talk"], entry(7));
    home.feed(&["append", "quiet"], entry(7));
    home.feed(&["--store", &other, "append", "talk"], entry(8));
    let (ours, theirs) = (
        home.answer(&["show", "talk", "--json"]),
        home.answer(&["--store", &other, "show", "talk", "--json"]),
    );
    let told = home.run(&["copy", "talk", "--to", &other]);
    assert_eq!(told.code, 1);
    assert!(told.err.contains("session talk went on differently in the other store"), "{told:?}");
    let told = home.run(&["sync", "--to", &other]);
    assert!(told.code == 1 && told.err.contains("Looked at 2 sessions: copied 1 record"), "{told:?}");
    assert_eq!(home.answer(&["show", "talk", "--json"]), ours);
    assert_eq!(home.answer(&["--store", &other, "show", "talk", "--json"]), theirs);
    assert_eq!(
        home.answer(&["--store", &other, "show", "quiet", "--json"]),
        home.answer(&["show", "quiet", "--json"])
    );
}

#[test]
fn a_fork_comes_with_what_it_inherits() {
    let home = Home::new();
    home.conversation("talk", 4);
    let fork = home.run(&["fork", "talk", "--json"]).out;
    let fork = serde_json::from_str::<Value>(&fork).unwrap()["session_id"].as_str().unwrap().to_owned();
    home.feed(&["append", &fork], entry(9));
    for other in stores_in(home.path()) {
        assert_eq!(home.run(&["copy", &fork, "--to", &other]).code, 0, "{other}");
        assert_eq!(
            home.answer(&["--store", &other, "show", &fork, "--json"]),
            home.answer(&["show", &fork, "--json"]),
            "{other}"
        );
    }
}

/// Once, a copy was the conversation alone, and what its subagents did stayed behind.
#[test]
fn a_copy_comes_with_its_subagents_and_nobody_elses() {
    let home = Home::new();
    let store = Store::new(FileBackend::new(home.store()), Options::default());
    let say = |session: &Session| {
        let said = Entry::parse(entry(1)).unwrap();
        block_on(async { session.append(said).await.unwrap().await.unwrap() });
    };
    let begin = |id: &str| {
        let mut new = NewSession::at("/work").id(id.parse().unwrap());
        new.child = id.starts_with("sub.");
        let session = block_on(store.create(new)).unwrap();
        say(&session);
        session
    };
    let fork = |session: &Session, id: &str, kind: ForkKind| {
        let fork = block_on(session.fork(Fork::of_kind(kind).id(id.parse().unwrap()))).unwrap();
        say(&fork);
        fork
    };
    let talk = begin("talk");
    // Each begun by the one before.
    let agent = fork(&talk, "agent-1", ForkKind::Child);
    fork(&agent, "agent-2", ForkKind::Child);
    fork(&talk, "went-on", ForkKind::Detached);
    fork(&begin("sdk.work.one"), "went-on-too", ForkKind::Detached);
    for part in ["sub.work.one.a", "sub.work.one.b", "sub.work.one-2.a", "sub.rest.one.a"] {
        begin(part);
    }
    store.close().unwrap();
    for other in stores_in(home.path()) {
        for family in [["talk", "agent-1", "agent-2"], ["sdk.work.one", "sub.work.one.a", "sub.work.one.b"]] {
            let told = home.run(&["copy", family[0], "--to", &other]);
            assert_eq!(told.err, "Copied 6 records and 0 file contents.\n", "{other}");
            for id in family {
                let shown = home.answer(&["--store", &other, "show", id, "--json"]);
                assert_eq!(shown, home.answer(&["show", id, "--json"]), "{id} in {other}");
            }
            let again = home.run(&["copy", family[0], "--to", &other]);
            assert_eq!(again.err, "It is there already, up to its last record.\n", "{other}");
        }
        let there = home.answer(&["--store", &other, "list", "--all", "--stored", "--json"]);
        assert_eq!(there.lines().count(), 6, "{there}");
    }
}

#[test]
fn files_can_be_rewound_from_a_copy() {
    let home = Home::new();
    home.conversation("talk", 1);
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    let file = work.join("a.txt");
    fs::write(&file, "before").unwrap();
    let path = file.to_str().unwrap();
    home.answer(&["checkpoint", "talk", "--message", "m-1", "--id", "c1", path]);
    fs::write(&file, "after").unwrap();
    home.answer(&["checkpoint", "talk", "--message", "m-1", "--after", path]);
    for other in stores_in(home.path()) {
        let told = home.run(&["sync", "--to", &other]);
        assert!(told.code == 0 && !told.err.contains(" 0 file contents"), "{told:?}");
        let listed = |store: &[&str]| {
            let words: Vec<&str> = store.iter().copied().chain(["checkpoints", "talk", "--json"]).collect();
            home.answer(&words)
        };
        assert_eq!(listed(&["--store", &other]), listed(&[]), "{other}");
        assert_eq!(home.run(&["--store", &other, "verify"]).code, 0, "{other}");
        let told = home.run(&["--store", &other, "rewind", "talk", "--to", "c1"]);
        assert_eq!((told.code, fs::read_to_string(&file).unwrap().as_str()), (0, "before"), "{told:?}");
        fs::write(&file, "after").unwrap();
    }
}

#[test]
fn a_folder_that_is_elsewhere_now_is_rewound_by_what_was_recorded_where_it_was() {
    let home = Home::new();
    home.conversation("talk", 1);
    let (was, now) = (home.path().join("was"), home.path().join("now"));
    fs::create_dir(&was).unwrap();
    let path = was.join("a.txt").to_str().unwrap().to_owned();
    let root = ["--root", was.to_str().unwrap()];
    fs::write(&path, "before").unwrap();
    home.answer(&[&["checkpoint", "talk", "--message", "m-1", "--id", "c1", &path][..], &root].concat());
    fs::write(&path, "after").unwrap();
    home.answer(&[&["checkpoint", "talk", "--message", "m-1", "--after", &path][..], &root].concat());
    fs::rename(&was, &now).unwrap();
    for other in stores_in(home.path()) {
        assert_eq!(home.run(&["copy", "talk", "--to", &other]).code, 0, "{other}");
        fs::write(now.join("a.txt"), "after").unwrap();
        let rewind = ["--store", &other, "rewind", "talk", "--to", "c1", "--root", now.to_str().unwrap()];
        let told = home.run(&rewind);
        assert_eq!(told.code, 1, "nothing was recorded there: {told:?}");
        let told = home.run(&[&rewind[..], &["--formerly", was.to_str().unwrap()]].concat());
        assert_eq!(told.code, 0, "{other}: {told:?}");
        assert_eq!(fs::read_to_string(now.join("a.txt")).unwrap(), "before", "{other}");
    }
}

#[test]
fn a_sync_that_is_killed_again_and_again_ends_with_the_same() {
    let home = Home::new();
    for number in 0..12 {
        home.conversation(&format!("talk-{number}"), 30);
    }
    for other in stores_in(home.path()) {
        let mut killed = 0;
        for milliseconds in std::iter::successors(Some(1), |last| Some(last + last / 3 + 1)) {
            let mut sync = home.start(&["sync", "--to", &other]);
            std::thread::sleep(Duration::from_millis(milliseconds));
            sync.kill().unwrap();
            if sync.wait().unwrap().success() {
                break;
            }
            killed += 1;
        }
        assert!(killed > 0, "{other}");
        assert_eq!(home.run(&["--store", &other, "verify"]).code, 0, "{other}");
        for number in 0..12 {
            let talk = format!("talk-{number}");
            let show = |store: &[&str]| home.answer(&[store, &["show", &talk, "--json"]].concat());
            assert_eq!(show(&["--store", &other]), show(&[]), "{other}");
        }
        let again = home.run(&["sync", "--to", &other]);
        assert_eq!(again.err, "Looked at 12 sessions: nothing was new.\n", "{other}");
    }
}

/// Once, this was only seen by its end, which a sync that begins from zero each time comes to as well.
#[test]
fn a_sync_that_was_killed_copies_only_what_is_not_there_yet() {
    let home = Home::new();
    for number in 0..12 {
        home.conversation(&format!("talk-{number:02}"), 30);
    }
    let records_in = |line: &str| serde_json::from_str::<Value>(line).unwrap()["records"].as_u64().unwrap();
    for other in stores_in(home.path()) {
        let there = || {
            let said = home.run(&["--store", &other, "verify", "--json"]);
            said.out.lines().map(records_in).sum::<u64>()
        };
        let mut before = 0;
        for _ in 0..3 {
            let mut sync = home.start(&["sync", "--to", &other, "--json"]);
            let mut line = String::new();
            BufReader::new(sync.stdout.take().unwrap()).read_line(&mut line).unwrap();
            sync.kill().unwrap();
            sync.wait().unwrap();
            let now = there();
            assert!(
                now >= before + records_in(&line) && records_in(&line) > 0,
                "{other}: {before}, {now}, {line}"
            );
            before = now;
        }
        let rest = home.run(&["sync", "--to", &other, "--json"]);
        let copied: u64 = rest.out.lines().map(records_in).sum();
        assert_eq!((rest.code, before + copied, there()), (0, 12 * 31, 12 * 31), "{other}: {rest:?}");
    }
}

/// Runs the program with a terminal for what it says. Returns its answer and what the terminal was sent.
fn at_a_terminal(home: &Home, words: &[&str]) -> (String, String) {
    let terminal = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&terminal).unwrap();
    pty::unlockpt(&terminal).unwrap();
    let path = pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let ours = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    // The last one that has it open is the program, so that its end is the end of what there is to read.
    let child = home.command(words).stderr(ours).spawn().unwrap();
    let mut sent = Vec::new();
    // Linux says EIO for that.
    let _ = fs::File::from(terminal).read_to_end(&mut sent);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(sent).unwrap())
}

#[test]
fn a_sync_shows_a_bar_that_grows_at_a_terminal_and_only_there() {
    const SESSIONS: usize = 300;
    // From memory to a disk, which takes its time.
    let (home, disk) = (Home::in_memory(), tempfile::tempdir().unwrap());
    let store = Store::new(FileBackend::new(home.store()), Options::default());
    for number in 0..SESSIONS {
        let id = format!("talk-{number:03}").parse().unwrap();
        let session = block_on(store.create(NewSession::default().id(id))).unwrap();
        session.append_and_wait(Entry::parse(entry(1).trim_end().to_owned()).unwrap()).unwrap();
    }
    store.close().unwrap();
    let (answer, sent) = at_a_terminal(&home, &["sync", "--to", disk.path().to_str().unwrap()]);
    assert_eq!(answer, "");
    // Each takes the place of the one before, and nothing of the last one stays.
    let (bars, end) = sent.rsplit_once("\r\x1b[K").unwrap();
    assert_eq!(end, "Looked at 300 sessions: copied 600 records and 0 file contents of 300 sessions.\r\n");
    let bars: Vec<(usize, usize, usize)> = bars
        .split("\r\x1b[K")
        .skip(1)
        .map(|shown| {
            let (bar, words) = shown.strip_prefix('[').and_then(|rest| rest.split_once("] ")).unwrap();
            assert!(bar.len() == 20 && bar.trim_end().bytes().all(|byte| byte == b'='), "{shown:?}");
            let words: Vec<&str> = words.split(' ').collect();
            let [records, "records", "copied,", "session", session, "of", "300"] = words[..] else {
                panic!("{shown:?}")
            };
            (bar.trim_end().len(), records.parse().unwrap(), session.parse().unwrap())
        })
        .collect();
    assert!(bars.len() > 1, "{sent:?}");
    assert!(bars.is_sorted() && bars.first() < bars.last(), "{bars:?}");
    for (bar, records, session) in bars {
        assert_eq!(bar, 20 * (session - 1) / SESSIONS, "{sent:?}");
        assert!((2 * (session - 1)..=2 * session).contains(&records), "{sent:?}");
    }
    let said = home.run(&["sync", "--to", "told"]);
    assert_eq!(said.err, end.replace("\r\n", "\n"));
}

#[test]
fn a_sync_brings_memories_of_projects_along_and_never_replaces_one() {
    let home = Home::new();
    let remember = |folder: &std::path::Path, text: &str| {
        let store = Store::new(FileBackend::new(folder), Options::default());
        block_on(store.set_project_memory("/work".as_ref(), text, Expect::Any)).unwrap();
        store.close().unwrap();
    };
    remember(&home.store(), "it is built with make");
    let there = |folder: &std::path::Path| {
        let store = Store::new(FileBackend::new(folder), Options::default());
        block_on(store.project_memory("/work".as_ref())).unwrap().unwrap().text
    };
    let other = home.path().join("other");
    let told = home.run(&["sync", "--to", other.to_str().unwrap()]);
    assert_eq!(told, Said::told("Looked at 0 sessions: copied 1 memory.\n"));
    assert_eq!(there(&other), "it is built with make");
    remember(&other, "it is built with just");
    let told = home.run(&["sync", "--to", other.to_str().unwrap()]);
    assert!(told.code == 1 && told.err.contains("both have a memory of /work, and not the same"), "{told:?}");
    assert_eq!(there(&other), "it is built with just");
}

#[test]
fn files_recorded_in_a_shared_store_are_rewound_on_another_machine_whose_folder_is_elsewhere() {
    let encrypted = Home::of_every_kind().into_iter().map(Home::encrypted);
    for one in Home::of_every_kind().into_iter().chain(encrypted) {
        // Another home that has the project somewhere else, and nothing but the same store.
        let (other, store) = (one.twin(), one.store_url());
        one.conversation("talk", 1);
        let [was, now] = [&one, &other].map(|home| {
            let folder = home.path().join("project");
            fs::create_dir(&folder).unwrap();
            folder
        });
        let path = was.join("a.txt").to_str().unwrap().to_owned();
        let root = ["--root", was.to_str().unwrap(), &path];
        fs::write(&path, "before").unwrap();
        one.answer(&[&["checkpoint", "talk", "--message", "m-1", "--id", "c1"][..], &root].concat());
        fs::write(&path, "after").unwrap();
        one.answer(&[&["checkpoint", "talk", "--message", "m-1", "--after"][..], &root].concat());
        fs::write(now.join("a.txt"), "after").unwrap();
        let words = ["rewind", "talk", "--to", "c1", "--root", now.to_str().unwrap()];
        let told = other.run(&[&words[..], &["--formerly", was.to_str().unwrap()]].concat());
        assert_eq!(told.code, 0, "{store}: {told:?}");
        let texts = [&was, &now].map(|folder| fs::read_to_string(folder.join("a.txt")).unwrap());
        assert_eq!(texts, ["after", "before"], "{store}");
        assert_eq!(one.run(&["verify"]).code, 0, "{store}");
    }
}

#[test]
fn nothing_is_said_to_be_copied_where_nothing_stays() {
    let home = Home::new();
    home.conversation("s", 2);
    for place in ["memory:", "off:"] {
        for words in [&["copy", "s", "--to", place][..], &["sync", "--to", place]] {
            let told = home.run(words);
            assert_eq!((told.code, &*told.out), (2, ""), "{words:?} {told:?}");
            assert!(told.err.contains("is kept"), "{words:?} {told:?}");
        }
    }
}

#[test]
fn a_store_is_not_copied_into_itself() {
    let home = Home::new();
    home.conversation("talk", 1);
    let told = home.run(&["sync", "--to", home.store().to_str().unwrap()]);
    assert_eq!(told.code, 2);
    assert!(told.err.contains("both stores are the same"), "{told:?}");
}

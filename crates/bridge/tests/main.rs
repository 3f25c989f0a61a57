//! A session in its two homes.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use pollster::block_on;
use rethread_bridge::{Error, Outcome, Shadow, bring_in, write_out};
use rethread_store::{Branched, Entry, MemoryBackend, NewSession, Options, Session as Stored, Store};
use rethread_transcripts::{Chain, ClaudeFolder, ListOptions, Session, Transcript};
use serde_json::json;
use tempfile::TempDir;

const ID: &str = "55555555-5555-4555-8555-555555555555";

/// Claude Code's folder, with one session in it.
struct Home {
    folder: TempDir,
    claude: ClaudeFolder,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let claude = ClaudeFolder::new(folder.path().join("claude"));
        Self { folder, claude }
    }

    fn cwd(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn path(&self) -> PathBuf {
        let name = rethread_transcripts::folder_name(&self.cwd().to_string_lossy());
        self.claude.projects().join(name).join(format!("{ID}.jsonl"))
    }

    /// Adds an entry after another one.
    fn says(&self, number: usize, after: Option<usize>) {
        self.says_as(uuid, number, after);
    }

    /// The same, with ids of any form.
    fn says_as(&self, uuid: impl Fn(usize) -> String, number: usize, after: Option<usize>) {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let entry = json!({
            "parentUuid": after.map(&uuid), "isSidechain": false, "type": role, "uuid": uuid(number), "sessionId": ID,
            "message": { "role": role, "content": format!("Said {number}"), "x": 1e3 }, "cwd": self.cwd(),
            "timestamp": format!("2026-02-09T10:{:02}:{:02}.000Z", number / 60, number % 60),
        });
        // Bytes that another writer would have put otherwise, and some that no store takes.
        let refused = if number % 11 == 9 { "{\r" } else { "{" };
        self.add(&entry.to_string().replace("1000.0", "1e3").replacen('{', refused, 1));
    }

    fn add(&self, line: &str) {
        let path = self.path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn session(&self) -> Session {
        self.claude.list(&ListOptions::default()).unwrap().sessions.remove(0)
    }
}

fn uuid(number: usize) -> String {
    format!("aaaaaaaa-0000-4000-8000-{number:012}")
}

/// A store takes no id with a blank.
fn odd_uuid(number: usize) -> String {
    if number % 13 == 5 { format!("not an id {number}") } else { uuid(number) }
}

fn store() -> Store {
    Store::new(MemoryBackend::default(), Options::default())
}

/// The entries of a conversation that a store takes.
fn accepted(transcript: &Transcript, chain: &Chain) -> Vec<String> {
    let (mut reader, mut accepted) = (transcript.read(chain), Vec::new());
    while let Some(entry) = reader.next().transpose().unwrap() {
        accepted.extend(Entry::parse(entry.raw().to_vec()).map(|entry| entry.as_str().to_owned()));
    }
    accepted
}

fn conversation(stored: &Stored) -> Vec<String> {
    let history = block_on(stored.messages()).unwrap();
    history.entries().map(|entry| entry.as_str().to_owned()).collect()
}

/// Every entry of every branch, after the one that it follows.
fn everything(stored: &Stored) -> Vec<(Option<String>, String)> {
    let all = block_on(stored.all_branches()).unwrap();
    let text = |entry: &Entry| entry.as_str().to_owned();
    let texts: HashMap<_, _> = all.iter().map(|it| (it.record.entry.id(), text(&it.record.entry))).collect();
    let parent = |it: &Branched| it.parent.as_ref().map(|parent| texts[parent].clone());
    let mut all: Vec<_> = all.iter().map(|it| (parent(it), text(&it.record.entry))).collect();
    all.sort();
    all
}

#[test]
fn a_shadow_comes_to_the_same_as_a_copy_of_the_whole_wherever_it_looks_on_the_way() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let home = Home::new();
        home.says(0, None);
        let store = store();
        let stored = block_on(store.create(NewSession::at(home.cwd()).id(ID.parse().unwrap()))).unwrap();
        let mut shadow = block_on(Shadow::begin(&home.session(), stored.clone())).unwrap();
        for number in 1..40 {
            let after = match random.u8(..) {
                0..20 => random.usize(..number),
                _ => number - 1,
            };
            home.says_as(odd_uuid, number, Some(after));
            if random.bool() {
                block_on(shadow.go_on()).unwrap();
            }
        }
        block_on(shadow.go_on()).unwrap();
        assert!(!block_on(shadow.go_on()).unwrap(), "seed {seed}: there is nothing new");
        let whole = self::store();
        let brought = block_on(bring_in(&home.session(), &whole)).unwrap();
        assert_eq!(conversation(&stored), conversation(&brought.stored), "seed {seed}");
        // A leaf that was passed over between two looks is on no branch that anybody resumed; nothing is there twice.
        let (all, of_whole) = (everything(&stored), everything(&brought.stored));
        assert!(all.iter().all(|entry| of_whole.contains(entry)), "seed {seed}");
        assert!(all.windows(2).all(|two| two[0] != two[1]), "seed {seed}");
    }
}

#[test]
fn every_branch_is_brought_in_once_however_often_somebody_went_back() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (home, store) = (Home::new(), store());
        home.says(0, None);
        for number in 1..120 {
            let after = match random.u8(..) {
                0..60 => random.usize(..number),
                _ => number - 1,
            };
            home.says_as(odd_uuid, number, Some(after));
            if random.u8(..) < 8 {
                block_on(bring_in(&home.session(), &store)).unwrap();
            }
        }
        let stored = block_on(bring_in(&home.session(), &store)).unwrap().stored;
        let transcript = Transcript::open(home.path()).unwrap();
        let mut expected = Vec::new();
        for chain in transcript.branches() {
            let accepted = accepted(&transcript, &chain);
            let after = [None].into_iter().chain(accepted.iter().cloned().map(Some));
            expected.extend(after.zip(accepted.iter().cloned()));
        }
        expected.sort();
        expected.dedup();
        assert_eq!(everything(&stored), expected, "seed {seed}");
        assert_eq!(conversation(&stored), accepted(&transcript, &transcript.active()), "seed {seed}");
    }
}

/// It was read from the beginning for each of its branches once, and a file of 50 MB came to hundreds of gigabytes.
#[cfg(target_os = "linux")]
#[test]
fn what_is_read_of_a_transcript_does_not_grow_with_its_branches() {
    let (home, store) = (Home::new(), store());
    (0..1200).for_each(|number| home.says(number, (number - number / 4 % 2 * 2).checked_sub(1)));
    let read = || {
        let io = fs::read_to_string("/proc/thread-self/io").unwrap();
        io.split_once("rchar: ").unwrap().1.lines().next().unwrap().parse::<u64>().unwrap()
    };
    let (session, before) = (home.session(), read());
    block_on(bring_in(&session, &store)).unwrap();
    let times = (read() - before) / session.size;
    assert!(times < 8, "{times} times");
}

#[test]
fn a_transcript_that_was_replaced_is_taken_anew() {
    let home = Home::new();
    (0..4).for_each(|number| home.says(number, number.checked_sub(1)));
    let store = store();
    let stored = block_on(store.create(NewSession::at(home.cwd()).id(ID.parse().unwrap()))).unwrap();
    let mut shadow = block_on(Shadow::begin(&home.session(), stored.clone())).unwrap();
    fs::remove_file(home.path()).unwrap();
    (0..2).for_each(|number| home.says(number, number.checked_sub(1)));
    home.says(7, Some(1));
    assert!(block_on(shadow.go_on()).unwrap());
    let said = conversation(&stored);
    assert!(said.len() == 3 && said[2].contains("Said 7"), "{said:?}");
}

#[test]
fn a_session_goes_to_another_home_and_back_and_nothing_of_it_is_there_twice() {
    let (here, there, store) = (Home::new(), Home::new(), store());
    (0..4).for_each(|number| here.says(number, number.checked_sub(1)));
    let stored = block_on(bring_in(&here.session(), &store)).unwrap().stored;
    let written = block_on(write_out(&stored, &there.claude, &there.cwd())).unwrap();
    assert_eq!(written, Outcome::Written(there.path()));
    let lines = |home: &Home| fs::read_to_string(home.path()).unwrap();
    assert_eq!(lines(&here), lines(&there));
    assert!(lines(&there).contains("1e3"));

    // It goes on there, and comes back.
    (4..6).for_each(|number| there.says(number, number.checked_sub(1)));
    block_on(bring_in(&there.session(), &store)).unwrap();
    let before = everything(&stored);
    assert_eq!((before.len(), conversation(&stored).len()), (6, 6));
    let extended = block_on(write_out(&stored, &here.claude, &here.cwd())).unwrap();
    assert_eq!(extended, Outcome::Extended(here.path()));
    assert_eq!(lines(&here).lines().count(), 6);
    block_on(bring_in(&here.session(), &store)).unwrap();
    assert_eq!(everything(&stored), before);
    assert_eq!(block_on(write_out(&stored, &here.claude, &here.cwd())).unwrap(), Outcome::Same(here.path()));
}

#[test]
fn a_session_that_went_on_in_both_homes_is_left_alone_in_both() {
    let (here, there, store) = (Home::new(), Home::new(), store());
    (0..4).for_each(|number| here.says(number, number.checked_sub(1)));
    let stored = block_on(bring_in(&here.session(), &store)).unwrap().stored;
    block_on(write_out(&stored, &there.claude, &there.cwd())).unwrap();
    there.says(4, Some(3));
    block_on(bring_in(&there.session(), &store)).unwrap();
    here.says(14, Some(3));
    let before = fs::read(here.path()).unwrap();
    let refused = block_on(write_out(&stored, &here.claude, &here.cwd()));
    assert!(matches!(refused, Err(Error::Apart { common: 4, .. })), "{refused:?}");
    assert_eq!(fs::read(here.path()).unwrap(), before);
}

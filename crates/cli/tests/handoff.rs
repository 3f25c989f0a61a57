//! Sessions of Claude Code's own that go from one machine to another and back.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use rethread_testkit::{Home as RealHome, PROBE, Prompt};
use serde_json::{Value, json};

use crate::kit::{Home, cannot, stores_in};

const ID: &str = "44444444-4444-4444-8444-444444444444";

/// A machine: what Rethread has there, what Claude Code has, and the project.
struct Machine {
    home: Home,
    claude: PathBuf,
    project: PathBuf,
}

impl Machine {
    fn new(claude: PathBuf, project: PathBuf) -> Self {
        let mut home = Home::new();
        home.set([("CLAUDE_CONFIG_DIR", claude.to_str().unwrap())]);
        Self { home, claude, project: project.canonicalize().unwrap() }
    }

    /// One without Claude Code, and with a session that looks like its own.
    fn plain(folder: &Path, name: &str) -> Self {
        let (claude, project) = (folder.join(name).join(".claude"), folder.join(name).join("project"));
        fs::create_dir_all(&project).unwrap();
        Self::new(claude, project)
    }

    fn transcript(&self) -> PathBuf {
        let mut folders = fs::read_dir(self.claude.join("projects")).unwrap().flatten();
        folders.find_map(|it| Some(it.path().join(format!("{ID}.jsonl"))).filter(|it| it.is_file())).unwrap()
    }

    fn take(&self, from: &str) -> crate::kit::Said {
        self.home.run(&["take", "4444", "--from", from, "--cwd", self.project.to_str().unwrap()])
    }

    /// Adds a turn to the transcript, which is begun if need be.
    fn says(&self, number: usize) {
        let folder = self
            .claude
            .join("projects")
            .join(rethread_transcripts::folder_name(self.project.to_str().unwrap()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{ID}.jsonl"));
        let mut text = fs::read_to_string(&path).unwrap_or_default();
        let uuid = |number: usize| format!("aaaaaaaa-0000-4000-8000-{number:012}");
        let entry = json!({
            "parentUuid": (number > 0).then(|| uuid(number - 1)), "isSidechain": false, "type": "user",
            "message": { "role": "user", "content": format!("Said {number}") }, "uuid": uuid(number),
            "timestamp": "2026-02-09T10:00:00.000Z", "sessionId": ID, "cwd": self.project,
        });
        text += &format!("{entry}\n");
        fs::write(path, text).unwrap();
    }

    fn shown(&self) -> usize {
        self.home.answer(&["show", ID, "--json"]).lines().count()
    }
}

#[test]
fn a_hint_names_the_store_that_was_looked_into_and_how_to_copy_what_claude_code_has() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::plain(folder.path(), "one");
    machine.says(0);
    let shared = format!("sqlite:{}/shared.db", machine.home.path().display());
    let said = machine.home.run(&["take", "9999", "--from", &shared]);
    let hint = "`rethread --store sqlite:HOME/shared.db list --all` shows what there is";
    assert_eq!((said.code, said.err), (1, format!("error: no session 9999\nhint: {hint}\n")));
    let said = machine.home.run(&["copy", "4444", "--to", &shared]);
    assert_eq!(said.code, 1);
    for part in ["Claude Code's own", "handoff 44444444 --to URL`", "import --claude 44444444`"] {
        assert!(said.err.contains(part), "{part}: {said:?}");
    }
}

#[test]
fn a_session_is_handed_over_resumed_by_the_real_cli_elsewhere_and_handed_back() {
    let folder = tempfile::tempdir().unwrap();
    for shared in stores_in(folder.path()) {
        let (Some(here), Some(there)) = (RealHome::new(), RealHome::new()) else {
            return cannot("Claude Code cannot be installed");
        };
        let one = Machine::new(here.config(), here.project());
        let other = Machine::new(there.config(), there.project());
        let made = one.project.join("made.txt");
        let prompt = Prompt::new("Make it").calls("Write", json!({ "file_path": made, "content": "made\n" }));
        here.claude().session(ID).bypassing().asked(prompt.says("It is made."));

        // What a keeper would have recorded around the shell's work.
        one.home.run(&["import", "--claude", ID]);
        let message = first_prompt(&one);
        let changed = one.project.join("changed.txt");
        let checkpoint = |machine: &Machine, more: &[&str]| {
            let changed = machine.project.join("changed.txt");
            let words = ["checkpoint", ID, "--message", &message, changed.to_str().unwrap()];
            assert_eq!(machine.home.run(&[&words, more].concat()).code, 0);
        };
        fs::write(&changed, "before\n").unwrap();
        checkpoint(&one, &[]);
        fs::write(&changed, "after\n").unwrap();
        checkpoint(&one, &["--after"]);

        let said = one.home.run(&["handoff", ID, "--to", &shared]);
        assert_eq!(said.code, 0, "{shared}: {}", said.err);
        // The project goes its own way.
        for name in ["made.txt", "changed.txt"] {
            fs::copy(one.project.join(name), other.project.join(name)).unwrap();
        }
        let taken = other.take(&shared);
        assert_eq!(taken.code, 0, "{shared}: {}", taken.err);
        let listed = other.home.answer(&["list", "--native", "--json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["cwd"], json!(other.project), "{shared}");
        let sent = serde_json::to_string(&there.claude().messages_on_resume(ID, PROBE)).unwrap();
        for part in ["Make it", "It is made.", PROBE] {
            assert!(sent.contains(part), "{shared}: {part} is not in {sent}");
        }

        // The files are taken back there, and nothing is here.
        let rewound = other.home.run(&["rewind", ID, "--to", &message]);
        assert_eq!(rewound.code, 0, "{shared}: {}", rewound.err);
        let text = |machine: &Machine| fs::read_to_string(machine.project.join("changed.txt")).unwrap();
        assert_eq!((text(&other).as_str(), text(&one).as_str()), ("before\n", "after\n"), "{shared}");

        // And back: with what was said there, and with what it did to files.
        let said = other.home.run(&["handoff", ID, "--to", &shared]);
        assert_eq!(said.code, 0, "{shared}: {}", said.err);
        assert_eq!(one.take(&shared).code, 0, "{shared}");
        let sent = serde_json::to_string(&here.claude().messages_on_resume(ID, "And back?")).unwrap();
        for part in ["It is made.", PROBE, "And back?"] {
            assert!(sent.contains(part), "{shared}: {part} is not in {sent}");
        }
        let receipts = one.home.answer(&["checkpoints", &format!("stored:{ID}"), "--json"]);
        assert!(receipts.contains("\"what\":\"rewind\""), "{shared}: {receipts}");
    }
}

/// Stores that machines can have in common, and nothing else.
fn places_across_hosts(folder: &Path) -> Vec<String> {
    stores_in(folder).into_iter().filter(|place| place.contains("://")).collect()
}

/// Two machines whose only store is the same; the project is at the same path on both, or it is not.
fn on_one_store(folder: &Path, place: &str, projects: [&str; 2]) -> [Machine; 2] {
    let made = |name: &str, project: &str| {
        let project = folder.join(project);
        fs::create_dir_all(&project).unwrap();
        let mut machine = Machine::new(folder.join(name).join(".claude"), project);
        machine.home.add(vec![("RETHREAD_STORE".into(), place.into())]);
        machine
    };
    [made("one", projects[0]), made("other", projects[1])]
}

#[test]
fn a_session_goes_back_and_forth_through_the_one_store_that_machines_have_with_the_real_cli() {
    let folder = tempfile::tempdir().unwrap();
    for shared in places_across_hosts(folder.path()) {
        let (Some(here), Some(there)) = (RealHome::new(), RealHome::new()) else {
            return cannot("Claude Code cannot be installed");
        };
        let homes = [&here, &there];
        let machines = homes.map(|home| {
            let mut machine = Machine::new(home.config(), home.project());
            machine.home.add(vec![("RETHREAD_STORE".into(), shared.clone())]);
            machine
        });
        let prompt = |text: &str, says: &str| Prompt::new(text).says(says);
        here.claude().session(ID).bypassing().asked(prompt("Question 0", "Answer 0"));
        for turn in 1..5 {
            let (from, to) = (&machines[(turn + 1) % 2], &machines[turn % 2]);
            // Named by whoever has it: Claude Code keeps that in a file which it writes anew.
            assert_eq!(from.home.run(&["rename", ID, &format!("Name {turn}")]).code, 0);
            let said = from.home.run(&["handoff", "4444"]);
            assert_eq!(said.code, 0, "{shared}, turn {turn}: {}", said.err);
            assert!(said.err.contains(&format!("`rethread take {ID}`")), "{}", said.err);
            let taken = to.home.run(&["take", "4444", "--cwd", to.project.to_str().unwrap()]);
            assert_eq!(taken.code, 0, "{shared}, turn {turn}: {}", taken.err);
            let listed = to.home.answer(&["list", "--native", "--json"]);
            let listed: Value = serde_json::from_str(&listed).unwrap();
            let is = (&listed["cwd"], &listed["name"]);
            assert_eq!(is, (&json!(to.project), &json!(format!("Name {turn}"))), "{shared}");
            let asks = prompt(&format!("Question {turn}"), &format!("Answer {turn}"));
            homes[turn % 2].claude().resume(ID).bypassing().asked(asks);
        }
        let sent = serde_json::to_string(&here.claude().messages_on_resume(ID, PROBE)).unwrap();
        for turn in 0..5 {
            for part in [format!("\"Question {turn} "), format!("\"text\":\"Answer {turn}\"")] {
                assert_eq!(sent.matches(&part).count(), 1, "{shared}: {part} in {sent}");
            }
        }
    }
}

#[test]
fn through_one_store_a_file_that_was_rewritten_there_is_rewritten_here_and_never_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    for (number, shared) in places_across_hosts(folder.path()).iter().enumerate() {
        let folder = folder.path().join(number.to_string());
        let [one, other] = on_one_store(&folder, shared, ["project", "project"]);
        let path = |machine: &Machine, name: &str| machine.transcript().with_extension("").join(name);
        let write = |machine: &Machine, name: &str, text: &str| {
            fs::create_dir_all(path(machine, name).parent().unwrap()).unwrap();
            fs::write(path(machine, name), text).unwrap();
        };
        let read = |machine: &Machine, name: &str| fs::read_to_string(path(machine, name)).unwrap();
        let (title, result) = ("custom-title.json", "tool-results/1.txt");
        let ran = |machine: &Machine, verb: &str| machine.home.run(&[verb, ID]);
        one.says(0);
        write(&one, title, "first");
        assert_eq!((ran(&one, "handoff").code, ran(&other, "take").code), (0, 0), "{shared}");
        write(&other, title, "second");
        write(&other, result, "there");
        assert_eq!(ran(&other, "handoff").code, 0, "{shared}");

        // The transcript is as it was; nevertheless what is here is older.
        let said = ran(&one, "handoff");
        assert!(said.code == 1 && said.err.contains("since it was last here"), "{shared}: {said:?}");
        assert!(said.err.contains("`rethread take 4") && !said.err.contains("--from"), "{said:?}");
        let said = ran(&one, "take");
        assert_eq!((said.code, read(&one, title).as_str()), (0, "second"), "{shared}: {said:?}");
        assert_eq!(read(&one, result), "there", "{shared}");

        // Named as it was before, and said so in the transcript: that is newer, not older.
        one.says(1);
        write(&one, title, "first");
        let said = ran(&one, "handoff");
        assert_eq!(said.code, 0, "{shared}: {said:?}");
        let said = ran(&other, "take");
        assert_eq!((said.code, read(&other, title).as_str()), (0, "first"), "{shared}: {said:?}");
        assert_eq!(other.shown(), 2, "{shared}");
    }
}

#[test]
fn what_went_on_in_two_places_is_not_written_over_through_one_store_either() {
    let folder = tempfile::tempdir().unwrap();
    for (number, shared) in places_across_hosts(folder.path()).iter().enumerate() {
        let folder = folder.path().join(number.to_string());
        let [one, other] = on_one_store(&folder, shared, ["one/project", "other/project"]);
        let take =
            |machine: &Machine| machine.home.run(&["take", ID, "--cwd", machine.project.to_str().unwrap()]);
        let hand_over = |machine: &Machine| machine.home.run(&["handoff", ID]);
        one.says(0);
        assert_eq!((hand_over(&one).code, take(&other).code), (0, 0), "{shared}");
        // Twice in turn, and once more with nothing new.
        one.says(1);
        assert_eq!((hand_over(&one).code, hand_over(&one).code), (0, 0), "{shared}");
        let said = hand_over(&other);
        assert!(said.code == 1 && said.err.contains("since it was last here"), "{shared}: {said:?}");
        assert_eq!((take(&other).code, take(&other).code, other.shown()), (0, 0, 2), "{shared}");
        one.says(2);
        other.says(3);
        let (ours, theirs) = (fs::read(one.transcript()).unwrap(), fs::read(other.transcript()).unwrap());
        assert_eq!(hand_over(&one).code, 0, "{shared}");
        for _ in 0..2 {
            let said = hand_over(&other);
            assert!(said.code == 1 && said.err.contains("since it was last here"), "{shared}: {said:?}");
            let said = take(&other);
            assert!(said.code == 1 && said.err.contains("went on both here and there"), "{shared}: {said:?}");
        }
        assert_eq!(
            (fs::read(one.transcript()).unwrap(), fs::read(other.transcript()).unwrap()),
            (ours, theirs)
        );
    }
}

fn first_prompt(machine: &Machine) -> String {
    let shown = machine.home.answer(&["show", ID, "--json"]);
    let first: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    first["uuid"].as_str().unwrap().to_owned()
}

#[test]
fn what_was_handed_over_again_is_taken_again_and_only_what_is_new_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    let beside = one.claude.join("file-history").join(ID);
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("abc@v1"), "an older one").unwrap();
    one.says(0);
    let hand_over = || {
        let json = one.home.answer(&["handoff", ID, "--to", &shared, "--json"]);
        serde_json::from_str::<Value>(&json).unwrap()
    };
    let first = hand_over();
    assert_eq!((&first["files"], &first["contents"]), (&json!(2), &json!(2)));
    assert_eq!(hand_over()["records"], json!(0));
    assert_eq!(other.take(&shared).code, 0);
    assert_eq!(fs::read(other.claude.join("file-history").join(ID).join("abc@v1")).unwrap(), b"an older one");
    let taken = fs::read_to_string(other.transcript()).unwrap();
    let original = fs::read_to_string(one.transcript()).unwrap();
    assert!(taken.starts_with(&original), "byte for byte, and where it is now behind it");
    // It goes on where it came from, and was only looked at where it was taken to.
    one.says(1);
    assert_eq!(hand_over()["contents"], json!(1));
    assert_eq!((other.take(&shared).code, other.shown()), (0, 2));
    assert_eq!((other.take(&shared).code, other.shown()), (0, 2));
}

#[test]
fn a_session_is_handed_over_and_back_through_a_store_that_is_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("master.key");
    let key = key.to_str().unwrap();
    for (number, place) in stores_in(folder.path()).into_iter().enumerate() {
        let shared = format!("encrypted+{place}");
        let machine = |name: &str| Machine::plain(folder.path(), &format!("{name}-{number}"));
        let (one, other) = (machine("one"), machine("other"));
        if number == 0 {
            assert_eq!(one.home.run(&["key", key]).code, 0);
        }
        let run = |machine: &Machine, words: &[&str]| {
            let said = machine.home.run(&[words, &["--key-file", key]].concat());
            assert_eq!(said.code, 0, "{shared}: {said:?}");
        };
        let cwd = |machine: &Machine| machine.project.to_str().unwrap().to_owned();
        let file = |machine: &Machine| machine.project.join("a.txt");
        one.says(0);
        assert_eq!(one.home.run(&["import", "--claude", ID]).code, 0);
        let checkpoint = |more: &[&str]| {
            let path = file(&one).to_str().unwrap().to_owned();
            let words = ["checkpoint", ID, "--message", "aaaaaaaa-0000-4000-8000-000000000000", &path];
            assert_eq!(one.home.run(&[&words, more].concat()).code, 0, "{shared}");
        };
        fs::write(file(&one), "before").unwrap();
        checkpoint(&["--id", "c1"]);
        fs::write(file(&one), "after").unwrap();
        checkpoint(&["--after"]);
        run(&one, &["handoff", ID, "--to", &shared]);
        fs::write(file(&other), "after").unwrap();
        run(&other, &["take", ID, "--from", &shared, "--cwd", &cwd(&other)]);
        assert!(fs::read(other.transcript()).unwrap().starts_with(&fs::read(one.transcript()).unwrap()));
        assert_eq!(other.home.run(&["rewind", ID, "--to", "c1"]).code, 0, "{shared}");
        assert_eq!(fs::read_to_string(file(&other)).unwrap(), "before", "{shared}");
        other.says(1);
        run(&other, &["handoff", ID, "--to", &shared]);
        run(&one, &["take", ID, "--from", &shared, "--cwd", &cwd(&one)]);
        assert_eq!((one.shown(), fs::read_to_string(file(&one)).unwrap().as_str()), (2, "after"), "{shared}");
        // Whoever has the store and not the key has nothing.
        let plainly = other.home.run(&["take", ID, "--from", &place, "--cwd", &cwd(&other)]);
        assert!(plainly.code == 1 && plainly.err.contains("the store is encrypted"), "{plainly:?}");
    }
}

#[test]
fn what_went_on_in_two_places_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    let hand_over = |machine: &Machine| machine.home.run(&["handoff", ID, "--to", &shared]);
    one.says(0);
    assert_eq!((hand_over(&one).code, other.take(&shared).code), (0, 0));
    one.says(1);
    other.says(2);
    let (ours, theirs) = (fs::read(one.transcript()).unwrap(), fs::read(other.transcript()).unwrap());
    assert_eq!(hand_over(&one).code, 0);
    let stored = |machine: &Machine| machine.home.answer(&["show", &format!("stored:{ID}"), "--json"]);
    let before = stored(&other);
    // Neither is possible, and trying the one does not make the other possible.
    for _ in 0..2 {
        let said = hand_over(&other);
        assert!(said.code == 1 && said.err.contains("since it was last here"), "{said:?}");
        let said = other.take(&shared);
        assert!(said.code == 1 && said.err.contains("went on both here and there"), "{said:?}");
    }
    assert_eq!(stored(&other), before);
    assert_eq!((fs::read(one.transcript()).unwrap(), fs::read(other.transcript()).unwrap()), (ours, theirs));
    let third = Machine::plain(folder.path(), "third");
    assert_eq!((third.take(&shared).code, third.shown()), (0, 2));
    // What is only here is not lost to what was handed over before.
    one.says(3);
    let ours = fs::read(one.transcript()).unwrap();
    let said = one.take(&shared);
    assert!(said.code == 1 && said.err.contains("has more here than was handed over"), "{said:?}");
    assert_eq!(fs::read(one.transcript()).unwrap(), ours);
}

#[test]
fn whoever_took_a_session_and_did_nothing_hands_nothing_back_that_would_be_in_anybodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    let hand_over = |machine: &Machine| machine.home.run(&["handoff", ID, "--to", &shared]).code;
    one.says(0);
    assert_eq!((hand_over(&one), other.take(&shared).code, hand_over(&other)), (0, 0, 0));
    // The first one went on without taking it back.
    one.says(1);
    let said = one.home.run(&["handoff", ID, "--to", &shared]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!((other.take(&shared).code, other.shown()), (0, 2));
    // And the other way round: whoever did something hands that back.
    other.says(2);
    assert_eq!((hand_over(&other), one.take(&shared).code, one.shown()), (0, 0, 3));
    // Nothing is lost where both did.
    one.says(3);
    other.says(4);
    assert_eq!((hand_over(&one), hand_over(&other), other.take(&shared).code), (0, 1, 1));
}

#[test]
fn whoever_hands_over_or_takes_is_told_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    let told = |machine: &Machine, words: &[&str], message: &str| {
        let said = machine.home.run(words);
        assert!(said.code != 0 && said.err.contains(message), "{words:?}: {said:?}");
    };
    told(&one, &["handoff", ID, "--to", &shared], "Claude Code has no session");
    told(&other, &["take", ID, "--from", &shared], "no session");
    one.says(0);
    told(&one, &["--redact", "handoff", ID, "--to", &shared], "secrets were to be left out");
    one.home.run(&["import", "--claude", ID]);
    one.home.run(&["copy", &format!("stored:{ID}"), "--to", &shared]);
    told(&other, &["take", ID, "--from", &shared], "nobody handed it over");
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    fs::remove_dir_all(&one.project).unwrap();
    told(&other, &["take", ID, "--from", &shared], "which is not on this machine");
    told(&other, &["take", ID, "--from", &shared, "--cwd", "nowhere"], "nowhere is no folder");
    told(&one, &["handoff", ID], "on this machine only");
    assert!(!other.claude.try_exists().unwrap(), "nothing was written");
}

#[test]
fn what_is_refused_leaves_both_stores_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    one.says(0);
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    assert_eq!(other.take(&shared).code, 0);
    // Recorded here, and never handed over.
    let file = one.project.join("a.txt");
    fs::write(&file, "a").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(one.home.run(&["checkpoint", ID, "--message", "m", file]).code, 0);
    other.says(1);
    assert_eq!(other.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    let stored = one.home.answer(&["show", &format!("stored:{ID}"), "--json"]);
    let said = one.take(&shared);
    assert!(said.code == 1 && said.err.contains("went on differently"), "{said:?}");
    assert_eq!(one.home.answer(&["show", &format!("stored:{ID}"), "--json"]), stored);
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 1);
    // Nobody else notices.
    let third = Machine::plain(folder.path(), "third");
    assert_eq!((third.take(&shared).code, third.shown()), (0, 2));
}

#[test]
fn a_small_file_that_was_rewritten_there_is_rewritten_here() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    let title = |machine: &Machine| machine.transcript().with_extension("").join("custom-title.json");
    one.says(0);
    fs::create_dir_all(title(&one).parent().unwrap()).unwrap();
    fs::write(title(&one), "old").unwrap();
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    assert_eq!(other.take(&shared).code, 0);
    fs::write(title(&other), "new").unwrap();
    assert_eq!(other.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    let said = one.take(&shared);
    assert_eq!((said.code, fs::read(title(&one)).unwrap()), (0, b"new".to_vec()), "{said:?}");
    // Rewritten on both sides, it is nobody's to choose.
    fs::write(title(&one), "ours").unwrap();
    fs::write(title(&other), "theirs").unwrap();
    assert_eq!(other.take(&shared).code, 1);
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    assert_eq!(other.take(&shared).code, 1);
    assert_eq!(fs::read(title(&other)).unwrap(), b"theirs");
}

#[test]
fn a_take_that_was_interrupted_between_the_store_and_the_folder_is_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    let title = |machine: &Machine| machine.transcript().with_extension("").join("custom-title.json");
    one.says(0);
    fs::create_dir_all(title(&one).parent().unwrap()).unwrap();
    fs::write(title(&one), "old").unwrap();
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    assert_eq!(other.take(&shared).code, 0);
    other.says(1);
    fs::write(title(&other), "new").unwrap();
    assert_eq!(other.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    // The store has all of it by then, and Claude Code's folder nothing yet.
    let own = one.home.store().to_str().unwrap().to_owned();
    let said = one.home.run(&["copy", &format!("stored:{ID}"), "--from", &shared, "--to", &own]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = one.take(&shared);
    assert_eq!((said.code, fs::read(title(&one)).unwrap()), (0, b"new".to_vec()), "{said:?}");
    assert_eq!(one.shown(), 2);
}

#[test]
fn a_session_that_is_taken_to_another_folder_works_there_and_so_do_its_forks() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared").to_str().unwrap().to_owned();
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    one.says(0);
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    assert_eq!(other.take(&shared).code, 0);
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let words = ["take", ID, "--from", &shared, "--cwd", elsewhere.to_str().unwrap()];
    assert_eq!(other.home.run(&words).code, 0);
    other.home.run(&["fork", ID]);
    let listed = other.home.answer(&["list", "--native", "--json"]);
    let cwd = |line: &str| serde_json::from_str::<Value>(line).unwrap()["cwd"].clone();
    let elsewhere = json!(elsewhere.canonicalize().unwrap());
    assert_eq!(listed.lines().map(cwd).collect::<Vec<_>>(), [elsewhere.clone(), elsewhere]);
}

#[test]
fn a_handoff_that_did_not_come_through_costs_nothing_and_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (shared, nowhere) = (path("shared"), path("nowhere"));
    let (one, other) = (Machine::plain(folder.path(), "one"), Machine::plain(folder.path(), "other"));
    one.says(0);
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    one.says(1);
    // Recorded here, and in no place that the other machine knows.
    assert_eq!(one.home.run(&["handoff", ID, "--to", &nowhere]).code, 0);
    let ours = fs::read(one.transcript()).unwrap();
    let said = one.take(&shared);
    assert!(said.code == 1 && said.err.contains("has more here than was handed over"), "{said:?}");
    assert_eq!(fs::read(one.transcript()).unwrap(), ours);
    assert_eq!(one.home.run(&["handoff", ID, "--to", &shared]).code, 0);
    assert_eq!((other.take(&shared).code, other.shown()), (0, 2));
}

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;

use serde_json::Value;

use crate::kit::{Home, Said};

/// A home with a session that works in the folder `work`.
fn home() -> Home {
    let home = Home::new();
    begin(&home);
    home
}

fn begin(home: &Home) {
    fs::create_dir(home.path().join("work")).unwrap();
    home.answer(&["new", "--id", "s", "--cwd", "work"]);
}

fn write(home: &Home, path: &str, content: &str) {
    fs::write(home.path().join("work").join(path), content).unwrap();
}

fn read(home: &Home, path: &str) -> Option<String> {
    fs::read_to_string(home.path().join("work").join(path)).ok()
}

/// The same, with its sessions in files and in databases.
fn homes() -> Vec<Home> {
    let homes = Home::of_every_kind();
    homes.iter().for_each(begin);
    homes
}

#[test]
fn files_go_back_to_a_message_and_forward_again() {
    homes().into_iter().for_each(back_and_forward);
}

fn back_and_forward(home: Home) {
    write(&home, "a", "old\n");
    assert_eq!(
        home.answer(&["checkpoint", "s", "--message", "m1", "--id", "c1", "work/a", "work/b"]),
        "c1\n"
    );
    write(&home, "a", "new\n");
    write(&home, "b", "made\n");
    home.answer(&["checkpoint", "s", "--message", "m1", "--after", "work/a", "work/b"]);
    let dry = home.run(&["rewind", "s", "--to", "m1", "--dry-run"]);
    let told = "Would restore 1 path, remove 1 path: 1 line added, 2 removed.\nRun again without --dry-run to apply.\n";
    assert_eq!(dry, Said { code: 0, out: "  M  a\n  D  b\n".into(), err: told.into() });
    assert_eq!(read(&home, "a").unwrap(), "new\n");

    let rewound: Value =
        serde_json::from_str(&home.answer(&["rewind", "s", "--to", "c1", "--json"])).unwrap();
    assert_eq!((read(&home, "a").unwrap(), read(&home, "b")), ("old\n".into(), None));
    assert_eq!(
        (&rewound["canRewind"], &rewound["insertions"], &rewound["deletions"]),
        (&true.into(), &1.into(), &2.into())
    );
    assert_eq!(rewound["filesChanged"].as_array().unwrap().len(), 2);
    let undone = home.run(&["rewind", "--undo", rewound["receipt"].as_str().unwrap()]);
    assert_eq!(undone.code, 0, "{}", undone.err);
    assert_eq!((read(&home, "a").unwrap(), read(&home, "b").unwrap()), ("new\n".into(), "made\n".into()));
}

#[test]
fn what_a_shell_command_did_goes_back_and_a_persons_edit_does_not() {
    homes().into_iter().for_each(shell_and_person);
}

fn shell_and_person(home: Home) {
    write(&home, "a", "old\n");
    home.answer(&["checkpoint", "s", "--tree", "--message", "m1"]);
    write(&home, "a", "new\n");
    write(&home, "made", "made\n");
    home.answer(&["checkpoint", "s", "--tree", "--after", "--message", "m1", "--tool", "bash"]);
    write(&home, "a", "a person's\n");
    let refused = home.run(&["rewind", "s", "--to", "m1"]);
    assert_eq!(
        (refused.code, refused.out.as_str()),
        (1, "  D  made\n  !  a  it is not as the agent left it\n")
    );
    let told = "error: nothing was changed: a: it is not as the agent left it\n\
        hint: `rethread rewind s --to m1 --force a` overwrites, and `--leave` instead of `--force` leaves out\n";
    assert_eq!(refused.err, told);
    assert_eq!(home.run(&["rewind", "s", "--to", "m1", "--leave", "work/a"]).code, 0);
    assert_eq!((read(&home, "a").unwrap(), read(&home, "made")), ("a person's\n".into(), None));
}

#[test]
fn checkpoints_are_listed_for_people_and_for_programs() {
    let home = home();
    let none = home.run(&["checkpoints", "s"]);
    assert_eq!(none, Said::told("Session s has no checkpoints beneath HOME/work.\n"));
    home.answer(&["checkpoint", "s", "--message", "m1", "--id", "c1", "work/a", "work/b"]);
    assert_eq!(home.answer(&["checkpoints", "s"]), "c1   now  before   m1  a and 1 more path\n");
    let record: Value = serde_json::from_str(&home.answer(&["checkpoints", "s", "--json"])).unwrap();
    assert_eq!((&record["id"], &record["changes"][0]["before"]["absent"]), (&"c1".into(), &true.into()));
}

#[test]
fn a_diff_shows_what_changed_since() {
    let home = home();
    write(&home, "a", "1\n2\n");
    home.answer(&["checkpoint", "s", "--id", "c1", "work/a"]);
    write(&home, "a", "1\nx\n");
    assert_eq!(home.answer(&["diff", "s", "--to", "c1"]), "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+x\n");
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_type_next() {
    let home = home();
    let unknown = "`rethread checkpoints stored:s` shows what there is";
    assert_eq!(
        home.run(&["rewind", "s", "--to", "no"]),
        Said::error(1, "session s has no checkpoint no", unknown)
    );
    let json: Value = serde_json::from_str(&home.run(&["rewind", "s", "--to", "no", "--json"]).out).unwrap();
    assert_eq!(
        (&json["canRewind"], &json["error"]),
        (&false.into(), &"session s has no checkpoint no".into())
    );
    let outside = home.run(&["checkpoint", "s", "/etc/hostname"]);
    assert_eq!(outside.code, 1);
    assert!(
        outside.err.contains("warning: not captured: \"/etc/hostname\" is not beneath the root"),
        "{}",
        outside.err
    );
    assert_eq!(home.run(&["checkpoint", "s"]).code, 2);
    assert_eq!(home.run(&["rewind", "s"]).code, 2);
    home.answer(&["checkpoint", "s", "--id", "c1", "work/a"]);
    let taken = home.run(&["checkpoint", "s", "--id", "c1", "work/a"]);
    assert_eq!(taken, Said::error(1, "checkpoint c1 is there already", "`--id` names another one"));
}

#[test]
fn checkpoints_can_be_switched_off() {
    let mut home = home();
    home.set([("RETHREAD_CHECKPOINTS", "off")]);
    let off = home.run(&["checkpoint", "s", "work/a"]);
    assert_eq!((off.code, off.out.as_str()), (1, ""));
    let rewind: Value =
        serde_json::from_str(&home.run(&["rewind", "s", "--to", "m1", "--json"]).out).unwrap();
    assert_eq!(rewind["canRewind"], false);
    assert!(!home.store().join("blobs").is_dir());
}

#[test]
fn disk_use_is_shown() {
    let home = home();
    write(&home, "a", &"x".repeat(5000));
    home.answer(&["checkpoint", "s", "work/a"]);
    let lines = home.answer(&["du", "--json"]);
    let of = |what: &str| {
        let line = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        line.into_iter().find(|line| line["what"] == what).unwrap()["bytes"].as_u64().unwrap()
    };
    assert_eq!(of("contents"), 5000);
    assert!(of("all") > 5000 && of("checkpoints") > 100);
}

#[test]
fn old_checkpoints_are_given_up_when_asked_for_and_never_a_pinned_one() {
    let home = home();
    for number in 0..4 {
        write(&home, "a", &format!("{number}\n"));
        home.answer(&["checkpoint", "s", "--id", &format!("c{number}"), "work/a"]);
    }
    home.answer(&["checkpoint", "s", "--pin", "c2"]);
    let gc = |rest: &[&str]| home.run(&[&["gc", "--checkpoints-keep", "1"], rest].concat());
    assert_eq!(gc(&["--dry-run"]), Said::told("Would clear away 2 checkpoints.\n"));
    assert_eq!(gc(&[]), Said::told("Cleared away 2 checkpoints.\n"));
    assert_eq!(home.run(&["rewind", "s", "--to", "c1"]).code, 1);
    assert_eq!(home.run(&["rewind", "s", "--to", "c2"]).code, 0);
    assert_eq!(read(&home, "a").unwrap(), "2\n");
}

#[test]
fn contents_that_are_missing_or_damaged_are_found_by_verify_and_healed_by_the_next_capture() {
    let home = home();
    write(&home, "a", "old\n");
    write(&home, "b", "other\n");
    home.answer(&["checkpoint", "s", "--message", "m1", "--id", "c1", "work/a", "work/b"]);
    assert_eq!(home.run(&["verify"]).code, 0);
    let blob = |content: &str| {
        let name = rethread_store::BlobId::of(content.as_bytes()).to_string();
        home.store().join("blobs/sha256").join(&name[..2]).join(&name[2..])
    };
    fs::write(blob("old\n"), "bad\n").unwrap();
    fs::remove_file(blob("other\n")).unwrap();
    let said = home.run(&["verify", "s"]);
    assert_eq!((said.code, said.out.lines().count()), (1, 2), "{}", said.out);
    for (path, reason) in
        [("content of a,", "its content has another hash"), ("content of b,", "it is missing")]
    {
        assert!(said.out.lines().any(|line| line.contains(path) && line.ends_with(reason)), "{}", said.out);
    }
    assert_eq!(said.err, "The logs are whole; the files of 1 session need a look.\n");
    // Both are still on disk as they were then, so a capture puts them again.
    home.answer(&["checkpoint", "s", "--message", "m2", "work/a", "work/b"]);
    assert_eq!(home.run(&["verify", "s"]).code, 0);
}

#[test]
fn a_rewind_that_was_interrupted_is_told_by_verify_and_doctor_and_finished_by_any_session_there() {
    let home = home();
    write(&home, "a", "old\n");
    home.answer(&["checkpoint", "s", "--message", "m1", "work/a"]);
    write(&home, "a", "new\n");
    let killed = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=renameat2:signal=KILL:when=1"];
    match home.through(&killed, &["rewind", "s", "--to", "m1"]).output() {
        Ok(output) if output.status.code() != Some(1) => {}
        _ => return crate::kit::cannot("system calls cannot be traced here"),
    }
    for command in ["verify", "doctor"] {
        let said = home.run(&[command]);
        assert_eq!(said.code, 1, "{command}: {}", said.out);
        assert!(said.out.contains("has not ended"), "{command}: {}", said.out);
        assert!(
            said.out.contains("`rethread checkpoints stored:s` finishes it, or takes it back"),
            "{}",
            said.out
        );
    }
    let json: Value = serde_json::from_str(&home.run(&["verify", "s", "--json"]).out).unwrap();
    assert_eq!((&json["ok"], json["interrupted"].as_array().unwrap().len()), (&false.into(), 1));
    home.answer(&["new", "--id", "other", "--cwd", "work"]);
    let captured = home.run(&["checkpoint", "other", "work/a"]);
    assert_eq!(captured.code, 0, "{}", captured.err);
    assert!(captured.err.contains("a rewind that had been interrupted was taken back"), "{}", captured.err);
    assert_eq!(home.run(&["verify"]).code, 0);
    assert_eq!(read(&home, "a").unwrap(), "new\n");
}

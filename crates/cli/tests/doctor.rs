//! What the doctor says of sessions that are whole, and yet not as a person would expect.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::{Home, cannot};
use crate::native::{ONE, TWO, home, keep_something_of_files, turn};

fn transcript(home: &Home) -> PathBuf {
    home.path().join(".claude/projects/-work-one").join(format!("{ONE}.jsonl"))
}

fn append(file: &Path, entry: &Value) {
    let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
    file.write_all(format!("{entry}\n").as_bytes()).unwrap();
}

/// Returns what the doctor says of a session, who is content with it.
fn said(home: &Home, id: &str) -> String {
    let said = home.run(&["doctor", id]);
    assert_eq!(said.code, 0, "{} {}", said.out, said.err);
    said.out
}

#[test]
fn a_directory_that_is_gone_or_was_moved_is_told_of() {
    let home = home();
    let gone = "  its directory /work/one is gone\n  \
        it is resumed wherever you are; `mkdir -p /work/one` makes the directory again\n";
    assert!(said(&home, ONE).contains(gone), "{}", said(&home, ONE));
    let now = home.path().join("now here");
    fs::create_dir(&now).unwrap();
    append(&transcript(&home), &json!({ "type": "relocated", "relocatedCwd": now, "sessionId": ONE }));
    let moved = format!("  it was moved to {}\n", now.display());
    assert!(said(&home, ONE).contains(&moved), "{}", said(&home, ONE));
    let listed = home.answer(&["list"]);
    assert!(listed.contains("[moved] Question 0 about /work/one"), "{listed}");
    assert!(listed.contains("[directory gone] Question 0 about /work/two"), "{listed}");
}

#[test]
fn of_two_files_with_one_id_each_is_told_which_is_meant() {
    let home = home();
    let copy = home.path().join(".claude/projects/-copy");
    fs::create_dir(&copy).unwrap();
    let older = copy.join(format!("{ONE}.jsonl"));
    fs::copy(transcript(&home), &older).unwrap();
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::options().append(true).open(&older).unwrap().set_modified(before).unwrap();
    let said = said(&home, ONE);
    let meant = format!(
        "  another file has this id; {} is the newer, and is the one that is meant\n",
        transcript(&home).display()
    );
    let other = format!("  {} is an older file with the id of a newer one\n", older.display());
    assert!(said.contains(&meant) && said.contains(&other), "{said}");
    assert!(said.contains(&format!("`mv {} ELSEWHERE`", older.display())), "{said}");
}

#[test]
fn a_branch_that_was_left_is_told_of_with_how_to_see_it() {
    let home = home();
    let mut left: Value = serde_json::from_str(&turn(1, "/work/one")[0]).unwrap();
    left["uuid"] = json!("left");
    let text = turn(0, "/work/one").concat() + &format!("{left}\n") + &turn(1, "/work/one").concat();
    fs::write(transcript(&home), text).unwrap();
    let expected = "  a branch was left, which is not shown\n  `rethread show 11111111 --branches` lists them, \
        `rethread fork 11111111 --at UUID` goes on from one\n";
    assert!(said(&home, ONE).contains(expected), "{}", said(&home, ONE));
    assert!(!said(&home, TWO).contains("branch"));
}

#[test]
fn a_backup_that_is_missing_is_told_of() {
    let home = home();
    keep_something_of_files(&home);
    assert!(!said(&home, ONE).contains("missing"));
    fs::remove_dir_all(home.path().join(".claude/file-history")).unwrap();
    let expected = "  1 backup of files missing\n  Claude Code cannot take those files back; `rethread checkpoints 11111111`";
    assert!(said(&home, ONE).contains(expected), "{}", said(&home, ONE));
}

/// Puts a process into Claude Code's register, as one that began at some time.
fn register(home: &Home, name: &str, pid: u32, began: &str) -> PathBuf {
    let register = home.path().join(".claude/sessions");
    fs::create_dir_all(&register).unwrap();
    let path = register.join(format!("{name}.json"));
    let entry = json!({ "pid": pid, "sessionId": ONE, "procStart": began, "status": "busy" });
    fs::write(&path, entry.to_string()).unwrap();
    path
}

/// Returns when a process began, as the kernel counts.
fn began(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned()
}

#[test]
fn a_process_that_was_killed_is_told_of_even_if_another_has_its_number() {
    if !Path::new("/proc/self/stat").is_file() {
        return cannot("there is no /proc");
    }
    let home = home();
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let own = std::process::id();
    let (gone, reused) = (register(&home, "gone", ended.id(), "1"), register(&home, "reused", own, "1"));
    assert!(!home.answer(&["list"]).contains("[live]"));
    let said = home.run(&["doctor"]);
    for (pid, path) in [(ended.id(), gone), (own, reused)] {
        let expected = format!(
            "11111111  process {pid} was killed while it was at work on it\n  \
            it counts as ended; `rm {}` makes Claude Code forget it too\n",
            path.display()
        );
        assert!(said.out.contains(&expected), "{}", said.out);
    }
    assert_eq!(said.code, 0);
    let json = home.answer(&["doctor", "--json"]);
    assert_eq!(json.matches("\"stale_process\"").count(), 2, "{json}");
    register(&home, "reused", own, &began(own));
    assert!(home.answer(&["list"]).contains("[live]"));
}

#[test]
fn two_processes_at_work_on_one_session_are_told_of() {
    if !Path::new("/proc/self/stat").is_file() {
        return cannot("there is no /proc");
    }
    let home = home();
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let own = std::process::id();
    register(&home, "own", own, &began(own));
    assert!(!said(&home, ONE).contains("at once"));
    register(&home, "other", other.id(), &began(other.id()));
    let said = said(&home, ONE);
    other.kill().unwrap();
    other.wait().unwrap();
    let both = [(own, other.id()), (other.id(), own)]
        .map(|(one, two)| format!("  processes {one} and {two} are at work on it at once\n"));
    assert!(both.iter().any(|both| said.contains(both)), "{said}");
    assert!(said.contains("what they say goes apart into branches; `kill "), "{said}");
}

#[test]
fn a_file_that_may_not_be_read_is_listed_and_told_of() {
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new(nobody[0]).args(&nobody[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        return cannot("becoming somebody else needs root");
    }
    let home = home();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(home.path(), 0o755);
    mode(&transcript(&home), 0);
    let program = home.path().join("rethread");
    fs::copy(env!("CARGO_BIN_EXE_rethread"), &program).unwrap();
    let says = |words: &[&str]| {
        let mut command = Command::new(nobody[0]);
        command.args(&nobody[1..]).arg(&program).args(["--claude-dir", ".claude"]).args(words);
        let output = command.current_dir(home.path()).env_clear().env("HOME", home.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).unwrap()
    };
    let listed = says(&["list", "--native"]);
    assert!(listed.contains("[unreadable] -\n") && listed.contains("about /work/two"), "{listed}");
    let said = says(&["doctor", ONE]);
    assert!(said.contains("11111111  -\n  cannot open ") && said.contains("Permission denied"), "{said}");
}

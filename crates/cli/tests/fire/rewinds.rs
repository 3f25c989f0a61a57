//! A rewind by the real program, killed before any of its system calls, or with any of them failing.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::effort::{Effort, torture};
use super::side_by_side::side_by_side;
use super::strace;
use crate::kit::Home;

const CALLS: [(&str, &[&str]); 6] = [
    ("rename,renameat,renameat2", &["signal=KILL", "error=EIO"]),
    ("fsync,fdatasync,syncfs", &["signal=KILL", "error=EIO", "error=ENOSPC"]),
    ("unlink,unlinkat,rmdir", &["signal=KILL", "error=EACCES"]),
    ("mkdir,mkdirat", &["signal=KILL", "error=ENOSPC"]),
    ("write,pwrite64", &["signal=KILL", "error=ENOSPC"]),
    ("fchmod,symlinkat", &["signal=KILL", "error=EPERM"]),
];

/// A project after a turn: one file changed, one made in a new folder, one removed, one folder turned into a file.
fn scene() -> (Home, Tree, Tree) {
    let home = Home::in_memory();
    let work = home.path().join("work");
    let write = |path: &str, content: &str| {
        fs::create_dir_all(work.join(path).parent().unwrap()).unwrap();
        fs::write(work.join(path), content).unwrap();
    };
    for path in ["changed", "removed", "folder/inner"] {
        write(path, &format!("{path} before\n"));
    }
    home.answer(&["new", "--id", "s", "--cwd", "work"]);
    home.answer(&["checkpoint", "s", "--tree", "--message", "m1"]);
    let before = tree(&work);
    write("changed", "after\n");
    write("made/deep/file", "made\n");
    fs::remove_file(work.join("removed")).unwrap();
    fs::remove_dir_all(work.join("folder")).unwrap();
    write("folder", "a file now\n");
    home.answer(&["checkpoint", "s", "--tree", "--after", "--message", "m1"]);
    let after = tree(&work);
    (home, before, after)
}

type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn tree(folder: &Path) -> Tree {
    let all = strace::everything_in(folder).into_iter();
    let within = |path: PathBuf| (path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).ok());
    all.map(within).collect()
}

#[test]
fn a_rewind_that_is_killed_or_fails_at_any_system_call_ends_before_or_after() {
    if !strace::works() {
        return;
    }
    let cases: Vec<(&str, &str)> =
        CALLS.iter().flat_map(|(calls, faults)| faults.iter().map(|fault| (*calls, *fault))).collect();
    let effort = Effort::new("a rewind is killed or fails at a system call", cases.len() as u64);
    side_by_side(effort, 4, |round| {
        let (calls, fault) = cases[round.number as usize % cases.len()];
        let every = if torture() { 1 } else { 2 };
        let mut n = 1 + round.rng().usize(..every);
        while tried(calls, fault, n) {
            n += every;
        }
    });
}

/// Has the n-th such call of each thread go wrong. Returns whether there was one.
fn tried(calls: &str, fault: &str, n: usize) -> bool {
    let (home, before, after) = scene();
    let work = home.path().join("work");
    let log = home.path().join("strace.log");
    let words = ["rewind", "s", "--to", "m1"];
    let spelled = format!("{calls}:{fault}:when={n}");
    let output = strace::through(&home, &spelled, log.to_str().unwrap(), &[], &words).output().unwrap();
    let told = format!("{spelled}: {:?} {}", output.status.code(), String::from_utf8_lossy(&output.stderr));
    // Whatever happened, the next command finishes it or takes it back.
    let listed = home.run(&["checkpoints", "s"]);
    assert_eq!(listed.code, 0, "{told}: {}", listed.err);
    let found = tree(&work);
    assert!(found == before || found == after, "{told}: half of it: {:?}", found.keys());
    if output.status.code() == Some(0) {
        assert_eq!(found, before, "{told}");
    }
    let again = home.run(&["rewind", "s", "--to", "m1"]);
    assert_eq!((again.code, tree(&work)), (0, before), "{told}: {}", again.err);
    output.status.code().is_none() || fs::read_to_string(log).unwrap().contains("(INJECTED)")
}

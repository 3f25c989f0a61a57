//! A rewind by the real program, and its recovery, killed before any system call or with any of them failing.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::effort::Effort;
use super::side_by_side::side_by_side;
use super::strace;
use crate::kit::Home;

const KILL: &str = "signal=KILL";
/// Calls that change something, and what may become of them. Dying at any other is dying before the next of these.
const CHANGING: [(&str, &[&str]); 7] = [
    ("rename,renameat,renameat2", &[KILL, "error=EIO", "error=EACCES"]),
    ("fsync,fdatasync,syncfs", &[KILL, "error=EIO", "error=ENOSPC"]),
    ("unlink,unlinkat,rmdir", &[KILL, "error=EIO", "error=EACCES"]),
    ("mkdir,mkdirat", &[KILL, "error=EROFS", "error=ENOSPC"]),
    ("write,writev,pwrite64,pwritev", &[KILL, "error=EIO", "error=ENOSPC"]),
    ("fchmod,symlinkat,utimensat,ftruncate", &[KILL, "error=EPERM"]),
    ("flock", &["error=ENOLCK"]),
];
/// Calls that only look. The loader makes some as well, and a program that cannot be loaded changes nothing.
const LOOKING: [(&str, &[&str]); 5] = [
    ("openat,openat2", &[KILL, "error=EMFILE", "error=EACCES"]),
    ("statx,newfstatat,fstat", &["error=EIO"]),
    ("read,pread64", &["error=EIO"]),
    ("getdents64", &["error=EIO"]),
    ("readlink,readlinkat", &["error=EACCES"]),
];

/// One kind of call, and one way in which it goes wrong.
#[derive(Clone, Copy, Debug)]
struct Case {
    calls: &'static str,
    fault: &'static str,
}

impl Case {
    fn all() -> Vec<Self> {
        let of = |(calls, faults): &(&'static str, &'static [&'static str])| {
            let of = |fault: &&'static str| Self { calls: *calls, fault };
            faults.iter().map(of).collect::<Vec<_>>()
        };
        CHANGING.iter().chain(&LOOKING).flat_map(of).collect()
    }
}

/// A project after a turn: one file changed, one made in a new folder, one removed, one folder turned into a file.
struct Scene {
    home: Home,
    before: Tree,
    after: Tree,
}

impl Scene {
    fn new() -> Self {
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
        Self { home, before, after }
    }
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
    let cases = Case::all();
    let effort = Effort::new("a rewind is killed or fails at a system call", cases.len() as u64);
    side_by_side(effort, 4, |round| {
        let case = cases[round.turn(cases.len() as u64) as usize];
        for n in 1.. {
            let scene = Scene::new();
            let ended = scene.rewind(case, n);
            scene.check(&ended);
            if !ended.tampered {
                break;
            }
        }
    });
}

/// Every pair of calls that change something is tried within the program, by `crash` of the checkpoints' own tests.
#[test]
fn a_recovery_that_is_killed_or_fails_at_any_system_call_ends_before_or_after() {
    if !strace::works() {
        return;
    }
    let (points, cases) = (deaths(), Case::all());
    assert!(points.len() > 20, "{points:?}");
    let effort = Effort::new("a recovery is killed or fails at a system call", cases.len() as u64);
    side_by_side(effort, 4, |round| {
        let number = round.number as usize;
        let case = cases[round.turn(cases.len() as u64) as usize];
        // In `make test` each case meets one death, in `make torture` one after the other.
        let first = (number / cases.len() + round.rng().usize(..points.len())) % points.len();
        for m in 1.. {
            let scene = Scene::new();
            let (died, n) = points[first];
            scene.rewind(died, n);
            let ended = scene.tampered(case, m, &["checkpoints", "s"]);
            let told = format!("died at {died:?} {n}, then {}", ended.told);
            scene.check(&Ended { told, done: false, ..ended });
            if !ended.tampered {
                break;
            }
        }
    });
}

/// Returns every call of a rewind, of those that change something, at which it can be killed.
fn deaths() -> Vec<(Case, usize)> {
    let mut deaths = Vec::new();
    for (calls, faults) in CHANGING.iter().filter(|(_, faults)| faults.contains(&KILL)) {
        let case = Case { calls, fault: faults[0] };
        let died = |n: &usize| Scene::new().rewind(case, *n).tampered;
        deaths.extend((1..).take_while(died).map(|n| (case, n)));
    }
    deaths
}

/// How a command ended that was tampered with.
struct Ended {
    told: String,
    done: bool,
    /// Whether there was such a call.
    tampered: bool,
}

impl Scene {
    fn rewind(&self, case: Case, n: usize) -> Ended {
        self.tampered(case, n, &["rewind", "s", "--to", "m1"])
    }

    /// Has the n-th such call of each thread go wrong.
    fn tampered(&self, case: Case, n: usize, words: &[&str]) -> Ended {
        let log = self.home.path().join("strace.log");
        let spelled = format!("{}:{}:when={n}", case.calls, case.fault);
        let mut command = strace::through(&self.home, &spelled, log.to_str().unwrap(), &[], words);
        let output = command.output().unwrap();
        let code = output.status.code();
        let told = format!("{spelled}: {code:?} {}", String::from_utf8_lossy(&output.stderr));
        let tampered = code.is_none() || fs::read_to_string(log).unwrap().contains("(INJECTED)");
        Ended { told, done: code == Some(0), tampered }
    }

    /// Whatever happened, the next command finishes it or takes it back, and the next rewind works.
    fn check(&self, Ended { told, done, .. }: &Ended) {
        let work = self.home.path().join("work");
        let listed = self.home.run(&["checkpoints", "s"]);
        assert_eq!(listed.code, 0, "{told}: {}", listed.err);
        let found = tree(&work);
        assert!(found == self.before || found == self.after, "{told}: half of it: {:?}", found.keys());
        assert!(!done || found == self.before, "{told}");
        let again = self.home.run(&["rewind", "s", "--to", "m1"]);
        assert_eq!(again.code, 0, "{told}: {}", again.err);
        assert_eq!(tree(&work), self.before, "{told}");
    }
}

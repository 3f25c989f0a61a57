//! Processes that hold a lock and do not go on: stopped, or frozen so hard that not even SIGKILL ends them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::appender::{Appender, Pace};
use super::effort::Effort;
use super::ledger::{Ledger, Run};
use super::strace;
use crate::kit::{Home, Said, cannot, entry};

/// What waits for a lock gives up within this time.
const BOUNDED: Duration = Duration::from_secs(20);
const AT_ONCE: Duration = Duration::from_secs(3);

#[test]
fn a_process_that_is_stopped_with_the_lock_is_named_and_stops_no_other_session() {
    if !strace::works() {
        return;
    }
    for round in Effort::new("a lock holder is stopped", 4) {
        let home = Home::new();
        home.conversation("other", 2);
        home.answer(&["new", "--id", "s"]);
        // In the middle of marking what it is about to write, which it does once, or before one of its syncs.
        let moments = ["pwrite64:when=1", "fdatasync:when=1", "fdatasync:when=2", "fdatasync:when=3"];
        let fault = moments[round.turn(4) as usize].replace(":", ":signal=STOP:");
        let command = strace::tampered(&home, &fault, &["append", "s"]);
        let stopped = Appender::start(command, Run::new("stopped", [300; 5]), Pace::Lockstep);
        wait_until_held(&home, "s");
        others_go_on(&home, "s", stopped.pid());
        let mut ledger = Ledger::new("s");
        // Each thread is stopped at its own n-th call.
        let ended = kept_going(stopped);
        assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 5), "{}", ended.err);
        ledger.add(ended.run);
        all_is_well(&home, ledger);
    }
}

#[test]
fn a_process_that_is_frozen_and_killed_with_the_lock_is_named_until_it_thaws() {
    let Some(freezer) = Freezer::new() else { return };
    for _ in Effort::new("a lock holder is frozen and killed", 1) {
        let home = Home::new();
        home.conversation("other", 2);
        home.answer(&["new", "--id", "s"]);
        let run = Run::new("frozen", [200; 20_000]);
        let frozen = Appender::start(home.command(&["append", "s"]), run, Pace::Flood);
        freezer.take(frozen.pid());
        freezer.freeze();
        let begun = Instant::now();
        while !is_held(&home, "s") {
            // Without this, the rest would prove nothing.
            assert!(begun.elapsed() < BOUNDED && !frozen.has_ended(), "it was never frozen with the lock");
            freezer.thaw();
            std::thread::sleep(Duration::from_millis(3));
            freezer.freeze();
        }
        let pid = frozen.pid();
        frozen.signal(Signal::KILL);
        // Where it is not killed before it thaws, it holds the lock until then.
        match freezer.holds_the_killed() {
            true => {
                assert!(is_held(&home, "s"), "what is frozen keeps its lock");
                others_go_on(&home, "s", pid);
            }
            false => wait_until(|| !is_held(&home, "s")),
        }
        freezer.thaw();
        let mut ledger = Ledger::new("s");
        ledger.add(frozen.kill().run);
        all_is_well(&home, ledger);
    }
}

#[test]
fn a_process_that_is_stopped_while_it_begins_the_store_is_named() {
    if !strace::works() {
        return;
    }
    let home = Home::new();
    let mut command = strace::tampered(&home, "fdatasync:signal=STOP:when=1", &["new", "--id", "first"]);
    let mut stopped = command.spawn().unwrap();
    let lock = home.store().join("lock");
    wait_until(|| fs::File::open(&lock).is_ok_and(|lock| lock.try_lock().is_err()));
    let said = home.run(&["new", "--id", "second"]);
    let expected = format!("error: the store is locked by process {} on ", stopped.id());
    // Each thread is stopped at its own first sync.
    while stopped.try_wait().unwrap().is_none() {
        let _ = kill_process(Pid::from_child(&stopped), Signal::CONT);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(stopped.wait().unwrap().success());
    assert!(said.code == 1 && said.err.starts_with(&expected), "{}", said.err);
    home.answer(&["new", "--id", "second"]);
    assert_eq!(home.answer(&["list"]).lines().count(), 2);
}

/// What needs the lock names its holder after a while; all the rest goes on at once.
fn others_go_on(home: &Home, session: &str, holder: u32) {
    let expected = format!("error: session {session} is locked by process {holder} on ");
    std::thread::scope(|scope| {
        for words in [["append", session], ["delete", session], ["archive", session]] {
            let expected = &expected;
            scope.spawn(move || {
                let (said, took) = timed(|| home.feed(&words, entry(1)));
                assert_eq!((said.code, said.out.as_str()), (1, ""), "{words:?}");
                assert!(said.err.starts_with(expected), "{words:?}: {}", said.err);
                assert!(said.err.contains("\nhint: ") && took < BOUNDED, "{words:?}: {took:?} {}", said.err);
            });
        }
        for number in 3..6 {
            let (said, took) = timed(|| home.feed(&["append", "other"], entry(number)));
            assert!(said.code == 0 && took < AT_ONCE, "{took:?} {}", said.err);
        }
        for words in
            [vec!["show", session], vec!["list"], vec!["show", "other"], vec!["new"], vec!["tour", "--fast"]]
        {
            let (said, took) = timed(|| home.run(&words));
            assert!(said.code == 0 && took < AT_ONCE, "{words:?}: {took:?} {}", said.err);
        }
    });
}

fn timed(work: impl FnOnce() -> Said) -> (Said, Duration) {
    let begun = Instant::now();
    let said = work();
    (said, begun.elapsed())
}

fn all_is_well(home: &Home, mut ledger: Ledger) {
    let run = Run::new("after", [10; 3]);
    let ended = Appender::start(home.command(&["append", ledger.session()]), run, Pace::Flood).end();
    assert_eq!((ended.code, ended.run.acknowledged.len()), (Some(0), 3), "{}", ended.err);
    ledger.add(ended.run);
    ledger.check(home);
}

/// Lets a process go on whenever it is stopped, until it ends.
fn kept_going(appender: Appender) -> super::appender::Ended {
    while !appender.has_ended() {
        appender.signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(20));
    }
    appender.end()
}

fn is_held(home: &Home, session: &str) -> bool {
    let lock = home.log(session).with_file_name("lock");
    fs::File::open(lock).unwrap().try_lock().is_err()
}

/// Waits until somebody has held the lock for longer than any write takes.
fn wait_until_held(home: &Home, session: &str) {
    wait_until(|| {
        (0..20).all(|_| {
            std::thread::sleep(Duration::from_millis(10));
            is_held(home, session)
        })
    });
}

fn wait_until(mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < BOUNDED, "the lock was never held");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A control group whose processes can be frozen; gone with this value.
struct Freezer {
    folder: PathBuf,
    /// The file that freezes, what to write to it for that, and what to thaw.
    state: (&'static str, &'static str, &'static str),
}

impl Freezer {
    fn new() -> Option<Self> {
        let name = format!("rethread-test-{}", std::process::id());
        // In the older kind not even SIGKILL gets through to what is frozen.
        for (root, state) in [
            ("/sys/fs/cgroup/freezer", ("freezer.state", "FROZEN", "THAWED")),
            ("/sys/fs/cgroup", ("cgroup.freeze", "1", "0")),
        ] {
            let folder = PathBuf::from(root).join(&name);
            if fs::create_dir(&folder).is_ok() {
                let freezer = Self { folder, state };
                if freezer.folder.join(state.0).try_exists().unwrap_or(false) {
                    return Some(freezer);
                }
            }
        }
        cannot("no process can be frozen here: that needs root and a freezer of control groups");
        None
    }

    fn take(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn freeze(&self) {
        let file = self.folder.join(self.state.0);
        fs::write(&file, self.state.1).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        // Until then a thread that waits for the disk is only about to be frozen, and is killed after all when it comes back.
        wait_until(|| fs::read_to_string(&file).unwrap().trim() == self.state.1);
    }

    /// Returns whether what is frozen cannot be killed either.
    fn holds_the_killed(&self) -> bool {
        self.state.0 == "freezer.state"
    }

    fn thaw(&self) {
        fs::write(self.folder.join(self.state.0), self.state.2).unwrap();
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.join(self.state.0), self.state.2);
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

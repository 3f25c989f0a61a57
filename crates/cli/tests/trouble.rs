//! Disks that are full, read-only or forbidden, locks that are held, stores of the future.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kit::{Home, Said, cannot, entry, uuid_in};

/// A file system of its own, gone with this value.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    /// Mounts one in memory, if that is allowed here.
    fn tmpfs(at: &'a Path, options: &str) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let done = mount(&["-t", "tmpfs", "-o", options, "rethread-test"], at);
        if !done {
            cannot("no file system can be mounted here: that needs root");
        }
        done.then_some(Self(at))
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], self.0));
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0).status().unwrap();
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    let mounted = Command::new("mount").args(arguments).arg(at).stderr(Stdio::null()).status();
    mounted.is_ok_and(|status| status.success())
}

#[test]
fn a_full_disk_ends_an_append_with_what_is_durable_and_loses_none_of_it() {
    let home = Home::new();
    let store = home.store();
    let Some(disk) = Mounted::tmpfs(&store, "size=1m") else { return };
    home.conversation("s", 1);
    let large = |number| format!("{{\"uuid\":\"l{number}\",\"text\":\"{}\"}}\n", "x".repeat(5000));
    let said = home.feed(&["append", "s"], (1..=400).map(large).collect::<String>());
    assert_eq!(said.code, 1);
    let next = said.out.lines().count() + 1;
    let expected = format!(
        "error: no space left to append to HOME/store/sessions/s/messages.jsonl\n\
         hint: make room and append from line {next} on; everything before line {next} is durable\n"
    );
    assert_eq!(said.err, expected);
    assert!(next > 100, "{next}");
    let stored = home.run(&["show", "s", "--json"]).out;
    let stored: Vec<&str> = stored.lines().skip(1).take(next - 1).filter_map(uuid_in).collect();
    assert_eq!(stored, said.out.lines().filter_map(uuid_in).collect::<Vec<_>>());
    disk.remount("size=10m");
    let rest: String = (next..=400).map(large).collect();
    let said = home.feed(&["append", "s"], rest);
    assert_eq!((said.code, said.out.lines().count()), (0, 401 - next), "{}", said.err);
}

#[test]
fn a_full_disk_beneath_sqlite_ends_an_append_with_what_is_durable_and_loses_none_of_it() {
    let mut home = Home::new();
    home.set([("RETHREAD_STORE", "sqlite:store/sessions.db")]);
    let store = home.store();
    let Some(disk) = Mounted::tmpfs(&store, "size=2m") else { return };
    home.conversation("s", 1);
    let large = |number| format!("{{\"uuid\":\"l{number}\",\"text\":\"{}\"}}\n", "x".repeat(5000));
    let said = home.feed(&["append", "s"], (1..=400).map(large).collect::<String>());
    let next = said.out.lines().count() + 1;
    let expected = format!(
        "error: no space left to append to store/sessions.db\n\
         hint: make room and append from line {next} on; everything before line {next} is durable\n"
    );
    assert_eq!((said.code, said.err), (1, expected));
    assert!(next > 50, "{next}");
    let stored = home.run(&["show", "s", "--json"]).out;
    let stored: Vec<&str> = stored.lines().skip(1).filter_map(uuid_in).collect();
    assert_eq!(stored, said.out.lines().filter_map(uuid_in).collect::<Vec<_>>());
    disk.remount("size=20m");
    let said = home.feed(&["append", "s"], (next..=400).map(large).collect::<String>());
    assert_eq!((said.code, said.out.lines().count()), (0, 401 - next), "{}", said.err);
    assert_eq!(home.answer(&["verify"]), "1 session, 402 records: all whole\n");
}

#[test]
fn a_disk_that_fills_up_ends_an_append_whose_input_stays_open() {
    let home = Home::new();
    let store = home.store();
    let Some(_disk) = Mounted::tmpfs(&store, "size=256k") else { return };
    home.conversation("s", 1);
    let mut child = home.start(&["append", "s"]);
    let mut input = child.stdin.take().unwrap();
    let large = format!("{{\"text\":\"{}\"}}\n", "x".repeat(300_000));
    input.write_all(large.as_bytes()).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(err.starts_with("error: no space left to ") && err.contains("nothing was appended"), "{err}");
    drop(input);
}

#[test]
fn a_read_only_disk_refuses_writes_in_one_line_and_still_reads() {
    let home = Home::new();
    let store = home.store();
    let Some(disk) = Mounted::tmpfs(&store, "size=1m") else { return };
    home.conversation("s", 2);
    disk.remount("ro");
    for words in [["new", "--name=n"], ["archive", "s"], ["delete", "s"], ["fork", "s"], ["append", "s"]] {
        let said = home.feed(&words, entry(3));
        assert_eq!(
            (said.code, said.out.as_str(), said.err.lines().count()),
            (1, "", 2),
            "{words:?} {}",
            said.err
        );
        assert!(
            said.err.contains("read-only") && said.err.contains("\nhint: `--store PATH` "),
            "{}",
            said.err
        );
    }
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1) + &entry(2));
    assert_eq!(home.answer(&["list"]).lines().count(), 1);
    assert_eq!(home.answer(&["verify"]), "1 session, 3 records: all whole\n");
}

#[test]
fn a_folder_that_one_may_not_write_to_is_named() {
    let home = Home::new();
    home.conversation("s", 1);
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new(nobody[0]).args(&nobody[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        return cannot("becoming somebody else needs root");
    }
    use std::os::unix::fs::PermissionsExt as _;
    for path in [home.path(), &home.store(), &home.store().join("sessions"), &home.store().join("sessions/s")]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let program = home.path().join("rethread");
    fs::copy(env!("CARGO_BIN_EXE_rethread"), &program).unwrap();
    let mut command = Command::new(nobody[0]);
    command.args(&nobody[1..]).arg(program).args(["new"]).env("RETHREAD_HOME", home.store());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = home.feed_to(command, "");
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.starts_with("error: cannot ") && said.err.contains("Permission denied"), "{}", said.err);
    assert!(said.err.contains("\nhint: `--store PATH` "), "{}", said.err);
}

#[test]
fn a_stopped_process_that_holds_the_lock_is_named_after_a_while() {
    let home = Home::new();
    home.conversation("s", 1);
    let mut stopped = stopped_with_the_lock(&home);
    let begun = Instant::now();
    let said = home.feed(&["append", "s"], entry(2));
    let waited = begun.elapsed();
    stopped.kill().unwrap();
    stopped.wait().unwrap();
    let pid = stopped.id();
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(
        said.err.starts_with(&format!("error: session s is locked by process {pid} on ")),
        "{}",
        said.err
    );
    let hint = format!(
        "\nhint: if that process is stopped, `kill -CONT {pid}` lets it go on; nothing was appended\n"
    );
    assert!(said.err.ends_with(&hint), "{}", said.err);
    assert!((Duration::from_secs(4)..Duration::from_secs(60)).contains(&waited), "{waited:?}");
    assert_eq!(home.feed(&["append", "s"], entry(2)).code, 0);
}

/// Whoever had waited for two seconds looked every two seconds, and gave up among a crowd that only left it moments.
#[test]
fn who_has_waited_long_for_a_lock_still_takes_it_when_it_is_free_for_a_moment() {
    let home = Home::new();
    home.conversation("s", 1);
    let lock = fs::File::open(home.store().join("sessions/s/lock")).unwrap();
    lock.lock().unwrap();
    let said = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| home.feed(&["append", "s"], entry(2)));
        for held in [3_000, 5_000] {
            std::thread::sleep(Duration::from_millis(held));
            lock.unlock().unwrap();
            std::thread::sleep(Duration::from_millis(600));
            lock.lock().unwrap();
            if waiting.is_finished() {
                break;
            }
        }
        lock.unlock().unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(said.code, 0, "{}", said.err);
}

/// Stops an appender at a moment when it holds the lock.
fn stopped_with_the_lock(home: &Home) -> Child {
    let lock = fs::File::open(home.store().join("sessions/s/lock")).unwrap();
    for _ in 0..100 {
        let mut child =
            home.command(&["append", "s"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::thread::spawn(move || (1..).find(|_| input.write_all(b"{\"x\":1}\n").is_err()));
        std::thread::sleep(Duration::from_millis(100));
        Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap();
        // One that is still in a system call finishes that, and it may be the one that gives the lock back.
        while !is_standing_still(child.id()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if lock.try_lock().is_err() {
            return child;
        }
        lock.unlock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    panic!("an appender without a pause never held the lock");
}

fn is_standing_still(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rfind(')').is_none_or(|end| stat[end..].starts_with(") T"))
    })
}

#[test]
fn a_lock_that_is_given_back_in_time_only_delays() {
    let home = Home::new();
    home.conversation("s", 1);
    let lock = fs::File::open(home.store().join("sessions/s/lock")).unwrap();
    lock.lock().unwrap();
    let mut child = home.start(&["append", "s"]);
    child.stdin.take().unwrap().write_all(entry(2).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(3500));
    lock.unlock().unwrap();
    let mut ack = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ack).unwrap();
    assert_eq!(uuid_in(&ack), Some("u2"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_store_of_a_newer_format_is_left_alone() {
    let home = Home::new();
    home.conversation("s", 1);
    let before = fs::read(home.log("s")).unwrap();
    fs::write(home.store().join("format.json"), "{\"rethread\":99}\n").unwrap();
    let expected = Said::error(
        1,
        "the store has format 99, this program knows up to 1",
        "update rethread: a newer version of it has written to this store",
    );
    for words in [
        vec!["list"],
        vec!["show", "s"],
        vec!["show", "other"],
        vec!["new"],
        vec!["append", "s"],
        vec!["fork", "s"],
        vec!["delete", "s"],
        vec!["purge", "s"],
        vec!["restore", "s"],
        vec!["archive", "s"],
        vec!["verify"],
        vec!["repair", "s", "--yes"],
        vec!["gc"],
        vec!["export", "s"],
        vec!["tail", "s"],
    ] {
        assert_eq!(home.feed(&words, entry(2)), expected, "{words:?}");
    }
    assert_eq!(fs::read(home.log("s")).unwrap(), before);
}

#[test]
fn a_store_that_is_a_file_is_one_error_and_not_a_panic() {
    let home = Home::new();
    fs::write(home.store(), "not a folder").unwrap();
    for words in [vec!["list"], vec!["new"], vec!["show", "s"], vec!["verify"]] {
        let said = home.run(&words);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{words:?}");
        assert!(said.err.starts_with("error: "), "{}", said.err);
    }
    assert_eq!(fs::read_to_string(home.store()).unwrap(), "not a folder");
}

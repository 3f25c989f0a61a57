//! A real PostgreSQL server in a folder of its own, which ends with the process that started it.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::memory_folder::memory_folder;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the server for each line that comes, and ends it and clears up when there are no more: also if whoever wrote
/// them was killed.
const GUARD: &str = r#"
folder=$1; shift
while read -r _; do "$@" >>"$folder/log" 2>&1 & done
kill -QUIT "$(head -n 1 "$folder/data/postmaster.pid")" 2>/dev/null
wait
rm -rf "$folder"
"#;

/// What the folders of servers begin with.
const FOLDER: &str = "rethread-postgres-";

/// A PostgreSQL server.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    made: AtomicUsize,
    guard: Mutex<Child>,
}

impl Postgres {
    /// Returns the server that the tests of this program share; `None` where PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: LazyLock<Option<Postgres>> = LazyLock::new(|| Postgres::start(&[], &[]));
        SHARED.as_ref()
    }

    /// Starts a server with settings such as `ssl=on`, and files beside its data; `None` where PostgreSQL is not installed.
    pub fn start(settings: &[&str], files: &[(&str, &str)]) -> Option<Self> {
        Self::start_in(TempDir::with_prefix(FOLDER).unwrap(), settings, files)
    }

    /// Starts a server whose data is in memory, where a sync costs nothing.
    pub fn in_memory() -> Option<Self> {
        Self::start_in(memory_folder(FOLDER), &[], &[])
    }

    fn start_in(folder: TempDir, settings: &[&str], files: &[(&str, &str)]) -> Option<Self> {
        let programs = programs()?;
        let folder = folder.keep();
        let data = folder.join("data");
        // It refuses to run as root.
        let owner = rustix::process::geteuid().is_root().then(unprivileged);
        let run = |words: &[&str]| {
            let status = as_owner(owner, words).stdout(Stdio::null()).status();
            assert!(status.as_ref().is_ok_and(|status| status.success()), "{words:?}: {status:?}");
        };
        if let Some(owner) = owner {
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(&folder, Some(owner), Some(owner)).unwrap();
        }
        let path = |name: &str| programs.join(name).to_str().unwrap().to_owned();
        let data = data.to_str().unwrap();
        run(&[
            &path("initdb"),
            "-D",
            data,
            "-U",
            "rethread",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C",
        ]);
        for (name, content) in files {
            let path = folder.join("data").join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            if let Some(owner) = owner {
                std::os::unix::fs::chown(&path, Some(owner), Some(owner)).unwrap();
            }
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (listen, sockets) =
            (format!("-p{port}"), format!("unix_socket_directories={}", folder.display()));
        let (postgres, mut words) = (path("postgres"), Vec::new());
        words.extend([&postgres, "-D", data, &listen, "-c", &sockets, "-c", "listen_addresses=127.0.0.1"]);
        words.extend(["-c", "max_connections=200"]);
        settings.iter().for_each(|setting| words.extend(["-c", setting]));
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh"]).arg(&folder);
        let server = as_owner(owner, &words);
        guard.arg(server.get_program()).args(server.get_args());
        let guard = guard.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let server = Self { folder, programs, port, made: AtomicUsize::new(0), guard: Mutex::new(guard) };
        server.restart();
        Some(server)
    }

    /// Makes an empty database, and returns its name.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.made.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        name
    }

    /// Returns the URL of a database, over a socket.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://rethread@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    /// Returns the URL of an empty database, over a socket.
    pub fn fresh(&self) -> String {
        self.url(&self.database())
    }

    /// Returns the port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs statements in a database as its owner, and returns what they print.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Does the same, and returns why it could not if the server went away meanwhile.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "rethread",
            "-d",
            database,
            "-c",
            sql,
        ]);
        let output = psql.arg("-h").arg(&self.folder).args(["-p", &self.port.to_string()]).output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap().trim_end().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Kills every process of the server at once, as a power cut would.
    pub fn kill(&self) {
        let server = self.pid();
        let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = status.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok()?;
            (parent == server).then_some(pid)
        });
        let all: Vec<i32> = std::iter::once(server).chain(children).collect();
        for pid in &all {
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        let is_gone = |pid: &i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            status.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
        };
        wait_until("the server is dead", || all.iter().all(is_gone));
    }

    /// Starts the server again after it was killed, and waits until it answers.
    pub fn restart(&self) {
        let mut guard = self.guard.lock().unwrap();
        guard.stdin.as_mut().unwrap().write_all(b"start\n").unwrap();
        drop(guard);
        let ready = || {
            let mut ask = Command::new(self.programs.join("pg_isready"));
            ask.arg("-q").arg("-h").arg(&self.folder).args(["-p", &self.port.to_string()]);
            ask.status().unwrap().success()
        };
        wait_until("the server answers", ready);
    }

    /// Returns the process of the server.
    fn pid(&self) -> i32 {
        let text = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        text.lines().next().unwrap().parse().unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let guard = self.guard.get_mut().unwrap();
        drop(guard.stdin.take());
        drop(guard.wait());
    }
}

/// Returns the folder of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(number).map(|version| version.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    newest.into_iter().chain(std::env::split_paths(&path)).find(|folder| folder.join("initdb").is_file())
}

/// Returns somebody whom the server may run as.
fn unprivileged() -> u32 {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let id = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        line.split(':').nth(2)?.parse().ok()
    };
    id("postgres").or_else(|| id("nobody")).unwrap_or(65534)
}

fn as_owner(owner: Option<u32>, words: &[&str]) -> Command {
    let Some(owner) = owner else {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        return command;
    };
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={owner}"), format!("--regid={owner}")]);
    command.args(["--clear-groups", "--"]).args(words).current_dir("/");
    command
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

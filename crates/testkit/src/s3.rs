//! A real S3 server in a folder of its own, which ends with the process that started it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory_folder::memory_folder;
use crate::program::package;
use crate::s3_proxy::{S3Proxy, Turns};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the server, and ends it and clears up when there is no more to read: also if whoever wrote was killed.
pub(crate) const GUARD: &str = r#"
folder=$1; shift
"$@" >"$folder/log" 2>&1 &
server=$!
read -r _
kill -KILL "$server" 2>/dev/null
wait
rm -rf "$folder"
"#;

/// Who may use the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever signs with the right key.
    Signed,
    /// Everybody, so that a proxy can change what is asked.
    Open,
}

/// An S3 server: `s3s-fs`, which keeps conditions, but looks and writes in two steps. So everybody comes by a
/// [way](S3Proxy) on which requests about one object take turns.
#[derive(Debug)]
pub struct S3 {
    folder: PathBuf,
    port: u16,
    access: Access,
    made: AtomicUsize,
    turns: Arc<Turns>,
    guard: Mutex<Child>,
}

impl S3 {
    /// Returns the server that the tests of this program share; `None` where it cannot be installed.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: LazyLock<Option<S3>> = LazyLock::new(|| S3::start(Access::Signed));
        SHARED.as_ref()
    }

    /// Starts a server; `None` where it cannot be installed.
    pub fn start(access: Access) -> Option<Self> {
        let program = package("s3")?.join("bin/s3s-fs");
        let folder = memory_folder("rethread-s3-").keep();
        fs::create_dir(folder.join("data")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh"]).arg(&folder).arg(program);
        guard.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        if access == Access::Signed {
            guard.args(["--access-key", "ada", "--secret-key", "right"]);
        }
        guard.arg(folder.join("data")).stdin(Stdio::piped()).stdout(Stdio::null());
        let guard = Mutex::new(guard.spawn().unwrap());
        let server = Self { folder, port, access, made: AtomicUsize::new(0), turns: Arc::default(), guard };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the server does not answer");
            thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    /// Makes an empty bucket, and returns its name.
    pub fn bucket(&self) -> String {
        let name = format!("test{}", self.made.fetch_add(1, Ordering::Relaxed));
        fs::create_dir(self.objects(&name)).unwrap();
        name
    }

    /// Returns the folder where the objects of a bucket are files.
    pub fn objects(&self, bucket: &str) -> PathBuf {
        self.folder.join("data").join(bucket)
    }

    /// Opens a way to the server.
    pub fn way(&self) -> S3Proxy {
        S3Proxy::to(self.port, self.turns.clone(), self.access)
    }

    /// Returns the server's own folder, for those who want to see what is left of it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let guard = self.guard.get_mut().unwrap();
        drop(guard.stdin.take());
        drop(guard.wait());
    }
}

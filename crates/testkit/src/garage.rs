//! A Garage server, which ignores conditions: it must be refused.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory_folder::memory_folder;
use crate::program::package;
use crate::s3::GUARD;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

const KEY: &str = "GK0123456789abcdef01234567";
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A server in a folder of its own, with a bucket, which ends with the process that started it.
#[derive(Debug)]
pub struct Garage {
    port: u16,
    guard: Child,
}

impl Garage {
    /// Its bucket.
    pub const BUCKET: &str = "team";

    /// Starts a server; `None` where it cannot be installed.
    pub fn start() -> Option<Self> {
        let program = package("garage")?.join("bin/garage");
        let folder = memory_folder("rethread-garage-").keep();
        // Both are held until both are known, so that they are not the same.
        let [rpc, api] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let [rpc, port] = [rpc, api].map(|listener| listener.local_addr().unwrap().port());
        let (at, settings) = (folder.display(), folder.join("garage.toml"));
        let text = format!(
            "metadata_dir = '{at}/meta'\ndata_dir = '{at}/data'\ndb_engine = 'sqlite'\nreplication_factor = 1\n\
             rpc_bind_addr = '127.0.0.1:{rpc}'\nrpc_public_addr = '127.0.0.1:{rpc}'\nrpc_secret = '{SECRET}'\n\
             [s3_api]\ns3_region = 'us-east-1'\napi_bind_addr = '127.0.0.1:{port}'\nroot_domain = '.localhost'\n"
        );
        fs::write(&settings, text).unwrap();
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh"]).arg(&folder).arg(program).arg("-c").arg(settings);
        guard.args(["server", "--single-node", "--default-bucket"]);
        guard.env("GARAGE_DEFAULT_ACCESS_KEY", KEY).env("GARAGE_DEFAULT_SECRET_KEY", SECRET);
        guard.env("GARAGE_DEFAULT_BUCKET", Self::BUCKET).stdin(Stdio::piped()).stdout(Stdio::null());
        let server = Self { port, guard: guard.spawn().unwrap() };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the server does not answer");
            thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    /// Returns what the environment of a client has to say.
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        let variables = [
            ("AWS_ACCESS_KEY_ID", KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &endpoint),
            ("AWS_ALLOW_HTTP", "true"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }
}

impl Drop for Garage {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        drop(self.guard.wait());
    }
}

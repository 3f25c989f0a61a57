//! A keeper on a store, as a program of somebody's own finds it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::kit::way_to_s3;

/// The key of a store that is encrypted, within the keeper's home.
const KEY: &str = "master.key";

/// A keeper in a process and a home of its own.
pub(crate) struct Served {
    home: TempDir,
    keeper: Child,
    store: String,
    pub(crate) url: String,
    /// The keeper's own token, which opens every namespace.
    pub(crate) token: String,
}

impl Served {
    /// Starts one on a store that is made from the path of an empty folder.
    pub(crate) fn on(store: impl FnOnce(PathBuf) -> String) -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = store(home.path().join("store"));
        if is_encrypted(&store) {
            let key = home.path().join(KEY);
            assert!(command(&home, "file:.", &["key", key.to_str().unwrap()]).status().unwrap().success());
        }
        let mut serve = command(&home, &store, &["serve", "--listen", "127.0.0.1:0", "--no-open"]);
        let mut keeper = serve.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().last().unwrap().trim_end_matches('/').to_owned();
        assert!(url.starts_with("http://localhost:"), "{line:?}");
        let token = fs::read_to_string(home.path().join("rethread/keeper/token")).unwrap();
        Self { home, keeper, store, url, token }
    }

    /// Starts one on files.
    pub(crate) fn on_files() -> Self {
        Self::on(|path| format!("file:{}", path.display()))
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Runs the program to its end, beside this keeper and on the same store; returns what it printed.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = command(&self.home, &self.store, words).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn is_encrypted(store: &str) -> bool {
    store.starts_with("encrypted+")
}

fn command(home: &TempDir, store: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
    command.args(["--store", store]).args(words).current_dir(home.path()).stdin(Stdio::null());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
    command.env("HOME", home.path()).env("RETHREAD_HOME", home.path().join("rethread")).envs(way_to_s3());
    if is_encrypted(store) {
        command.env("RETHREAD_KEY_FILE", home.path().join(KEY));
    }
    command
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.keeper.kill());
        drop(self.keeper.wait());
    }
}

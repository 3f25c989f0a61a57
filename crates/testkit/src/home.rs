//! A person's home in a temporary folder, with an API of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::api::ScriptedApi;
use crate::claude::Claude;
use crate::program::Program;

/// A home where the CLI runs.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    api: ScriptedApi,
    program: Program,
}

impl Home {
    /// Makes a home with an empty project in it; `None` where the CLI cannot be had.
    pub fn new() -> Option<Self> {
        let program = Program::find()?.clone();
        let folder = tempfile::Builder::new().prefix("home-").tempdir_in(homes()).unwrap();
        let home = Self { folder, api: ScriptedApi::start(), program };
        fs::create_dir_all(home.project()).unwrap();
        fs::create_dir_all(home.path().join("tmp")).unwrap();
        Some(home)
    }

    /// Returns the home itself.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns Claude's configuration folder in it.
    pub fn config(&self) -> PathBuf {
        self.path().join(".claude")
    }

    /// Returns the folder that the CLI works in.
    pub fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    /// Returns its API.
    pub fn api(&self) -> &ScriptedApi {
        &self.api
    }

    /// Returns the CLI that lives here.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the whole environment that the CLI runs in here: nothing of the person's who runs the tests.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let temporary = self.path().join("tmp").into_os_string();
        let switches = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "IS_SANDBOX",
            "CLAUDE_CODE_MAX_RETRIES",
        ];
        let mut variables = vec![
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("LANG", "C.UTF-8".into()),
            ("HOME", self.path().into()),
            ("CLAUDE_CONFIG_DIR", self.config().into()),
            ("CLAUDE_CODE_TMPDIR", temporary.clone()),
            ("TMPDIR", temporary),
            ("ANTHROPIC_API_KEY", "sk-ant-dummy".into()),
            ("ANTHROPIC_BASE_URL", self.api.url().into()),
        ];
        variables.extend(switches.map(|switch| (switch, "1".into())));
        variables
    }

    /// Returns the CLI, ready to be run in the project.
    pub fn claude(&self) -> Claude<'_> {
        Claude::new(self)
    }

    /// Returns the transcript of a session, wherever it is.
    #[track_caller]
    pub fn transcript(&self, session: &str) -> PathBuf {
        let found = self.find_transcript(session);
        found.unwrap_or_else(|| panic!("no transcript of {session} beneath {}", self.config().display()))
    }

    fn find_transcript(&self, session: &str) -> Option<PathBuf> {
        let mut folders = fs::read_dir(self.config().join("projects")).into_iter().flatten().flatten();
        folders.find_map(|folder| {
            let file = folder.path().join(format!("{session}.jsonl"));
            file.is_file().then_some(file)
        })
    }

    /// Waits until a session's transcript has a message of this kind with this text in it: what the CLI does can be seen
    /// before it is written.
    #[track_caller]
    pub fn wait_until_written(&self, session: &str, kind: &str, text: &str) {
        let is_it = |line: &str| {
            let entry: Value = serde_json::from_str(line).unwrap_or_default();
            entry["type"] == kind && entry["message"].to_string().contains(text)
        };
        for _ in 0..3000 {
            let written = self.find_transcript(session).and_then(|path| fs::read_to_string(path).ok());
            if written.unwrap_or_default().lines().any(is_it) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{text} was never written by {kind}");
    }
}

/// Returns the folder of this process's homes. What tests share lives as long as their process and is never dropped, so
/// that each process clears away what those before it left.
fn homes() -> &'static Path {
    static HOMES: LazyLock<PathBuf> = LazyLock::new(|| {
        // Each person has a folder: nobody can write to another's.
        let person = std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap());
        let all = tempfile::env::temp_dir().join(format!("rethread-homes-{person}"));
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let is_over = !Path::new("/proc").join(entry.file_name()).is_dir();
            if is_over {
                // Another process may be clearing it away too.
                drop(fs::remove_dir_all(entry.path()));
            }
        }
        let own = all.join(std::process::id().to_string());
        fs::create_dir_all(&own).unwrap();
        own
    });
    &HOMES
}

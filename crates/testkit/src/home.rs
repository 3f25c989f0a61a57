//! A person's home in a temporary folder, with an API of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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

    /// Returns the CLI, ready to be run in the project.
    pub fn claude(&self) -> Claude<'_> {
        Claude::new(self)
    }

    /// Returns the transcript of a session, wherever it is.
    pub fn transcript(&self, session: &str) -> PathBuf {
        let projects = self.config().join("projects");
        let mut folders = fs::read_dir(&projects).into_iter().flatten().flatten();
        let found = folders.find_map(|folder| {
            let file = folder.path().join(format!("{session}.jsonl"));
            file.is_file().then_some(file)
        });
        found.unwrap_or_else(|| panic!("no transcript of {session} beneath {}", projects.display()))
    }
}

/// Returns the folder of this process's homes. What tests share lives as long as their process and is never dropped, so
/// that each process clears away what those before it left.
fn homes() -> &'static Path {
    static HOMES: LazyLock<PathBuf> = LazyLock::new(|| {
        let all = tempfile::env::temp_dir().join("rethread-homes");
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

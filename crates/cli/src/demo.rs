//! A demonstration: a project of its own, and an agent without a model that really edits files in it.

mod agent;
mod conversation;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub(crate) use agent::play;

/// The first argument of a program that is to be the agent. Nobody types it.
pub(crate) const SIGN: &str = "__demo_agent";

/// Where the demonstration takes place; gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Demo {
    folder: TempDir,
}

impl Demo {
    /// Makes the project, and the program that is the agent.
    pub(crate) fn new() -> std::io::Result<Self> {
        let demo = Self { folder: tempfile::Builder::new().prefix("rethread-demo-").tempdir()? };
        fs::create_dir_all(demo.project())?;
        fs::create_dir_all(demo.claude().join("projects"))?;
        fs::write(
            demo.project().join("README.md"),
            "# A demo project\n\nThe agent of this demo edits the files here.\n",
        )?;
        fs::write(demo.project().join("greeting.txt"), "Hello.\n")?;
        let own = std::env::current_exe()?;
        let script =
            format!("#!/bin/sh\nexec '{}' {SIGN} \"$@\"\n", own.display().to_string().replace('\'', "'\\''"));
        fs::write(demo.agent(), script)?;
        fs::set_permissions(demo.agent(), fs::Permissions::from_mode(0o755))?;
        Ok(demo)
    }

    /// Returns the folder of everything.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the store, and the keeper's folder in it. The project is elsewhere: what is the store's is never captured.
    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path().join("demo-project")
    }

    pub(crate) fn claude(&self) -> PathBuf {
        self.path().join("claude")
    }

    pub(crate) fn agent(&self) -> PathBuf {
        self.path().join("demo-agent")
    }
}

//! A demonstration: a project of its own, and an agent without a model that really edits files in it.

mod agent;
mod conversation;
mod stage;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rethread_keeper::{Agent, Settings};
use rethread_store::{FileBackend, Options, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use agent::play;
pub(crate) use stage::Stage;

use crate::keeper_place::KeeperPlace;

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

    /// Returns how its keeper is started: nothing in it is the person's own.
    pub(crate) fn settings(&self, listen: Option<SocketAddr>) -> Settings {
        let backend = FileBackend::new(self.home());
        let mut settings = Settings::new(self.keeper().home, Store::new(backend, Options::default()));
        settings.listen = listen.unwrap_or(settings.listen);
        settings.claude_folder = Some(self.claude());
        settings.cache = self.path().join("cache");
        settings.trash = self.path().join("trash");
        let config = ("CLAUDE_CONFIG_DIR".to_owned(), self.claude().display().to_string());
        settings.agent = Some(Agent { program: self.agent(), environment: vec![config] });
        settings.allowed_roots = vec![self.project()];
        settings.demo = true;
        settings
    }

    /// Has the agent begin, as soon as its keeper answers; returns the session.
    pub(crate) fn perform(
        &self,
    ) -> impl Future<Output = Result<String, rethread_keeper::Error>> + Send + use<> {
        let (client, cwd) = (self.keeper().client(), self.project());
        async move {
            let body = json!({ "cwd": cwd, "name": "Demo: greet the world", "prompt": "Greet the world." });
            let card: Value = client.post("/sessions", &body).await?;
            Ok(card["session_id"].as_str().unwrap_or_default().to_owned())
        }
    }

    pub(crate) fn keeper(&self) -> KeeperPlace {
        KeeperPlace { home: self.home().join("keeper") }
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

    /// Returns Claude Code's folder. It is called as in a home, so that the page shows paths from there.
    pub(crate) fn claude(&self) -> PathBuf {
        self.path().join(".claude")
    }

    pub(crate) fn agent(&self) -> PathBuf {
        self.path().join("demo-agent")
    }
}

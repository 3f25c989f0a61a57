//! A demonstration: a project of its own, and an agent without a model that really edits files in it.

mod agent;
mod conversation;
mod place;
mod stage;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use rethread_keeper::{Agent, Settings};
use rethread_store::{FileBackend, Options, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use agent::play;
pub(crate) use place::{DemoPlace, is_marked};
pub(crate) use stage::Stage;

use crate::keeper_place::KeeperPlace;
use crate::native::Native;

/// The first argument of a program that is to be the agent. Nobody types it.
pub(crate) const SIGN: &str = "__demo_agent";

/// What a person is told with every answer about it.
pub(crate) const LABEL: &str =
    "This is the demo: its agent is a script, and everything is in a temporary folder.";

/// Where the demonstration takes place; gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Demo {
    folder: TempDir,
}

impl Demo {
    /// Makes the project, and the program that is the agent.
    pub(crate) fn new() -> std::io::Result<Self> {
        let demo = Self { folder: tempfile::Builder::new().prefix("rethread-demo-").tempdir()? };
        let place = demo.place();
        fs::create_dir_all(place.project())?;
        fs::create_dir_all(place.claude().join("projects"))?;
        fs::write(
            place.project().join("README.md"),
            "# A demo project\n\nThe agent of this demo edits the files here.\n",
        )?;
        fs::write(place.project().join("greeting.txt"), "Hello.\n")?;
        let own = std::env::current_exe()?;
        let script =
            format!("#!/bin/sh\nexec '{}' {SIGN} \"$@\"\n", own.display().to_string().replace('\'', "'\\''"));
        fs::write(place.agent(), script)?;
        fs::set_permissions(place.agent(), fs::Permissions::from_mode(0o755))?;
        fs::create_dir_all(demo.keeper().home)?;
        fs::write(place.mark(), "")?;
        Ok(demo)
    }

    /// Returns how its keeper is started: nothing in it is the person's own.
    pub(crate) fn settings(&self, listen: Option<SocketAddr>) -> Settings {
        let (place, native) = (self.place(), Native::of_demo(&self.place()));
        let backend = FileBackend::new(place.home());
        let mut settings = Settings::new(self.keeper().home, Store::new(backend, Options::default()));
        settings.listen = listen.unwrap_or(settings.listen);
        settings.claude_folder = Some(place.claude());
        settings.cache = native.cache().unwrap_or(settings.cache);
        settings.trash = native.trash().unwrap_or(settings.trash);
        settings.agent = Some(Agent { program: place.agent(), environment: native.environment() });
        settings.allowed_roots = vec![place.project()];
        settings.demo = true;
        settings
    }

    /// Has the agent begin, as soon as its keeper answers; returns the session.
    pub(crate) fn perform(
        &self,
    ) -> impl Future<Output = Result<String, rethread_keeper::Error>> + Send + use<> {
        let (client, cwd) = (self.keeper().client(), self.place().project());
        async move {
            let body = json!({ "cwd": cwd, "name": "Demo: greet the world", "prompt": "Greet the world." });
            let card: Value = client.post("/sessions", &body).await?;
            Ok(card["session_id"].as_str().unwrap_or_default().to_owned())
        }
    }

    pub(crate) fn keeper(&self) -> KeeperPlace {
        KeeperPlace { home: self.place().home().join("keeper") }
    }

    pub(crate) fn place(&self) -> DemoPlace {
        DemoPlace::new(self.folder.path())
    }
}

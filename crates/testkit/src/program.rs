//! The real programs of others, each pinned to a version, installed once outside the clone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The version of Claude Code that tests use, unless `CLAUDE_VERSION` names another.
pub const PINNED: &str = "2.1.325";

/// The Claude Code CLI.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file to run.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
}

impl Program {
    /// Returns the CLI, installed if need be; `None` where that is impossible.
    pub fn find() -> Option<&'static Self> {
        static FOUND: LazyLock<Option<Program>> = LazyLock::new(|| {
            let version = std::env::var("CLAUDE_VERSION").unwrap_or_else(|_| PINNED.into());
            let path = setup(&["claude", &version])?.join("node_modules/.bin/claude");
            Some(Program { path, version })
        });
        FOUND.as_ref()
    }

    /// Returns whether this is at least a version.
    pub fn is_at_least(&self, version: &str) -> bool {
        let numbers =
            |text: &str| text.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
        numbers(&self.version) >= numbers(version)
    }
}

/// The official agent SDK for TypeScript.
#[derive(Clone, Debug)]
pub struct Sdk {
    folder: PathBuf,
}

impl Sdk {
    /// Returns the SDK, installed if need be; `None` where that is impossible.
    pub fn find() -> Option<&'static Self> {
        static FOUND: LazyLock<Option<Sdk>> = LazyLock::new(|| Some(Sdk { folder: setup(&["agent-sdk"])? }));
        FOUND.as_ref()
    }

    /// Returns the file that says what it offers.
    pub fn types(&self) -> PathBuf {
        self.folder.join("node_modules/@anthropic-ai/claude-agent-sdk/sdk.d.ts")
    }

    /// Returns a command that runs a module with the SDK at hand, for a Claude configuration folder.
    pub fn command(&self, config: &Path, module: &str) -> Command {
        let mut command = Command::new("node");
        command.args(["--input-type=module", "-e", module]).current_dir(&self.folder);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", config).env("CLAUDE_CONFIG_DIR", config);
        command
    }
}

/// The official agent SDK for Python.
#[derive(Clone, Debug)]
pub struct PythonSdk {
    folder: PathBuf,
}

impl PythonSdk {
    /// Returns the SDK, installed if need be; `None` where that is impossible.
    pub fn find() -> Option<&'static Self> {
        static FOUND: LazyLock<Option<PythonSdk>> =
            LazyLock::new(|| Some(PythonSdk { folder: setup(&["agent-sdk-python"])? }));
        FOUND.as_ref()
    }

    /// Returns a command that runs a program with the SDK at hand, for a Claude configuration folder.
    pub fn command(&self, config: &Path, program: &str) -> Command {
        let mut command = Command::new("python3");
        command.args(["-c", program]).env("PYTHONPATH", &self.folder);
        command.env_remove("ANTHROPIC_API_KEY").env("HOME", config).env("CLAUDE_CONFIG_DIR", config);
        command
    }
}

/// Returns the folder of something that `scripts/setup` knows, installed if need be; `None` where that is impossible.
pub fn package(name: &str) -> Option<PathBuf> {
    setup(&[name])
}

/// Has `scripts/setup` install something, and returns the folder it is in.
fn setup(words: &[&str]) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/setup");
    let output = Command::new(script).args(words).stderr(Stdio::inherit()).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| folder.trim().into())
}

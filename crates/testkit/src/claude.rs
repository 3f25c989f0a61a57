//! One run of the real CLI.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::conversation::Conversation;
use crate::home::Home;

/// The CLI, ready to be run.
#[derive(Debug)]
pub struct Claude<'a> {
    home: &'a Home,
    command: Command,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 if it was killed.
    pub code: i32,
    /// What it printed.
    pub out: String,
    /// What it complained about.
    pub err: String,
}

impl<'a> Claude<'a> {
    pub(crate) fn new(home: &'a Home) -> Self {
        let mut command = Command::new(&home.program().path);
        command.current_dir(home.project()).env_clear().envs(home.environment());
        command.arg("-p").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { home, command }
    }

    /// Adds arguments.
    pub fn args<T: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.command.args(words);
        self
    }

    /// Begins a session of this id.
    pub fn session(self, id: &str) -> Self {
        self.args(["--session-id", id])
    }

    /// Resumes a session.
    pub fn resume(self, id: &str) -> Self {
        self.args(["--resume", id])
    }

    /// Asks nobody before it uses a tool.
    pub fn bypassing(self) -> Self {
        self.args(["--permission-mode", "bypassPermissions"])
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs somewhere else than in the project.
    pub fn inside(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Asks one thing and waits for the end.
    pub fn ask(self, prompt: impl Display) -> Ran {
        let child = self.start(prompt);
        Ran::of(child)
    }

    /// Asks one thing, which must be answered well.
    #[track_caller]
    pub fn asked(self, prompt: impl Display) -> Ran {
        let ran = self.ask(prompt);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    /// Asks one thing, and does not wait.
    pub fn start(mut self, prompt: impl Display) -> Child {
        self.command.arg(prompt.to_string());
        self.command.spawn().unwrap()
    }

    /// Holds a conversation over pipes.
    pub fn converse(mut self) -> Conversation {
        self.command.args(["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
        Conversation::with(self.command.stdin(Stdio::piped()).spawn().unwrap())
    }

    /// Resumes a session with a prompt, and returns the messages that the API got first.
    #[track_caller]
    pub fn messages_on_resume(self, id: &str, prompt: &str) -> Vec<Value> {
        let api = self.home.api();
        // Others may be asking in this home at the same time.
        let prompt = format!("{prompt} {id}");
        let before = api.requests().len();
        let ran = self.resume(id).ask(&prompt);
        let asked = api.requests().into_iter().skip(before).collect::<Vec<_>>().into_iter();
        let sent = asked.map(|request| request.body["messages"].clone());
        let sent = sent.filter(|messages| messages.to_string().contains(&prompt));
        let sent = sent.filter_map(|messages| messages.as_array().cloned());
        // Some versions also ask what a prompt is about, without what came before it.
        let whole = sent.rev().max_by_key(Vec::len);
        whole.unwrap_or_else(|| panic!("nothing was asked: {ran:?}"))
    }
}

impl Ran {
    /// Waits for a process.
    pub fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

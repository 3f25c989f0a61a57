//! An agent that speaks Claude Code's protocol without being Claude Code, and misbehaves as it is told.
//!
//! A test's own program becomes the agent when it is started with the right environment, so that there is nothing to be
//! installed: call [`ScriptedAgent::serve_if_asked`] first thing in `main`.

use std::env;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The variable that says how to behave.
const BEHAVIOUR: &str = "SCRIPTED_AGENT";
/// The variable that names the file where the agent writes who it is, and whom it started.
const FAMILY: &str = "SCRIPTED_AGENT_FAMILY";

/// An agent that was told how to behave.
#[derive(Clone, Debug)]
pub struct ScriptedAgent {
    behaviour: Behaviour,
    family: PathBuf,
}

macro_rules! behaviours {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// How an agent behaves.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Behaviour {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Behaviour {
            /// Every behaviour there is.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

behaviours! {
    /// Answers everything.
    Polite,
    /// Never says a word.
    Silent,
    /// Prints only what is no JSON.
    Babbling,
    /// Prints notes and broken lines between its messages.
    Noisy,
    /// Stops in the middle of a line.
    Torn,
    /// Sends a line of 64 MB.
    Huge,
    /// Sends what is no UTF-8.
    Mangled,
    /// Sends messages without end.
    Flooding,
    /// Complains without end.
    Complaining,
    /// Asks the host without end.
    Asking,
    /// Ends before it is asked anything.
    Stillborn,
    /// Ends in the middle of a turn.
    Dying,
    /// Does not end when it is told that no more will come.
    Lingering,
    /// Neither that, nor when it is asked by a signal.
    Stubborn,
    /// Leaves others behind that hold its pipes.
    Prolific,
    /// Listens no more after the first request.
    Deaf,
    /// Says no more after the first request, and lives on.
    Mute,
    /// Answers requests that nobody made, and its own twice.
    Confused,
    /// Sends messages of kinds that nobody knows, nested deeply.
    Novel,
    /// Sends one byte at a time.
    Dripping,
    /// Refuses every request.
    Refusing,
}

impl ScriptedAgent {
    /// Returns an agent that writes down who belongs to it.
    pub fn new(behaviour: Behaviour, family: impl Into<PathBuf>) -> Self {
        Self { behaviour, family: family.into() }
    }

    /// Returns the environment that makes this program the agent.
    pub fn environment(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        vec![(BEHAVIOUR, format!("{:?}", self.behaviour).into()), (FAMILY, self.family.clone().into())]
    }

    /// Returns the processes that it was, or started, and that still live.
    pub fn survivors(&self) -> Vec<u32> {
        let family = std::fs::read_to_string(&self.family).unwrap_or_default();
        family.lines().filter_map(|line| line.parse().ok()).filter(|pid| is_alive(*pid)).collect()
    }

    /// Behaves as the environment says, and returns whether it said so.
    pub fn serve_if_asked() -> bool {
        let asked = env::var(BEHAVIOUR).ok();
        let behaviour = Behaviour::ALL.iter().find(|known| Some(format!("{known:?}")) == asked);
        let Some(behaviour) = behaviour else { return false };
        if env::args().any(|word| word == "--version") {
            drop(writeln!(io::stdout(), "2.1.325 (Claude Code)"));
            return true;
        }
        let family = PathBuf::from(env::var_os(FAMILY).expect("an agent has a family"));
        // Whoever listens may leave at any time.
        drop(Self::new(*behaviour, family).serve());
        true
    }

    fn serve(&self) -> io::Result<()> {
        if self.behaviour == Behaviour::Stubborn && env::var_os("SCRIPTED_AGENT_IGNORES").is_none() {
            // Only a shell can have a program ignore a signal without calling the system by hand.
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "trap '' TERM; exec \"$0\""]).arg(env::current_exe()?);
            shell.env("SCRIPTED_AGENT_IGNORES", "1");
            return Err(std::os::unix::process::CommandExt::exec(&mut shell));
        }
        register(&self.family, std::process::id());
        match self.behaviour {
            Behaviour::Silent => forever(),
            Behaviour::Stillborn => {
                writeln!(io::stderr(), "no luck today")?;
                std::process::abort();
            }
            Behaviour::Babbling => {
                write!(io::stdout(), "Hello there\n[1,2]\nnull\n\"text\"\n7\n")?;
                io::stdout().flush()?;
                forever();
            }
            Behaviour::Complaining => {
                thread::spawn(|| {
                    let line = "x".repeat(1000);
                    while writeln!(io::stderr(), "{line}").is_ok() {}
                });
            }
            Behaviour::Prolific => self.leave_others()?,
            _ => {}
        }
        for line in io::stdin().lock().lines() {
            let line: Value = serde_json::from_str(&line?).unwrap_or_default();
            match line["type"].as_str() {
                Some("control_request") => self.answer(&line)?,
                Some("user") => self.turn(&line)?,
                _ => {}
            }
        }
        if matches!(self.behaviour, Behaviour::Lingering | Behaviour::Stubborn) {
            forever();
        }
        Ok(())
    }

    fn answer(&self, request: &Value) -> io::Result<()> {
        let id = &request["request_id"];
        let success = json!({ "subtype": "success", "request_id": id, "response": { "commands": [] } });
        let response = match self.behaviour {
            Behaviour::Refusing => {
                json!({ "subtype": "error", "request_id": id, "error": "I would rather not" })
            }
            _ => success,
        };
        if self.behaviour == Behaviour::Confused {
            say(
                json!({ "type": "control_response", "response": { "subtype": "success", "request_id": "nobody's" } }),
            )?;
            say(json!({ "type": "control_response", "response": "what?" }))?;
            say(json!({ "type": "control_cancel_request", "request_id": "nobody's" }))?;
            say(json!({ "type": "control_response", "response": response }))?;
        }
        if self.behaviour == Behaviour::Dripping {
            let line = format!("{}\n", json!({ "type": "control_response", "response": response }));
            for byte in line.bytes() {
                io::stdout().write_all(&[byte])?;
                io::stdout().flush()?;
            }
            return Ok(());
        }
        say(json!({ "type": "control_response", "response": response }))?;
        match self.behaviour {
            Behaviour::Deaf => forever(),
            Behaviour::Mute => {
                let nothing = File::options().write(true).open("/dev/null")?;
                rustix::stdio::dup2_stdout(nothing)?;
                forever()
            }
            _ => Ok(()),
        }
    }

    fn turn(&self, prompt: &Value) -> io::Result<()> {
        say(
            json!({ "type": "system", "subtype": "init", "session_id": "s", "cwd": "/", "model": "m", "tools": [] }),
        )?;
        match self.behaviour {
            Behaviour::Noisy => {
                write!(
                    io::stdout(),
                    "[Debug] hello\n{{broken\n\n\r\n{{\"type\":\"assistant\",\"message\":}}\n"
                )?;
            }
            Behaviour::Torn => {
                write!(io::stdout(), "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"te")?;
                io::stdout().flush()?;
                std::process::abort();
            }
            Behaviour::Dying => std::process::abort(),
            Behaviour::Huge => {
                let (mut out, piece) = (io::stdout().lock(), [b'x'; 64_000]);
                out.write_all(b"{\"type\":\"assistant\",\"text\":\"")?;
                for _ in 0..1000 {
                    out.write_all(&piece)?;
                }
                out.write_all(b"\"}\n")?;
            }
            Behaviour::Mangled => {
                let line = assistant("MARK").to_string();
                let (before, after) = line.split_once("MARK").expect("it is there");
                io::stdout()
                    .write_all(&[before.as_bytes(), b"a\xff\xfeb", after.as_bytes(), b"\n"].concat())?;
            }
            Behaviour::Flooding => loop {
                say(assistant(&"x".repeat(1000)))?;
            },
            Behaviour::Asking => {
                for number in 0..3000 {
                    let subtype = if number % 2 == 0 { "can_use_tool" } else { "quite_new" };
                    let request = json!({ "subtype": subtype, "tool_name": "Bash", "input": {} });
                    say(
                        json!({ "type": "control_request", "request_id": format!("r{number}"), "request": request }),
                    )?;
                }
            }
            Behaviour::Novel => {
                let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
                writeln!(io::stdout(), r#"{{"type":"brand_new","deep":{deep}}}"#)?;
                writeln!(
                    io::stdout(),
                    r#"{{"type":"assistant","deep":{deep},"message":{{"content":[{{"type":"new"}}]}}}}"#
                )?;
                say(json!({ "type": "system", "subtype": "brand_new" }))?;
                say(
                    json!({ "type": "result", "subtype": "error_quite_new", "user_message_uuids": ["nobody's"] }),
                )?;
                say(json!({ "no": "type" }))?;
            }
            _ => {}
        }
        say(assistant("hello"))?;
        say(
            json!({ "type": "result", "subtype": "success", "result": "hello", "is_error": false, "session_id": "s",
            "user_message_uuids": [prompt["uuid"]] }),
        )
    }

    /// Starts children: one that stays, one with a session of its own, and one that lost its parents, too.
    fn leave_others(&self) -> io::Result<()> {
        let register = "echo $$ >> \"$0\"; exec sleep 600";
        for leaving in [&["sh", "-c"][..], &["setsid", "sh", "-c"], &["setsid", "-f", "sh", "-c"]] {
            let mut child = Command::new(leaving[0]);
            child.args(&leaving[1..]).arg(register).arg(&self.family).stdin(Stdio::null()).spawn()?;
        }
        let there = |count| {
            (0..1000).any(|_| {
                thread::sleep(Duration::from_millis(5));
                std::fs::read_to_string(&self.family).is_ok_and(|family| family.lines().count() >= count)
            })
        };
        assert!(there(4), "not all children began");
        Ok(())
    }
}

fn assistant(text: &str) -> Value {
    json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } })
}

fn say(line: Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn forever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(600));
    }
}

fn register(family: &Path, pid: u32) {
    let mut file = File::options().create(true).append(true).open(family).unwrap();
    writeln!(file, "{pid}").unwrap();
}

/// Returns whether a process lives; one that nobody has waited for yet does not.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

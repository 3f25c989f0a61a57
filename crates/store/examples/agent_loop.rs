//! A complete little agent loop: a scripted model, real tools, and a recorder that lets it be stopped and resumed.
//!
//! ```console
//! $ cargo run --example agent_loop -- --store /tmp/s --dir /tmp/w --turns 2
//! $ cargo run --example agent_loop -- --store /tmp/s --dir /tmp/w --continue
//! $ cargo run --example agent_loop -- --store /tmp/s --dir /tmp/w --resume ID --at ENTRY --fork
//! ```
//! Without `--store` it does the same and keeps nothing.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rethread_store::{
    Entry, EntryId, FileBackend, Finish, Fork, NewSession, Options, Recorder, Recording, Resume, SessionId,
    Store,
};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TASK: &str = "Write a greeting to hello.txt, check it, and have it reviewed.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args, &mut std::io::stdout()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            // If even standard error is gone, the exit code is all that is left to say it with.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a run came to.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) session: SessionId,
    pub(crate) exit_reason: &'static str,
    pub(crate) turn_count: u64,
    pub(crate) messages: Vec<Entry>,
}

/// Runs the program.
pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Outcome<Ran> {
    let args = Args::parse(args)?;
    let store = args.store.as_ref().map(|root| Store::new(FileBackend::new(root), Options::default()));
    let ran = pollster::block_on(run_loop(&args, store.clone(), out));
    let closed = store.map_or(Ok(()), |store| store.close());
    let ran = ran?;
    closed?;
    Ok(ran)
}

/// The loop itself: initialize, restore, persist after every step, finalize.
async fn run_loop(args: &Args, store: Option<Store>, out: &mut dyn Write) -> Outcome<Ran> {
    let recorder = Recorder::initialize(store, args.recording()).await?;
    let restored = recorder.restore().await?;
    let mut agent = Agent {
        recorder: &recorder,
        dir: &args.dir,
        messages: restored.messages.entries().cloned().collect(),
        turn_count: restored.turn_count,
        total_tokens: restored.total_tokens,
        total_cost_usd: restored.total_cost_usd,
        out,
    };
    writeln!(agent.out, "session {}: {} messages", recorder.id(), agent.messages.len())?;
    for gap in &restored.messages.gaps {
        writeln!(agent.out, "  {gap}")?;
    }
    match &args.prompt {
        Some(prompt) => agent.say("user", prompt)?,
        None if agent.messages.is_empty() => agent.say("user", TASK)?,
        None => {}
    }
    let exit_reason = agent.work(args.turns).await?;
    let Agent { messages, turn_count, total_tokens, total_cost_usd, .. } = agent;
    let finish = Finish::because(exit_reason).turns(turn_count).tokens(total_tokens).cost_usd(total_cost_usd);
    recorder.finalize(finish).await?;
    writeln!(out, "{exit_reason} after {turn_count} turns, {total_tokens} tokens, {total_cost_usd:.4} USD")?;
    Ok(Ran { session: recorder.id().clone(), exit_reason, turn_count, messages })
}

struct Agent<'a> {
    recorder: &'a Recorder,
    dir: &'a Path,
    messages: Vec<Entry>,
    turn_count: u64,
    total_tokens: u64,
    total_cost_usd: f64,
    out: &'a mut dyn Write,
}

impl Agent<'_> {
    /// Goes on from wherever the conversation stands. Where a former run died between a call and its result, the
    /// call is made now.
    async fn work(&mut self, turns: u64) -> Outcome<&'static str> {
        let stop_at = self.turn_count + turns;
        loop {
            let conversation = self.conversation()?;
            if let Some(call) = open_call(&conversation) {
                let result = self.execute(&call).await.unwrap_or_else(|error| format!("error: {error}"));
                self.persist(json!({ "role": "tool", "tool_call_id": call["id"], "content": result }))?;
            } else if conversation.last().is_some_and(|last| last["role"] == "assistant") {
                return Ok("end_turn");
            } else if self.turn_count == stop_at {
                return Ok("max_turns");
            } else {
                let reply = model(&conversation);
                self.turn_count += 1;
                self.total_tokens += reply.to_string().len() as u64 / 4;
                self.total_cost_usd += 0.0015;
                self.persist(reply)?;
            }
        }
    }

    fn say(&mut self, role: &str, content: &str) -> Outcome<()> {
        self.persist(json!({ "role": role, "content": content }))
    }

    /// Adds a message to the conversation, in memory and in the session.
    fn persist(&mut self, message: Value) -> Outcome<()> {
        let uuid = EntryId::generate();
        let mut entry = json!({ "uuid": uuid, "timestamp": jiff::Timestamp::now() });
        if let (Some(entry), Value::Object(message)) = (entry.as_object_mut(), &message) {
            entry.extend(message.clone());
        }
        writeln!(self.out, "  {uuid} {}", headline(&message))?;
        let entry = Entry::of(&entry)?;
        self.recorder.persist_transcript(Entry::of(&json!({ "type": "message", "message": message }))?);
        let persisted = self.recorder.persist(entry.clone());
        if let Some(problem) = persisted.problem {
            writeln!(self.out, "  warning: the session is not recorded as it should be: {problem}")?;
        }
        self.messages.push(entry);
        Ok(())
    }

    async fn execute(&mut self, call: &Value) -> Outcome<String> {
        let argument = |name: &str| call["arguments"][name].as_str().unwrap_or_default();
        match call["name"].as_str() {
            Some("write_file") => {
                std::fs::write(self.file(argument("name"))?, argument("content"))?;
                Ok("written".into())
            }
            Some("read_file") => Ok(std::fs::read_to_string(self.file(argument("name"))?)?),
            Some("review") => self.review(argument("name")).await,
            other => Err(format!("no tool {other:?}").into()),
        }
    }

    /// A subagent with a session of its own.
    async fn review(&mut self, name: &str) -> Outcome<String> {
        let text = std::fs::read_to_string(self.file(name)?)?;
        let verdict = if text.contains("hello") { "It greets. Good." } else { "It does not greet." };
        let child = self.recorder.spawn_child("reviewer").await?;
        child.persist(Entry::of(&json!({ "role": "user", "content": format!("Review: {text}") }))?);
        child.persist(Entry::of(&json!({ "role": "assistant", "content": verdict }))?);
        child.finalize(Finish::because("end_turn").turns(1)).await?;
        writeln!(self.out, "  reviewed in session {}", child.id())?;
        Ok(verdict.into())
    }

    /// A file in the working directory itself and nowhere else.
    fn file(&self, name: &str) -> Outcome<PathBuf> {
        match Path::new(name).file_name() {
            Some(only) if only == name => Ok(self.dir.join(only)),
            _ => Err(format!("{name:?} is not the name of a file here").into()),
        }
    }

    fn conversation(&self) -> Outcome<Vec<Value>> {
        Ok(self.messages.iter().map(|entry| entry.read()).collect::<Result<_, _>>()?)
    }
}

/// The scripted model: what it says next follows from the conversation alone.
fn model(conversation: &[Value]) -> Value {
    let asked = conversation.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
    let first = conversation[..asked].iter().all(|message| message["role"] != "user");
    let results: Vec<&str> = conversation[asked..]
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    let call = |name: &str, arguments: Value| {
        let id = EntryId::generate();
        let calls = json!([{ "id": id, "name": name, "arguments": arguments }]);
        json!({ "role": "assistant", "content": "", "tool_calls": calls })
    };
    match results[..] {
        _ if !first => json!({ "role": "assistant", "content": "That is all I know." }),
        [] => call("write_file", json!({ "name": "hello.txt", "content": "hello, world\n" })),
        [_] => call("read_file", json!({ "name": "hello.txt" })),
        [_, _] => call("review", json!({ "name": "hello.txt" })),
        [_, text, verdict, ..] => {
            let answer = format!("hello.txt says {:?}. {verdict}", text.trim());
            json!({ "role": "assistant", "content": answer })
        }
    }
}

/// The first call of the last assistant that has no result yet.
fn open_call(conversation: &[Value]) -> Option<Value> {
    let last = conversation.iter().rposition(|message| message["role"] == "assistant")?;
    let answered =
        |call: &Value| conversation[last..].iter().any(|message| message["tool_call_id"] == call["id"]);
    conversation[last]["tool_calls"].as_array()?.iter().find(|call| !answered(call)).cloned()
}

fn headline(message: &Value) -> String {
    let role = message["role"].as_str().unwrap_or("?");
    match message["tool_calls"][0]["name"].as_str() {
        Some(tool) => format!("{role} calls {tool}"),
        None => format!("{role}: {}", message["content"].as_str().unwrap_or_default().trim()),
    }
}

/// What was typed.
#[derive(Debug, Default)]
struct Args {
    store: Option<PathBuf>,
    dir: PathBuf,
    turns: u64,
    prompt: Option<String>,
    resume: Option<Resume>,
    at: Option<EntryId>,
    fork: bool,
}

impl Args {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut parsed = Self { dir: std::env::current_dir()?, turns: 20, ..Self::default() };
        let (mut args, mut latest) = (args.iter(), false);
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--store" => parsed.store = Some(value()?.into()),
                "--dir" => parsed.dir = value()?.into(),
                "--turns" => parsed.turns = value()?.parse()?,
                "--prompt" => parsed.prompt = Some(value()?.clone()),
                "--resume" => parsed.resume = Some(Resume::session(value()?.parse()?)),
                "--at" => parsed.at = Some(value()?.parse()?),
                "--continue" => latest = true,
                "--fork" => parsed.fork = true,
                _ => return Err(format!("unknown argument {arg}").into()),
            }
        }
        if latest {
            parsed.resume = Some(Resume::latest(&parsed.dir));
        }
        Ok(parsed)
    }

    fn recording(&self) -> Recording {
        match self.resume.clone() {
            None => Recording::new(NewSession::at(&self.dir).model("scripted")),
            Some(mut resume) => {
                resume.at = self.at.clone();
                resume.fork = self.fork.then(Fork::default);
                Recording::resume(resume)
            }
        }
    }
}

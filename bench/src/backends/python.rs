//! The session stores that come with other agent frameworks, in a process of their own that measures itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use rethread_store::Record;
use rethread_store::backend::Durability;
use rethread_store::view::Message;
use serde::Deserialize;

use super::milliseconds;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::corpus::{Corpus, entries};
use crate::failure::Outcome;
use crate::ours;
use crate::row::{Row, Unit};
use crate::stopwatch::rate;

/// How many messages are loaded, and how many are added at most: a checkpoint holds all before it.
const LOADED: usize = 10_000;
const ADDED: usize = 300;

/// What both do: they read messages from a file and add one after the other, or make a session of all of them and then
/// read it.
const OPENAI: &str = "
import asyncio, json, sys, time
from agents.memory import SQLiteSession
task, messages, folder = sys.argv[1:]
messages = [json.loads(line) for line in open(messages)]
async def main():
    session = SQLiteSession('parser', folder + '/sessions.db')
    if task == 'append':
        begun = time.perf_counter()
        for message in messages:
            await session.add_items([message])
        return time.perf_counter() - begun, len(messages)
    if task == 'make':
        await session.add_items(messages)
        return 0, len(messages)
    begun = time.perf_counter()
    found = await session.get_items()
    return time.perf_counter() - begun, len(found)
seconds, found = asyncio.run(main())
print(json.dumps(dict(seconds=seconds, found=found)))";

/// A checkpoint for each message, as a graph makes one for each step.
const LANGGRAPH: &str = "
import json, sys, time
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
task, messages, folder = sys.argv[1:]
messages = [json.loads(line) for line in open(messages)]
thread = {'configurable': {'thread_id': 'parser', 'checkpoint_ns': ''}}
def put(saver, config, said):
    checkpoint = empty_checkpoint()
    checkpoint['channel_values'] = {'messages': said}
    return saver.put(config, checkpoint, {}, {})
with SqliteSaver.from_conn_string(folder + '/sessions.db') as saver:
    begun, found = time.perf_counter(), len(messages)
    if task == 'append':
        config, said = thread, []
        for message in messages:
            said.append(message)
            config = put(saver, config, said)
    elif task == 'make':
        put(saver, thread, messages)
    else:
        found = len(saver.get_tuple(thread).checkpoint['channel_values']['messages'])
    seconds = time.perf_counter() - begun
print(json.dumps(dict(seconds=seconds, found=found)))";

struct Framework {
    name: &'static str,
    /// What `scripts/setup` calls it.
    package: &'static str,
    program: &'static str,
}

const FRAMEWORKS: [Framework; 2] = [
    Framework { name: "OpenAI Agents' SQLiteSession", package: "openai-agents", program: OPENAI },
    Framework { name: "LangGraph's SQLite saver", package: "langgraph-sqlite", program: LANGGRAPH },
];

#[derive(Deserialize)]
struct Measured {
    seconds: f64,
    found: usize,
}

impl Framework {
    fn run(&self, task: &str, messages: &Path, folder: &Path, count: usize) -> Outcome<f64> {
        let package = rethread_testkit::package(self.package);
        let package = package.ok_or_else(|| format!("{} cannot be installed", self.package))?;
        let mut command = Command::new("python3");
        command.args(["-c", self.program, task]).arg(messages).arg(folder);
        let output = command.env("PYTHONPATH", package).env("OPENAI_AGENTS_DISABLE_TRACING", "1").output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let measured: Measured = serde_json::from_slice(&output.stdout)?;
        if measured.found == count { Ok(measured.seconds) } else { Err("not all was there".into()) }
    }
}

fn messages_in(folder: PathBuf, lines: &[Bytes]) -> Outcome<PathBuf> {
    let path = folder.join("messages.jsonl");
    let lines: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
    fs::write(&path, lines)?;
    Ok(path)
}

/// One caller, who waits for each message.
pub(super) fn append(bench: &Bench) -> Outcome<Row> {
    let lines = Corpus::new(6).lines(0..bench.scale.durable.min(ADDED));
    let (entries, count) = (entries(&lines)?, lines.len());
    let messages = messages_in(bench.fresh()?, &lines)?;
    let mut contest = Contest::new(
        "sessions of other frameworks: append, one in flight",
        Unit::EntriesPerSecond,
        |folder| {
            let store = ours::store(folder, Durability::Synced);
            let session = ours::create(&store, "parser")?;
            let appended = rate(count, || {
                Ok(entries.iter().try_for_each(|entry| session.append_and_wait(entry.clone()).map(drop))?)
            });
            store.close()?;
            appended
        },
    );
    for framework in &FRAMEWORKS {
        let messages = &messages;
        contest = contest.peer(framework.name, Bar::AtLeast(2.0), move |folder| {
            Ok(count as f64 / framework.run("append", messages, folder, count)?)
        });
    }
    contest.run(bench)
}

/// A session that is opened and read as a whole: as it is handed out, and with a typed view of each message. The others
/// make objects of their language of them.
pub(super) fn load(bench: &Bench) -> Outcome<Vec<Row>> {
    let lines = Corpus::new(7).lines(0..LOADED.min(bench.scale.long));
    let (count, messages) = (lines.len(), messages_in(bench.fresh()?, &lines)?);
    let ours_at = bench.fresh()?;
    let made = ours::store(&ours_at, Durability::Synced);
    ours::create_with(&made, "parser", &lines)?;
    made.close()?;
    let theirs_at = FRAMEWORKS.iter().map(|framework| {
        let folder = bench.fresh()?;
        framework.run("make", &messages, &folder, count)?;
        Ok(folder)
    });
    let theirs_at = theirs_at.collect::<Outcome<Vec<PathBuf>>>()?;
    let load = |look: fn(&[Record]) -> usize| {
        milliseconds(|| {
            let store = ours::store(&ours_at, Durability::Synced);
            let history = pollster::block_on(ours::open(&store, "parser")?.messages())?;
            let found = look(&history.records);
            if found > count / 2 && history.records.len() == count {
                Ok(())
            } else {
                Err("not all was loaded".into())
            }
        })
    };
    let against = |mut contest: Contest<'_>, bar: Bar| {
        for (framework, folder) in FRAMEWORKS.iter().zip(&theirs_at) {
            let (messages, folder) = (messages.clone(), folder.clone());
            contest = contest.peer(framework.name, bar, move |_| {
                Ok(framework.run("load", &messages, &folder, count)? * 1e3)
            });
        }
        contest.run(bench)
    };
    let what = "sessions of other frameworks: load of 10,000 messages";
    let plain = Contest::new(what, Unit::Milliseconds, |_| load(<[Record]>::len));
    let typed = Contest::new(format!("{what}, each typed"), Unit::Milliseconds, |_| load(typed));
    Ok(vec![against(plain, Bar::AtMost(0.2))?, against(typed, Bar::Shown)?])
}

/// Makes a typed view of each message, on two threads. Returns how many are messages.
fn typed(records: &[Record]) -> usize {
    let views =
        |records: &[Record]| records.iter().filter_map(|record| Message::of(record.entry.as_bytes())).count();
    let (one, other) = records.split_at(records.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| views(other));
        views(one) + other.join().unwrap_or_default()
    })
}

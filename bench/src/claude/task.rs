//! What a process of our own is asked to do with frames.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rethread_claude::{ClaudeAgentOptions, ClaudeClient, Frame, Message};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agent::Speech;
use crate::errand::Answer;
use crate::failure::Outcome;

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Read every line of a capture as a message, some times over.
    Parse { capture: PathBuf, times: usize },
    /// Hold a conversation, every message typed.
    Talk(Speech),
    /// Read the same from a bare pipe, every line as JSON.
    Listen(Speech),
}

/// Does it, in this process.
pub(crate) fn run(task: &Task) -> Outcome<Answer> {
    let (seconds, found) = match task {
        Task::Parse { capture, times } => parse(capture, *times)?,
        Task::Talk(speech) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(talk(speech))?
        }
        Task::Listen(speech) => listen(speech)?,
    };
    Ok(Answer { seconds, found, ..Answer::default() })
}

fn parse(capture: &Path, times: usize) -> Outcome<(f64, u64)> {
    let capture = bytes::Bytes::from(std::fs::read(capture)?);
    let (begun, mut count) = (processor_time(), 0);
    for _ in 0..times {
        let mut rest = capture.clone();
        while let Some(end) = memchr::memchr(b'\n', &rest) {
            let line = rest.split_to(end + 1).slice(..end);
            let message = Frame::parse(line)?.message()?;
            count += u64::from(!matches!(std::hint::black_box(&message), Message::Other(_)));
        }
    }
    Ok((processor_time() - begun, count))
}

/// Returns the processor time of this process for the conversation alone, and how many frames came.
async fn talk(speech: &Speech) -> Outcome<(f64, u64)> {
    let options = ClaudeAgentOptions::builder().cli_path(std::env::current_exe()?).check_version(false);
    let mut client = ClaudeClient::new(options.envs(speech.environment()?).build())?;
    client.connect().await?;
    let begun = processor_time();
    let mut answer = client.send_message("speak").await?;
    let mut frames = 0;
    while let Some(message) = answer.next_message().await {
        std::hint::black_box(message?);
        frames += 1;
    }
    let spent = processor_time() - begun;
    client.close().await?;
    Ok((spent, frames - 1))
}

/// Returns the same for whoever only reads lines and parses JSON.
fn listen(speech: &Speech) -> Outcome<(f64, u64)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.envs(speech.environment()?).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut agent = command.spawn()?;
    let (Some(mut input), Some(output)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err("the agent has no pipes".into());
    };
    let mut output = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    writeln!(input, "{}", json!({ "type": "control_request", "request_id": "1" }))?;
    output.read_until(b'\n', &mut line)?;
    let begun = processor_time();
    writeln!(input, "{}", json!({ "type": "user", "uuid": "1" }))?;
    let mut frames = 0;
    loop {
        line.clear();
        output.read_until(b'\n', &mut line)?;
        let frame: Value = serde_json::from_slice(&line)?;
        if frame["type"] == "result" {
            break;
        }
        std::hint::black_box(frame);
        frames += 1;
    }
    let spent = processor_time() - begun;
    drop(input);
    agent.wait()?;
    Ok((spent, frames))
}

fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

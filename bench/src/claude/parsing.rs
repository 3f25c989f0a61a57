//! Frames, from bytes to messages.

use std::path::Path;

use rethread_testkit::PythonSdk;

use super::{Task, capture};
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::{Answer, Errand};
use crate::failure::Outcome;
use crate::row::{Row, Unit};

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let capture = bench.fresh()?.join("capture");
    let frames = capture::record(&capture)?;
    let times = (bench.scale.frames / frames).max(1);
    let expected = (frames * times) as u64;
    let row = Contest::new("frames parsed per second of processor time", Unit::EntriesPerSecond, |_| {
        let task = Task::Parse { capture: capture.clone(), times };
        Ok(expected as f64 / Errand::Claude(task).send(expected)?.seconds)
    })
    .peer("Python SDK: json.loads and parse_message", Bar::AtLeast(3.0), |folder| {
        Ok(expected as f64 / python(folder, &capture, times, expected)?.seconds)
    })
    .run(bench)?;
    Ok(vec![row])
}

/// Has the SDK for Python do the same. It leaves out frames of kinds that it does not know.
fn python(config: &Path, capture: &Path, times: usize, expected: u64) -> Outcome<Answer> {
    let program = format!(
        "import json, time
from claude_agent_sdk._internal.message_parser import parse_message
lines = open({capture:?}, 'rb').read().split(b'\\n')[:-1]
begun, found = time.process_time(), 0
for _ in range({times}):
    for line in lines:
        parse_message(json.loads(line))
        found += 1
seconds = time.process_time() - begun
print(json.dumps(dict(seconds=seconds, found=found, log_bytes_read=0, peak_mebibytes=0)))"
    );
    let sdk = PythonSdk::find().ok_or("the SDK for Python cannot be installed")?;
    let output = sdk.command(config, &program).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let answer: Answer = serde_json::from_slice(&output.stdout)?;
    match answer.found == expected {
        true => Ok(answer),
        false => Err(format!("the SDK read {} frames of {expected}", answer.found).into()),
    }
}

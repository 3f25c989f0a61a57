//! An agent that says a capture again, over its pipes, to whoever asks.

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::Outcome;

/// The variable that makes this program the agent.
const VARIABLE: &str = "BENCH_AGENT";

/// What an agent says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Speech {
    pub(crate) capture: PathBuf,
    /// How many bytes, at least.
    pub(crate) bytes: u64,
}

impl Speech {
    /// Returns the environment that makes this program the agent.
    pub(super) fn environment(&self) -> Outcome<[(&'static str, String); 1]> {
        Ok([(VARIABLE, serde_json::to_string(self)?)])
    }

    /// Returns how many frames that are.
    pub(super) fn frames(&self) -> Outcome<u64> {
        let lengths: Vec<u64> = self.lines()?.iter().map(|line| line.len() as u64).collect();
        let (mut said, mut frames) = (0, 0);
        for length in lengths.iter().cycle() {
            if said >= self.bytes {
                break;
            }
            said += length;
            frames += 1;
        }
        Ok(frames)
    }

    fn lines(&self) -> Outcome<Vec<Vec<u8>>> {
        let capture = std::fs::read(&self.capture)?;
        Ok(capture.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
    }

    fn serve(&self) -> Outcome<()> {
        let lines = self.lines()?;
        let mut out = std::io::stdout().lock();
        for line in std::io::stdin().lock().lines() {
            let line: Value = serde_json::from_str(&line?)?;
            if line["type"] == "control_request" {
                let response =
                    json!({ "subtype": "success", "request_id": line["request_id"], "response": {} });
                writeln!(out, "{}", json!({ "type": "control_response", "response": response }))?;
                out.flush()?;
                continue;
            }
            let mut said = 0;
            for frame in lines.iter().cycle() {
                if said >= self.bytes {
                    break;
                }
                // One write a frame, as the CLI does it.
                out.write_all(frame)?;
                out.flush()?;
                said += frame.len() as u64;
            }
            let result =
                json!({ "type": "result", "subtype": "success", "user_message_uuids": [line["uuid"]] });
            writeln!(out, "{result}")?;
            out.flush()?;
        }
        Ok(())
    }
}

/// Is the agent, if the environment says so, and returns whether it did.
pub(crate) fn serve_if_asked() -> Outcome<bool> {
    let Ok(speech) = std::env::var(VARIABLE) else { return Ok(false) };
    let speech: Speech = serde_json::from_str(&speech)?;
    // Whoever listens may have heard enough.
    drop(speech.serve());
    Ok(true)
}

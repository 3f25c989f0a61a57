//! The design that many agents have: for each message the log is opened, locked, extended and closed, and the
//! metadata is read, changed and written again. Nothing is synced.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::Outcome;

/// A session's folder, as the naive design has it.
pub(crate) struct Naive {
    messages: PathBuf,
    metadata: PathBuf,
    lock: PathBuf,
}

impl Naive {
    /// Makes the folder's first metadata.
    pub(crate) fn create(folder: &Path) -> Outcome<Self> {
        let [messages, metadata, lock] =
            ["messages.jsonl", "metadata.json", "lock"].map(|name| folder.join(name));
        let first = json!({
            "session_id": "abc-123", "created_at": "2026-02-09T10:00:00Z", "model": "claude-opus-4-5",
            "cwd": "/home/ada/parser", "turn_count": 0, "total_cost_usd": 0.0, "exit_reason": "", "agent_name": "",
        });
        std::fs::write(&metadata, first.to_string())?;
        Ok(Self { messages, metadata, lock })
    }

    /// Appends one message.
    pub(crate) fn append(&self, line: &[u8]) -> Outcome<()> {
        let lock = OpenOptions::new().create(true).append(true).open(&self.lock)?;
        lock.lock()?;
        let mut messages = OpenOptions::new().create(true).append(true).open(&self.messages)?;
        messages.write_all(line)?;
        drop(messages);
        let mut metadata: Value = serde_json::from_slice(&std::fs::read(&self.metadata)?)?;
        metadata["turn_count"] = json!(metadata["turn_count"].as_u64().unwrap_or_default() + 1);
        std::fs::write(&self.metadata, metadata.to_string())?;
        Ok(lock.unlock()?)
    }
}

/// Lists sessions as the naive design does: each folder's metadata is read.
pub(crate) fn list(sessions: &Path) -> Outcome<usize> {
    let mut found: Vec<Value> = Vec::new();
    for folder in std::fs::read_dir(sessions)? {
        found.push(serde_json::from_slice(&std::fs::read(folder?.path().join("metadata.json"))?)?);
    }
    found.sort_by(|one, other| other["updated_at"].as_str().cmp(&one["updated_at"].as_str()));
    Ok(found.len())
}

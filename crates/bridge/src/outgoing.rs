//! A stored session as one of Claude Code's own.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rethread_store::view::{Block, Message};
use rethread_store::{Entry, Metadata, Session as Stored};
use rethread_transcripts::{ClaudeFolder, Transcript, Written};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// What writing a session out came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was not there; now it is.
    Written(PathBuf),
    /// It was there, and got what was missing.
    Extended(PathBuf),
    /// It was there, with all that the store has.
    Same(PathBuf),
}

impl Outcome {
    /// Returns the transcript.
    pub fn path(&self) -> &Path {
        match self {
            Outcome::Written(path) | Outcome::Extended(path) | Outcome::Same(path) => path,
        }
    }
}

/// Writes a stored session as one of Claude Code's own that works in a directory; there must be none of its id yet.
pub async fn export(stored: &Stored, claude: &ClaudeFolder, cwd: &Path) -> Result<Written> {
    let metadata = stored.metadata().await?;
    let mut lines = native_lines(stored, cwd).await?;
    lines.extend(labels(&metadata));
    let entries = lines.iter().map(|line| line.bytes.as_slice());
    Ok(claude.write_session(stored.id().as_str(), cwd, entries)?)
}

/// Brings Claude Code's copy of a stored session up to date, so that it can be resumed with all that was said elsewhere.
/// What is here and not in the store is never touched: one that went on by itself in both is an error.
pub async fn write_out(stored: &Stored, claude: &ClaudeFolder, cwd: &Path) -> Result<Outcome> {
    let session = stored.id().as_str();
    let Ok(path) = claude.find(session) else {
        return Ok(Outcome::Written(export(stored, claude, cwd).await?.path));
    };
    let lines = native_lines(stored, cwd).await?;
    let transcript = Transcript::open(&path)?;
    let (chain, mut here) = (transcript.active(), Vec::new());
    let mut reader = transcript.read(&chain);
    while let Some(entry) = reader.next().transpose()? {
        here.extend(entry.text("uuid"));
    }
    let common = here.iter().zip(&lines).take_while(|(here, there)| here.as_str() == there.uuid).count();
    if common == lines.len() {
        return Ok(Outcome::Same(path));
    }
    if common < here.len() {
        return Err(Error::Apart { session: session.to_owned(), common });
    }
    claude.extend_session(session, lines[common..].iter().map(|line| line.bytes.as_slice()))?;
    Ok(Outcome::Extended(path))
}

/// A line of a transcript.
struct Line {
    uuid: String,
    bytes: Vec<u8>,
}

/// Returns what Claude Code itself would have written at the end, where it looks for it: the name and the tag.
fn labels(metadata: &Metadata) -> impl Iterator<Item = Line> {
    let name = metadata
        .name
        .as_ref()
        .map(|name| json!({ "type": "custom-title", "customTitle": name, "sessionId": "" }));
    let tag = metadata.tags.first().map(|tag| json!({ "type": "tag", "tag": tag, "sessionId": "" }));
    let line = |line: Value| Line { uuid: String::new(), bytes: line.to_string().into_bytes() };
    name.into_iter().chain(tag).map(line)
}

async fn native_lines(stored: &Stored, cwd: &Path) -> Result<Vec<Line>> {
    let history = stored.messages().await?;
    let mut lines = Vec::with_capacity(history.records.len());
    let (mut known, mut before): (HashSet<String>, Option<String>) = (HashSet::new(), None);
    for entry in history.entries() {
        let Some(mut line) = native_entry(entry, &cwd.to_string_lossy()) else { continue };
        // A call's answer follows its own call; whatever follows nothing here follows the one before it.
        let parent = line.json["parentUuid"].as_str().filter(|parent| known.contains(*parent));
        let parent = parent.map(str::to_owned).or(before.take());
        let parent = if line.json["subtype"] == "compact_boundary" { Value::Null } else { json!(parent) };
        let uuid = line.json["uuid"].as_str().unwrap_or_default().to_owned();
        let bytes = match line.is_own && line.json["parentUuid"] == parent {
            // What need not change stays as it is, to the byte: so it is known again when it comes back.
            true => entry.as_bytes().to_vec(),
            false => {
                line.json["parentUuid"] = parent;
                line.json.to_string().into_bytes()
            }
        };
        before = Some(uuid.clone());
        known.insert(uuid.clone());
        lines.push(Line { uuid, bytes });
    }
    Ok(lines)
}

/// An entry as Claude Code would have written it.
struct NativeEntry {
    json: Value,
    /// It did.
    is_own: bool,
}

/// Returns an entry as Claude Code would have written it; `None` if it is no part of a conversation.
fn native_entry(entry: &Entry, cwd: &str) -> Option<NativeEntry> {
    let json: Value = entry.read().ok()?;
    let kind = json["type"].as_str();
    let is_chained = matches!(kind, Some("user" | "assistant" | "system" | "attachment" | "progress"));
    if is_chained && json["uuid"].is_string() && json["timestamp"].is_string() {
        return Some(NativeEntry { json, is_own: true });
    }
    let message = Message::of(entry.as_bytes())?;
    let role = if message.role.as_str() == "assistant" { "assistant" } else { "user" };
    let blocks: Vec<Value> = message.blocks.iter().filter_map(block).collect();
    let timestamp = entry.timestamp().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let mut said = json!({ "role": role, "content": blocks });
    if role == "assistant" {
        said["id"] = json!(format!("msg_{}", entry.id()));
        said["type"] = json!("message");
        said["model"] = json!(message.model.as_deref().unwrap_or("unknown"));
        said["stop_reason"] = json!("end_turn");
        said["usage"] = json!({ "input_tokens": 0, "output_tokens": 0 });
    }
    let json = json!({
        "parentUuid": null, "isSidechain": false, "type": role, "message": said, "uuid": entry.id().as_str(),
        "timestamp": timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(), "cwd": cwd,
        "sessionId": "", "userType": "external",
    });
    Some(NativeEntry { json, is_own: false })
}

fn block(block: &Block<'_>) -> Option<Value> {
    let raw = |json: &str| serde_json::from_str::<Value>(json).ok();
    match block {
        Block::Text(text) => Some(json!({ "type": "text", "text": text })),
        Block::ToolUse(tool) => Some(
            json!({ "type": "tool_use", "id": tool.id, "name": tool.name, "input": raw(tool.input.get())? }),
        ),
        Block::ToolResult(result) => Some(json!({
            "type": "tool_result", "tool_use_id": result.tool_use_id, "content": result.text(),
            "is_error": result.is_error,
        })),
        Block::Image(value) | Block::Other(value) => raw(value.get()),
        // A thought without its signature is refused by the API.
        _ => None,
    }
}

//! A stored session as one of Claude Code's own.

use std::collections::HashSet;
use std::path::PathBuf;

use rethread_store::view::{Block, Message};
use rethread_store::{Entry, Session, SessionId};
use rethread_transcripts::Written;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;

/// Writes a stored session as one of Claude Code's own.
pub(crate) fn export(id: &SessionId, context: &Context) -> Result<(Written, PathBuf), Failure> {
    let session = pollster::block_on(context.store.open(id))?;
    let metadata = pollster::block_on(session.metadata())?;
    let here = || std::env::current_dir().unwrap_or_default();
    let cwd = metadata.cwd.map_or_else(here, PathBuf::from);
    let mut lines = lines(&session, &cwd.to_string_lossy())?;
    // As Claude Code itself writes them, at the end, where it looks for them.
    let name =
        metadata.name.map(|name| json!({ "type": "custom-title", "customTitle": name, "sessionId": "" }));
    let tag = metadata.tags.first().map(|tag| json!({ "type": "tag", "tag": tag, "sessionId": "" }));
    lines.extend(name.into_iter().chain(tag).map(|line| line.to_string().into_bytes()));
    let entries = lines.iter().map(Vec::as_slice);
    let written = context.native.claude()?.write_session(id.as_str(), &cwd, entries)?;
    Ok((written, cwd))
}

fn lines(session: &Session, cwd: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let history = pollster::block_on(session.messages())?;
    let mut lines = Vec::with_capacity(history.records.len());
    let (mut known, mut before): (HashSet<String>, Option<String>) = (HashSet::new(), None);
    for entry in history.entries() {
        let Some(mut line) = native_entry(entry, cwd) else { continue };
        // A call's answer follows its own call; whatever follows nothing here follows the one before it.
        let parent = line["parentUuid"].as_str().filter(|parent| known.contains(*parent));
        let parent = parent.map(str::to_owned).or(before.take());
        let is_boundary = line["subtype"] == "compact_boundary";
        line["parentUuid"] = if is_boundary { Value::Null } else { json!(parent) };
        before = line["uuid"].as_str().map(str::to_owned);
        known.extend(before.clone());
        lines.push(line.to_string().into_bytes());
    }
    Ok(lines)
}

/// Returns an entry as Claude Code would have written it; `None` if it is no part of a conversation.
fn native_entry(entry: &Entry, cwd: &str) -> Option<Value> {
    let value: Value = entry.read().ok()?;
    let is_chained = matches!(value["type"].as_str(), Some("user" | "assistant" | "system" | "attachment"));
    if is_chained && value["uuid"].is_string() && value["timestamp"].is_string() {
        return Some(value);
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
    Some(json!({
        "parentUuid": null, "isSidechain": false, "type": role, "message": said, "uuid": entry.id().as_str(),
        "timestamp": timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(), "cwd": cwd,
        "sessionId": "", "userType": "external",
    }))
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

//! The demo's agent: no model, always the same plan, but real files and real questions.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::conversation::{Conversation, Interrupted, Said};

/// How long it thinks, so that people can follow.
const PAUSE: Duration = Duration::from_millis(25);

/// Plays the agent until nobody speaks to it any more.
pub(crate) fn play(arguments: impl Iterator<Item = OsString>) {
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    if words.iter().any(|word| word == "--version") {
        let _ = writeln!(io::stdout(), "2.1.325 (the agent of rethread's demo)");
        return;
    }
    let session = ["--session-id", "--resume"].iter().find_map(|flag| value_of(&words, flag));
    let session = session.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let cwd = std::env::current_dir().unwrap_or_default().display().to_string();
    let config = PathBuf::from(std::env::var_os("CLAUDE_CONFIG_DIR").unwrap_or_default());
    let folder = config.join("projects").join(rethread_transcripts::folder_name(&cwd));
    let transcript = folder.join(format!("{session}.jsonl"));
    let mut conversation = Conversation::new(io::stdin().lock(), io::stdout(), transcript, session, cwd);
    let mut name = value_of(&words, "--name");
    while let Some(said) = conversation.hear() {
        let uuid = said["uuid"].as_str().map(str::to_owned);
        let message = json!({ "role": "user", "content": said["message"]["content"] });
        conversation.message("user", uuid, message, false);
        if let Some(name) = name.take() {
            conversation.name(&name);
        }
        let ended = turn(&mut conversation);
        let (subtype, reason) = match ended {
            Ok(()) => ("success", "completed"),
            Err(Interrupted) => ("error_during_execution", "aborted_tools"),
        };
        let result = json!({
            "type": "result", "subtype": subtype, "is_error": false, "result": "", "terminal_reason": reason,
            "session_id": conversation.session(), "num_turns": 1, "total_cost_usd": 0.0,
        });
        conversation.say(&result);
    }
}

/// Finds a flag's value, in either form.
fn value_of(words: &[String], flag: &str) -> Option<String> {
    let joined = words.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('=').map(str::to_owned));
    joined.or_else(|| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1).cloned()))
}

fn turn<R: BufRead, W: Write>(conversation: &mut Conversation<R, W>) -> Said<()> {
    let greeting = PathBuf::from(conversation.cwd()).join("greeting.txt");
    tell(
        conversation,
        "This is a demo: no model is asked. I will write a file and run a command, and ask you before each.",
    );
    let content = "Hello from the demo.\nYou allowed this line.\n";
    tool(conversation, "Write", json!({ "file_path": greeting, "content": content }), |_| {
        std::fs::write(&greeting, content).map(|()| "The file was written.".to_owned())
    })?;
    let command = "date > made-by-the-shell.txt && wc -c *";
    tool(
        conversation,
        "Bash",
        json!({ "command": command, "description": "Makes a file and counts bytes" }),
        |cwd| {
            let output = Command::new("sh").args(["-c", command]).current_dir(cwd).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        },
    )?;
    tell(
        conversation,
        "Done. Take the files back with rewind: what the shell made goes too. Then undo that.",
    );
    Ok(())
}

/// Says something, piece by piece.
fn tell<R: BufRead, W: Write>(conversation: &mut Conversation<R, W>, text: &str) {
    let id = format!("msg_{}", uuid::Uuid::new_v4().simple());
    let event = |event: Value| json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null });
    conversation.say(&event(json!({ "type": "message_start", "message": { "id": id } })));
    conversation.say(&event(
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
    ));
    for word in text.split_inclusive(' ') {
        let delta = json!({ "type": "text_delta", "text": word });
        conversation.say(&event(json!({ "type": "content_block_delta", "index": 0, "delta": delta })));
        std::thread::sleep(PAUSE);
    }
    assistant(conversation, &id, json!({ "type": "text", "text": text }));
    conversation.say(&event(json!({ "type": "message_stop" })));
}

fn assistant<R: BufRead, W: Write>(conversation: &mut Conversation<R, W>, id: &str, block: Value) {
    let message = json!({ "id": id, "role": "assistant", "model": "demo", "content": [block] });
    conversation.message("assistant", None, message, true);
}

/// Uses a tool, as Claude Code does: hook, question, work, hook, result.
fn tool<R: BufRead, W: Write>(
    conversation: &mut Conversation<R, W>,
    name: &str,
    input: Value,
    work: impl FnOnce(&str) -> io::Result<String>,
) -> Said<()> {
    let call = format!("toolu_{}", uuid::Uuid::new_v4().simple());
    let id = format!("msg_{}", uuid::Uuid::new_v4().simple());
    assistant(conversation, &id, json!({ "type": "tool_use", "id": call, "name": name, "input": input }));
    let mut told = json!({ "tool_name": name, "tool_input": input, "tool_use_id": call });
    if hook(conversation, "PreToolUse", &told)?["hookSpecificOutput"]["permissionDecision"] == "deny" {
        result(conversation, &call, "A hook denied it.", true);
        return Ok(());
    }
    let answer = conversation.ask(json!({
        "subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": call,
        "description": "The demo's agent asks", "permission_suggestions": [],
    }))?;
    if answer["behavior"] != "allow" {
        let why = answer["message"].as_str().unwrap_or("It was denied.").to_owned();
        result(conversation, &call, &why, true);
        return Ok(());
    }
    let cwd = conversation.cwd().to_owned();
    let (text, is_error) = match work(&cwd) {
        Ok(text) => (text, false),
        Err(error) => (error.to_string(), true),
    };
    told["tool_response"] = Value::from(text.as_str());
    hook(conversation, "PostToolUse", &told)?;
    result(conversation, &call, &text, is_error);
    Ok(())
}

fn result<R: BufRead, W: Write>(
    conversation: &mut Conversation<R, W>,
    call: &str,
    text: &str,
    is_error: bool,
) {
    let block = json!({ "type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error });
    conversation.message("user", None, json!({ "role": "user", "content": [block] }), true);
}

/// Calls the host's hook of an event, and returns what it says.
fn hook<R: BufRead, W: Write>(
    conversation: &mut Conversation<R, W>,
    event: &str,
    told: &Value,
) -> Said<Value> {
    let ids = conversation.hooks[event][0]["hookCallbackIds"].clone();
    let Some(id) = ids[0].as_str().map(str::to_owned) else { return Ok(Value::Null) };
    let mut input = told.clone();
    input["hook_event_name"] = Value::from(event);
    input["session_id"] = Value::from(conversation.session());
    input["cwd"] = Value::from(conversation.cwd());
    conversation.ask(json!({ "subtype": "hook_callback", "callback_id": id, "input": input, "tool_use_id": told["tool_use_id"] }))
}

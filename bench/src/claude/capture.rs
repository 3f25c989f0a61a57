//! Frames of the real CLI, taken down once and said again as often as needed.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use rethread_claude::{ClaudeAgentOptions, ClaudeClient, Frame, PermissionMode};
use rethread_testkit::{Home, Prompt, Reply};
use serde_json::json;

use crate::failure::Outcome;
use crate::ui::Progress;

/// A text of a length that models write.
const PARAGRAPH: &str = "The parser stops at the newline, so the last line is never seen when the file does not end with one. \
    I read until there is nothing left instead, and hand over whatever is in the buffer, which costs nothing in the usual case.\n";

/// Writes down a conversation with the real CLI, a frame a line, and returns how many there are.
pub(super) fn record(path: &Path) -> Outcome<usize> {
    let progress = Progress::begin("taking down what the real CLI says");
    let home = Home::new().ok_or("Claude Code cannot be installed")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let frames = runtime.block_on(converse(&home))?;
    let mut file = BufWriter::new(File::create(path)?);
    for frame in &frames {
        file.write_all(frame.raw())?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    progress.end();
    Ok(frames.len())
}

async fn converse(home: &Home) -> Outcome<Vec<Frame>> {
    let options = ClaudeAgentOptions::builder().cli_path(&home.program().path).cwd(home.project());
    let options = options.clear_environment(true).envs(home.environment()).include_partial_messages(true);
    let mut client = ClaudeClient::new(options.permission_mode(PermissionMode::BypassPermissions).build())?;
    client.connect().await?;
    let bash = |command: &str| json!({ "command": command, "description": "Looks around" });
    let file = home.project().join("notes.txt");
    let long = Reply::default().thinking(PARAGRAPH.repeat(2)).says(PARAGRAPH.repeat(6));
    let prompts = [
        Prompt::new("Explain").reply(long),
        Prompt::new("Look").calls("Bash", bash("seq 1 200")).calls("Bash", bash("ls -la /")).says(PARAGRAPH),
        Prompt::new("Write")
            .calls("Write", json!({ "file_path": file, "content": PARAGRAPH.repeat(10) }))
            .calls("Read", json!({ "file_path": file }))
            .says(PARAGRAPH.repeat(3)),
    ];
    let mut frames = Vec::new();
    for prompt in prompts {
        let mut answer = client.send_message(prompt.to_string()).await?;
        while let Some(frame) = answer.next_frame().await {
            frames.push(frame?);
        }
    }
    client.close().await?;
    // A result ends a turn, which the conversations made of these frames do only at their end.
    frames.retain(|frame| frame.kind() != rethread_claude::FrameKind::Result);
    Ok(frames)
}

//! Names a session, goes on with it in another process, and tries another way out in a fork:
//! `cargo run -p rethread-claude --example resume_and_fork`.

use std::io::Write;

use rethread_claude::ClaudeAgentOptionsBuilder;
use rethread_claude::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompts = ["Remember the number 7.", "Add 3 to it.", "Multiply it by 3 instead."];
    run(ClaudeAgentOptions::builder(), prompts, &mut std::io::stdout()).await
}

pub async fn run(
    options: ClaudeAgentOptionsBuilder,
    [first, second, other]: [&str; 3],
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let session = turn(options.clone().session_name("numbers"), first, out).await?;
    let same = turn(options.clone().resume(&session), second, out).await?;
    let fork = turn(options.resume(&session).fork_session(true), other, out).await?;
    writeln!(out, "the same session: {}", same == session)?;
    writeln!(out, "another session: {}", fork != session)?;
    Ok(())
}

/// Runs one turn, and returns the session it was in.
async fn turn(
    options: ClaudeAgentOptionsBuilder,
    prompt: &str,
    out: &mut impl Write,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut answer = query(prompt, options.build()).await?;
    let mut session = String::new();
    while let Some(message) = answer.next_message().await {
        match message? {
            Message::System(SystemMessage::Init { session_id, .. }) => session = session_id,
            Message::Assistant(message) => writeln!(out, "{}", message.text())?,
            _ => {}
        }
    }
    Ok(session)
}

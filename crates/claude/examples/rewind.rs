//! Has files changed, shows what going back would do, and goes back:
//! `cargo run -p rethread-claude --example rewind -- "Write a poem to poem.txt"`.

use std::io::Write;

use rethread_claude::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompt = std::env::args().nth(1).ok_or("what should be done?")?;
    run(ClaudeAgentOptions::builder(), &prompt, &mut std::io::stdout()).await
}

pub async fn run(
    options: rethread_claude::ClaudeAgentOptionsBuilder,
    prompt: &str,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let options = options.enable_file_checkpointing(true).permission_mode(PermissionMode::AcceptEdits);
    let mut client = ClaudeClient::new(options.build())?;
    client.connect().await?;
    let prompt = Prompt::from(prompt);
    let mut answer = client.send_message(prompt.clone()).await?;
    while let Some(message) = answer.next_message().await {
        message?;
    }
    let plan = client.rewind_files_dry_run(prompt.uuid()).await?;
    for file in &plan.files_changed {
        writeln!(out, "would change {file}")?;
    }
    if plan.can_rewind {
        client.rewind_files(prompt.uuid()).await?;
        writeln!(out, "everything is as it was before the prompt")?;
    }
    Ok(client.close().await?)
}

//! Asks one thing and prints the answer: `cargo run -p rethread-claude --example one_shot -- "What is in src/?"`.

use std::io::Write;

use rethread_claude::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompt = std::env::args().nth(1).ok_or("what should be asked?")?;
    run(ClaudeAgentOptions::builder(), &prompt, &mut std::io::stdout()).await
}

pub async fn run(
    options: rethread_claude::ClaudeAgentOptionsBuilder,
    prompt: &str,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut answer = query(prompt, options.build()).await?;
    while let Some(message) = answer.next_message().await {
        match message? {
            Message::Assistant(message) => writeln!(out, "{}", message.text())?,
            Message::Result(result) => writeln!(out, "${:.4}", result.details().total_cost_usd)?,
            _ => {}
        }
    }
    Ok(())
}

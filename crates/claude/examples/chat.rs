//! A conversation, a line a turn, word by word: `cargo run -p rethread-claude --example chat`.

use std::io::{BufRead, Write};

use rethread_claude::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    rethread_claude::guard::init();
    run(ClaudeAgentOptions::builder(), std::io::stdin().lock(), &mut std::io::stdout()).await
}

pub async fn run(
    options: rethread_claude::ClaudeAgentOptionsBuilder,
    prompts: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut client = ClaudeClient::new(options.include_partial_messages(true).build())?;
    client.connect().await?;
    for prompt in prompts.lines() {
        let mut answer = client.send_message(prompt?).await?;
        while let Some(message) = answer.next_message().await {
            match message? {
                Message::StreamEvent(piece) => {
                    write!(out, "{}", piece.text().unwrap_or_default())?;
                    out.flush()?;
                }
                Message::Result(result) if result.is_error() => writeln!(out, "it failed: {result:?}")?,
                Message::Result(_) => writeln!(out)?,
                _ => {}
            }
        }
    }
    Ok(client.close().await?)
}

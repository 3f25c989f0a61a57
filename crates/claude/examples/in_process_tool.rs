//! Gives the model a tool that is a function of this program:
//! `cargo run -p rethread-claude --example in_process_tool -- "How many crates does this workspace have?"`.

use std::io::Write;

use rethread_claude::prelude::*;
use rethread_claude::schemars;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Folder {
    /// The folder to look into.
    path: std::path::PathBuf,
}

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
    let counter =
        ToolServer::new("counter").tool("count", "Counts what is in a folder", async |folder: Folder| {
            std::fs::read_dir(folder.path).map(|entries| entries.count().to_string())
        });
    let options = options.mcp_server("counter", counter).allowed_tools(["mcp__counter__count"]);
    let mut answer = query(prompt, options.build()).await?;
    while let Some(message) = answer.next_message().await {
        match message? {
            Message::User(message) => writeln!(out, "{:?}", message.message.content)?,
            Message::Assistant(message) => writeln!(out, "{}", message.text())?,
            _ => {}
        }
    }
    Ok(())
}

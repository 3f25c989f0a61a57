//! Keeps the agent from the network, and counts what it does: `cargo run -p rethread-claude --example hooks -- "Look around"`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let options = options
        .hook(HookEvent::PreToolUse, "Bash|WebFetch", async |input: HookInput| {
            let command = input.tool_input["command"].as_str().unwrap_or_default();
            match input.tool_name == "WebFetch" || command.contains("curl") {
                true => HookOutput::deny("There is no network here."),
                false => HookOutput::proceed(),
            }
        })
        .hook(HookEvent::PostToolUse, "", move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(HookOutput::proceed())
        });
    let mut answer = query(prompt, options.build()).await?;
    while let Some(message) = answer.next_message().await {
        if let Message::Assistant(message) = message? {
            writeln!(out, "{}", message.text())?;
        }
    }
    writeln!(out, "{} tool calls went through", count.load(Ordering::Relaxed))?;
    Ok(())
}

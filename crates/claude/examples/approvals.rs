//! Lets the agent read, asks a person about everything else: `cargo run -p rethread-claude --example approvals -- "Tidy up"`.

use std::io::Write;
use std::sync::Arc;

use rethread_claude::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompt = std::env::args().nth(1).ok_or("what should be done?")?;
    let ask = |request: &PermissionRequest| {
        let mut line = String::new();
        writeln!(std::io::stdout(), "{} {} [y/N]", request.tool_name, request.input).is_ok()
            && std::io::stdin().read_line(&mut line).is_ok()
            && line.trim() == "y"
    };
    run(ClaudeAgentOptions::builder(), &prompt, ask, &mut std::io::stdout()).await
}

pub async fn run(
    options: rethread_claude::ClaudeAgentOptionsBuilder,
    prompt: &str,
    ask: impl Fn(&PermissionRequest) -> bool + Send + Sync + 'static,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let ask = Arc::new(ask);
    let options = options.can_use_tool(move |request: PermissionRequest| {
        let ask = Arc::clone(&ask);
        async move {
            // A person takes time, so that the question must not block the conversation.
            match tokio::task::spawn_blocking(move || ask(&request)).await {
                Ok(true) => PermissionResult::allow(),
                _ => PermissionResult::deny("The person said no. Ask before you try something else."),
            }
        }
    });
    let mut answer = query(prompt, options.build()).await?;
    while let Some(message) = answer.next_message().await {
        if let Message::Result(result) = message? {
            for denied in &result.details().permission_denials {
                writeln!(out, "denied: {} {}", denied.tool_name, denied.tool_input)?;
            }
        }
    }
    Ok(())
}

//! A host that is there to be killed.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rethread_claude::{ClaudeAgentOptions, ClaudeClient, PermissionMode};

/// Arguments of a host, by what guards its CLI.
pub(crate) const GUARDED_BY_ITSELF: &str = "host-guarded-by-itself";
pub(crate) const GUARDED_BY_SCRIPT: &str = "host-guarded-by-script";

/// Starts a host with a CLI, which may be given a prompt, and waits until it has begun.
pub(crate) fn start(guarded: &str, cli: &Path, prompt: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([guarded]).arg(cli).arg(prompt).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Waits until a host says that it is ready.
pub(crate) fn wait_until_ready(host: &mut Child) {
    let mut line = String::new();
    let mut output = std::io::BufReader::new(host.stdout.as_mut().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert_eq!(line, "ready\n");
}

/// Is a host, if the arguments say so, and returns whether they did.
pub(crate) fn serve_if_asked() -> bool {
    let mut words = std::env::args().skip(1);
    let Some(GUARDED_BY_ITSELF | GUARDED_BY_SCRIPT) = words.next().as_deref() else { return false };
    let (cli, prompt) = (words.next().unwrap(), words.next().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let options =
            ClaudeAgentOptions::builder().cli_path(cli).permission_mode(PermissionMode::BypassPermissions);
        let mut client = ClaudeClient::new(options.build()).unwrap();
        client.connect().await.unwrap();
        let turn = if prompt.is_empty() { None } else { Some(client.send_message(prompt).await.unwrap()) };
        std::io::stdout().write_all(b"ready\n").unwrap();
        std::io::stdout().flush().unwrap();
        std::future::pending::<()>().await;
        drop((client, turn));
    });
    true
}

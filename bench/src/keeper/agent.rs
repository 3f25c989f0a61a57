//! An agent that speaks as Claude Code's CLI does, and says a line now and then with the time in it.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::Outcome;

/// How long it waits between two lines.
const PACE: Duration = Duration::from_millis(1);

/// Plays the agent until nobody speaks to it any more.
pub(crate) fn play() -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let said: Value = serde_json::from_str(&line?).unwrap_or_default();
        match said["type"].as_str() {
            Some("control_request") => {
                let response = json!({ "subtype": "success", "request_id": said["request_id"], "response": { "pid": std::process::id() } });
                writeln!(out, "{}", json!({ "type": "control_response", "response": response }))?;
                out.flush()?;
            }
            Some("user") => {
                let text = said["message"]["content"].as_str().unwrap_or_default();
                speak(text.parse().unwrap_or(0), &mut out)?;
                writeln!(
                    out,
                    "{}",
                    json!({ "type": "result", "subtype": "success", "is_error": false, "result": "", "session_id": "x" })
                )?;
                out.flush()?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Says so many lines, each with the time at which it was said.
pub(crate) fn speak(lines: usize, out: &mut impl std::io::Write) -> Outcome<()> {
    for number in 0..lines {
        std::thread::sleep(PACE);
        let text = format!("said at {} ns {}", nanoseconds(), "x".repeat(100));
        writeln!(
            out,
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"msg_{number}\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\
             \"text\":\"{text}\"}}]}},\"parent_tool_use_id\":null,\"session_id\":\"x\",\"uuid\":\"{number:08x}-2222-4222-8222-222222222222\",\
             \"note\":\"message.upsert\"}}"
        )?;
        out.flush()?;
    }
    Ok(())
}

/// Returns how long ago a line was said, in microseconds.
pub(super) fn age(line: &[u8]) -> Option<f64> {
    let at = memchr::memmem::find(line, b"said at ")? + 8;
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let said: u64 = std::str::from_utf8(&line[at..at + digits]).ok()?.parse().ok()?;
    Some(nanoseconds().saturating_sub(said) as f64 / 1e3)
}

/// Returns a time that all processes of the machine agree about.
fn nanoseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Writes a program that plays the agent.
pub(super) fn program(folder: &Path) -> Outcome<std::path::PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join("claude");
    let own = std::env::current_exe()?;
    let errand = serde_json::to_string(&crate::errand::Errand::PlayAgent)?;
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in --version) echo '2.1.325 (Claude Code)';; *) exec '{}' --errand '{errand}';; esac\n",
        own.display()
    );
    std::fs::write(&path, script)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

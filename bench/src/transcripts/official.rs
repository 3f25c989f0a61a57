//! The official SDKs as contestants, each in a process of its own that measures itself.

use std::path::Path;
use std::process::Command;

use rethread_testkit::{PythonSdk, Sdk};

use super::made;
use crate::errand::Answer;
use crate::failure::Outcome;

/// What an SDK is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// All sessions, or the newest ones.
    List(Option<usize>),
    /// All messages of the one session, or the last ones, by an offset from the beginning.
    Messages(Option<(usize, usize)>),
}

/// Asks the SDK for TypeScript.
pub(crate) fn typescript(config: &Path, ask: Ask) -> Outcome<Answer> {
    let id = made::id(0);
    let call = match ask {
        Ask::List(None) => "sdk.listSessions()".to_owned(),
        Ask::List(Some(limit)) => format!("sdk.listSessions({{ limit: {limit} }})"),
        Ask::Messages(None) => format!("sdk.getSessionMessages('{id}')"),
        Ask::Messages(Some((offset, limit))) => {
            format!("sdk.getSessionMessages('{id}', {{ offset: {offset}, limit: {limit} }})")
        }
    };
    let module = format!(
        "import * as sdk from '@anthropic-ai/claude-agent-sdk';
        const begun = performance.now();
        const found = await {call};
        const seconds = (performance.now() - begun) / 1000;
        const peak_mebibytes = process.resourceUsage().maxRSS / 1024;
        console.log(JSON.stringify({{ seconds, found: found.length, log_bytes_read: 0, peak_mebibytes }}));"
    );
    let sdk = Sdk::find().ok_or("the SDK for TypeScript cannot be installed")?;
    answer(sdk.command(config, &module))
}

/// Asks the SDK for Python.
pub(super) fn python(config: &Path, ask: Ask) -> Outcome<Answer> {
    let id = made::id(0);
    let call = match ask {
        Ask::List(None) => "list_sessions()".to_owned(),
        Ask::List(Some(limit)) => format!("list_sessions(limit={limit})"),
        Ask::Messages(None) => format!("get_session_messages('{id}')"),
        Ask::Messages(Some((offset, limit))) => {
            format!("get_session_messages('{id}', offset={offset}, limit={limit})")
        }
    };
    let program = format!(
        "import json, resource, time
from claude_agent_sdk import list_sessions, get_session_messages
begun = time.perf_counter()
found = {call}
seconds = time.perf_counter() - begun
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(dict(seconds=seconds, found=len(found), log_bytes_read=0, peak_mebibytes=peak)))"
    );
    let sdk = PythonSdk::find().ok_or("the SDK for Python cannot be installed")?;
    answer(sdk.command(config, &program))
}

fn answer(mut command: Command) -> Outcome<Answer> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

//! The programs of the guide to `rusty_claw` sessions, word for word, against this crate and the real CLI.
//!
//! Each is run in a process of its own, since it finds the CLI and its home by itself. The session that they name is made
//! before, under that name.

use std::io::Write as _;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use rethread_testkit::{Home, Prompt as Script};

/// The argument that makes this program one of the programs.
const SIGN: &str = "program-of-the-guide";

type Program = fn() -> Result<(), Box<dyn std::error::Error>>;

/// What a program prints when all goes well.
#[derive(Clone, Copy, Debug)]
enum Prints {
    /// The id of the session that was there before.
    TheSession,
    /// Another id, after this text.
    Another(&'static str),
    /// Nothing, and there is still only that session. How far its answer got depends on when it closes.
    Nothing,
}

const PROGRAMS: &[(&str, Program, Prints)] = &[
    ("the_session_id_is_captured", ids::run, Prints::Another("")),
    ("resume", resume::run, Prints::TheSession),
    ("resume_under_a_name", resume_named::run, Prints::TheSession),
    ("fork", fork::run, Prints::Another("")),
    ("many_turns", many_turns::run, Prints::Another("Done.\n")),
    ("many_turns_resumed", many_turns_resumed::run, Prints::Nothing),
    ("checkpoints", checkpoints::run, Prints::Another("")),
];

/// The session that is there before.
const SESSION: &str = "0198f2c1-7d7e-4e50-9c3a-0d3f6a9b1c22";

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, _, prints): &(&'static str, Program, Prints)| {
        let (name, prints) = (*name, *prints);
        Trial::test(format!("seed::{name}"), move || play(name, prints))
    };
    PROGRAMS.iter().map(trial).collect()
}

fn play(name: &str, prints: Prints) -> Result<(), Failed> {
    let Some(home) = Home::new() else {
        rethread_testkit::cannot("Claude Code cannot be installed");
        return Ok(());
    };
    if !home.program().is_at_least("2.1.300") {
        rethread_testkit::not_in_this_version("sessions have no names");
        return Ok(());
    }
    home.claude().session(SESSION).args(["--name", "sess_abc123"]).asked(Script::new("Hello").says("Hi."));
    let mut program = Command::new(std::env::current_exe()?);
    program.args([SIGN, name]).env_clear().envs(home.environment()).current_dir(home.project());
    let output = program.env("CLAUDE_CLI_PATH", &home.program().path).output()?;
    let said = String::from_utf8(output.stdout.clone())?;
    let id = |before: &str| {
        let id = said.strip_prefix(before)?.strip_prefix("Session ID: ")?.strip_suffix('\n')?;
        uuid_of(id).then_some(id)
    };
    let is_right = match prints {
        Prints::TheSession => id("") == Some(SESSION),
        Prints::Another(before) => id(before).is_some_and(|id| id != SESSION && home.transcript(id).is_file()),
        Prints::Nothing => {
            let sessions = rethread_claude::sessions::Sessions::at(home.config()).list()?;
            said.is_empty() && sessions.len() == 1 && sessions[0].session_id == SESSION
        }
    };
    match output.status.success() && is_right {
        true => Ok(()),
        false => Err(format!("{output:?}").into()),
    }
}

/// Returns whether a text has the form of a session's id.
fn uuid_of(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// Is one of the programs, if the arguments say so, and returns whether they did.
pub(crate) fn serve_if_asked() -> bool {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(SIGN) {
        return false;
    }
    let name = words.next().unwrap();
    let (_, program, _) = PROGRAMS.iter().find(|(known, ..)| *known == name).unwrap();
    program().unwrap();
    true
}

/// Runs a session with the options of a program, which only builds them.
fn drive(
    options: rethread_claude::ClaudeAgentOptions,
    check: impl Fn(&str) -> bool,
) -> Result<(), Box<dyn std::error::Error>> {
    use rethread_claude::prelude::*;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut answer = query("Go on", options).await?;
        let mut ids = Vec::new();
        while let Some(message) = answer.next_message().await {
            let message = message?;
            ids.extend(super::seed::ids::capture_session_id(&message));
            ids.extend(super::seed::ids::session_id_from_result(&message));
        }
        assert!(ids.len() == 2 && ids[0] == ids[1], "init and result name the session: {ids:?}");
        assert!(check(&ids[0]), "{ids:?}");
        writeln!(std::io::stdout(), "Session ID: {}", ids[0])?;
        Ok(())
    })
}

/// Returns whether a session's transcript holds what was said before.
fn remembers(session: &str) -> bool {
    let config = std::env::var_os("CLAUDE_CONFIG_DIR").unwrap();
    let sessions = rethread_claude::sessions::Sessions::at(config);
    sessions.messages(session).unwrap().len() == 4
}

mod ids {
    use rusty_claw::prelude::*;

    pub(super) fn capture_session_id(msg: &Message) -> Option<String> {
        match msg {
            Message::System(SystemMessage::Init { session_id, .. }) => {
                Some(session_id.clone())
            }
            _ => None,
        }
    }

    pub(super) fn session_id_from_result(msg: &Message) -> Option<String> {
        match msg {
            Message::Result(ResultMessage::Success { session_id, .. }) => {
                session_id.clone()
            }
            _ => None,
        }
    }

    pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
        super::drive(ClaudeAgentOptions::builder().build(), |_| true)
    }
}

mod resume {
    pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
        use rusty_claw::prelude::*;

        let options = ClaudeAgentOptions::builder()
            .resume("sess_abc123")
            .build();
        super::drive(options, super::remembers)
    }
}

mod resume_named {
    pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
        use rusty_claw::prelude::*;

        let options = ClaudeAgentOptions::builder()
            .resume("sess_abc123")
            .session_name("debug-investigation")
            .build();
        super::drive(options, super::remembers)
    }
}

mod fork {
    pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
        use rusty_claw::prelude::*;

        let options = ClaudeAgentOptions::builder()
            .resume("sess_abc123")
            .fork_session(true)
            .build();
        super::drive(options, super::remembers)
    }
}

mod many_turns {
    use rusty_claw::prelude::*;
    use tokio_stream::StreamExt;

    #[expect(clippy::print_stdout, clippy::print_stderr, reason = "as it stands in the guide")]
    #[tokio::main]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let options = ClaudeAgentOptions::builder()
            .max_turns(10)
            .permission_mode(PermissionMode::AcceptEdits)
            .build();

        let mut client = ClaudeClient::new(options)?;
        client.connect().await?;

        let mut session_id: Option<String> = None;

        let mut stream = client.send_message("List the files in src/").await?;
        while let Some(result) = stream.next().await {
            match result {
                Ok(Message::System(SystemMessage::Init { session_id: sid, .. })) => {
                    session_id = Some(sid);
                }
                Ok(Message::Assistant(msg)) => {
                    for block in msg.message.content {
                        if let ContentBlock::Text { text } = block {
                            println!("{}", text);
                        }
                    }
                }
                Ok(Message::Result(_)) => break,
                Ok(_) => {}
                Err(e) => eprintln!("Error: {}", e),
            }
        }

        // Save session_id for later resumption
        if let Some(id) = &session_id {
            println!("Session ID: {}", id);
        }

        client.close().await?;
        Ok(())
    }

    pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
        main()
    }
}

mod many_turns_resumed {
    use rusty_claw::prelude::*;

    #[expect(unused_variables, unused_mut, reason = "the guide leaves the rest to its readers")]
    #[tokio::main]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let options = ClaudeAgentOptions::builder()
            .resume("sess_abc123")
            .max_turns(10)
            .permission_mode(PermissionMode::AcceptEdits)
            .build();

        let mut client = ClaudeClient::new(options)?;
        client.connect().await?;

        // The session resumes with full conversation history intact.
        // Subsequent send_message() calls continue the existing conversation.
        let mut stream = client.send_message("What did we discuss earlier?").await?;
        // ... consume stream ...

        client.close().await?;
        Ok(())
    }

    pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
        main()
    }
}

mod checkpoints {
    pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
        use rusty_claw::prelude::*;

        let options = ClaudeAgentOptions::builder()
            .enable_file_checkpointing(true)
            .session_name("refactor-v2")
            .build();
        super::drive(options, |session| {
            let sessions = rethread_claude::sessions::Sessions::at(std::env::var_os("CLAUDE_CONFIG_DIR").unwrap());
            sessions.info(session).unwrap().name.as_deref() == Some("refactor-v2")
        })
    }
}

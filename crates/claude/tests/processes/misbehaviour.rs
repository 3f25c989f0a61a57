//! Agents that misbehave: no hang, no survivor, and an error that says what was wrong.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use rethread_claude::{ClaudeAgentOptions, ClaudeClient, Error, Message, PermissionResult};
use rethread_testkit::{Behaviour, ScriptedAgent};

/// How often each is tried.
const ROUNDS: usize = 20;
/// How long an agent is waited for.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long one is waited for that should be there, on a machine that is busy with other things: a shorter time would say
/// how busy, and nothing about this crate. Those that never answer get the short one.
const LONG: Duration = Duration::from_secs(300);

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |behaviour: &Behaviour| {
        let behaviour = *behaviour;
        Trial::test(format!("misbehaviour::{behaviour:?}"), move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            for _ in 0..ROUNDS {
                let met = runtime.block_on(async { tokio::time::timeout(LONG * 2, meet(behaviour)).await });
                met.map_err(|_| "it hangs")??;
            }
            Ok(())
        })
    };
    Behaviour::ALL.iter().map(trial).collect()
}

/// What came of a turn.
#[derive(Debug, Default)]
struct Came {
    texts: Vec<usize>,
    others: usize,
    errors: Vec<Error>,
    result: Option<String>,
}

async fn meet(behaviour: Behaviour) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let agent = ScriptedAgent::new(behaviour, folder.path().join("family"));
    let never_begins = matches!(behaviour, Behaviour::Silent | Behaviour::Babbling);
    let options = ClaudeAgentOptions::builder()
        .cli_path(std::env::current_exe()?)
        .envs(agent.environment())
        .initialize_timeout(if never_begins { PATIENCE } else { LONG })
        .control_timeout(PATIENCE)
        .close_timeout(PATIENCE)
        .check_version(false)
        .can_use_tool(async |_| PermissionResult::deny("no"));
    let mut client = ClaudeClient::new(options.build())?;
    let begun = client.connect().await;
    let outcome = match begun {
        Err(error) => expect_no_beginning(behaviour, &error),
        Ok(()) => converse(behaviour, &client).await,
    };
    client.close().await?;
    drop(client);
    let survivors = || agent.survivors();
    for _ in 0..1000 {
        if survivors().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    match survivors() {
        none if none.is_empty() => outcome,
        some => Err(format!("still alive: {some:?}").into()),
    }
}

fn expect_no_beginning(behaviour: Behaviour, error: &Error) -> Result<(), Failed> {
    let is_right = match behaviour {
        Behaviour::Silent => matches!(error, Error::TimedOut { request: "initialize", .. }),
        Behaviour::Babbling => {
            matches!(error, Error::TimedOut { complaints, .. } if complaints.contains("Hello there"))
        }
        Behaviour::Stillborn => {
            matches!(error, Error::Ended { complaints, .. } if complaints.contains("no luck today"))
        }
        Behaviour::Refusing => {
            matches!(error, Error::Refused { message, .. } if message == "I would rather not")
        }
        _ => false,
    };
    if is_right { Ok(()) } else { Err(format!("{behaviour:?} gave {error:?}").into()) }
}

async fn converse(behaviour: Behaviour, client: &ClaudeClient) -> Result<(), Failed> {
    if matches!(behaviour, Behaviour::Deaf | Behaviour::Mute) {
        let asked = client.interrupt().await;
        return match asked {
            Err(Error::TimedOut { request: "interrupt", .. } | Error::Ended { .. }) => Ok(()),
            other => Err(format!("{behaviour:?} gave {other:?}").into()),
        };
    }
    let came = turn(behaviour, client).await?;
    let is_right = match behaviour {
        Behaviour::Torn | Behaviour::Dying => {
            matches!(came.errors.last(), Some(Error::Ended { .. })) && came.result.is_none()
        }
        Behaviour::Noisy => {
            came.errors.iter().filter(|error| matches!(error, Error::BadFrame { .. })).count() == 2
                && came.result.is_some()
        }
        Behaviour::Huge => {
            matches!(came.errors[..], [Error::FrameTooLong { .. }])
                && came.result.is_some()
                && came.texts == [5]
        }
        Behaviour::Mangled => came.errors.is_empty() && came.texts == ["a\u{fffd}\u{fffd}b".len(), 5],
        Behaviour::Flooding => came.texts.len() == 1000,
        Behaviour::Novel => came.errors.is_empty() && came.others == 2 && came.result.is_some(),
        Behaviour::Confused => matches!(came.errors[..], [Error::BadFrame { .. }]) && came.result.is_some(),
        _ => came.errors.is_empty() && came.texts == [5] && came.result.as_deref() == Some("hello"),
    };
    if is_right { Ok(()) } else { Err(format!("{behaviour:?} gave {came:?}").into()) }
}

async fn turn(behaviour: Behaviour, client: &ClaudeClient) -> Result<Came, Failed> {
    let mut came = Came::default();
    let mut stream = client.send_message("hello").await?;
    while let Some(message) = stream.next_message().await {
        match message {
            Ok(Message::Assistant(message)) => came.texts.push(message.text().len()),
            Ok(Message::Result(rethread_claude::ResultMessage::Success { result, .. })) => {
                came.result = Some(result)
            }
            Ok(Message::Other(_)) => came.others += 1,
            Ok(_) => {}
            Err(error) => came.errors.push(error),
        }
        if behaviour == Behaviour::Flooding && came.texts.len() == 1000 {
            break;
        }
    }
    Ok(came)
}

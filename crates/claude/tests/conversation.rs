//! Turns: one, many, queued, interrupted, cut off.

use std::time::Duration;

use rethread_claude::transport::Ending;
use rethread_claude::{
    ClaudeAgentOptions, ContentBlock, Error, ErrorSubtype, Message, Prompt, ResultMessage, StreamEvent, query,
};
use rethread_testkit::{Prompt as Script, Reply};
use serde_json::json;

use crate::kit::{Heard, ask, connect, home, options, own_home};

#[tokio::test]
async fn a_query_is_answered_and_the_cli_ends() {
    let Some(home) = home() else { return };
    let mut answer =
        query(Script::new("Hello").says("Hi.").to_string(), options(home).build()).await.unwrap();
    let mut all = Vec::new();
    while let Some(message) = answer.next_message().await {
        all.push(message.unwrap());
    }
    let texts: String = all
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(message) => Some(message.text()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, "Hi.");
    let ended = answer.client().ended().await.unwrap();
    assert_eq!(ended, rethread_claude::transport::Ending::Exited(0));
}

#[tokio::test]
async fn a_query_ends_after_its_subagents_in_the_background() {
    let Some(home) = home() else { return };
    let errand = Script::new("look").reply(Reply::text("found").after_milliseconds(300)).to_string();
    let input = json!({ "description": "d", "prompt": errand, "subagent_type": "general-purpose", "run_in_background": true });
    let script = Script::new("Look in the background").calls("Agent", input).says("launched");
    let mut answer = query(script.to_string(), options(home).build()).await.unwrap();
    let mut results = Vec::new();
    while let Some(message) = answer.next_message().await {
        if let Message::Result(ResultMessage::Success { result, details, .. }) = message.unwrap() {
            results.push((result, details.origin.is_some()));
        }
    }
    if home.program().is_at_least("2.1.200") {
        assert_eq!(results, [("launched".into(), false), ("Done.".into(), true)]);
    }
}

#[tokio::test]
async fn prompts_sent_while_another_is_answered_get_their_own_result() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    let first = Script::new("First").reply(Reply::text("one").after_milliseconds(700)).to_string();
    let first = client.send_message(first).await.unwrap();
    let second = client.send_message(Script::new("Second").says("two").to_string()).await.unwrap();
    let third = client.send_message(Script::new("Third").says("three").to_string()).await.unwrap();
    let texts = [Heard::all(first).await, Heard::all(second).await, Heard::all(third).await];
    let texts = texts.each_ref().map(Heard::text);
    // The CLI may answer those that wait together, and then with the script of the last.
    assert!(texts == ["one", "two", "three"] || texts == ["one", "three", "three"], "{texts:?}");
    assert_eq!(ask(&client, Script::new("Fourth").says("four")).await.text(), "four");
}

/// What was said in answer to a prompt without a stream came with the stream of the next.
#[tokio::test]
async fn prompts_with_and_without_a_stream_get_their_own_answers() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home)).await;
    let mut rest = client.messages().unwrap();
    let first = Script::new("First").reply(Reply::text("one").after_milliseconds(1000)).to_string();
    client.send(first).await.unwrap();
    while home.api().requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let second = client.send_message(Script::new("Second").says("two").to_string()).await.unwrap();
    let heard = Heard::all(second).await;
    assert_eq!((heard.text(), format!("{heard:?}").contains("\"one\"")), ("two", false), "{heard:?}");
    let mut results = Vec::new();
    while results.is_empty() {
        if let Message::Result(ResultMessage::Success { result, .. }) =
            rest.next_message().await.unwrap().unwrap()
        {
            results.push(result);
        }
    }
    assert_eq!(results, ["one"]);
}

#[tokio::test]
async fn an_interrupted_turn_ends_and_the_next_one_begins() {
    let Some(home) = home() else { return };
    let client = connect(options(home).include_partial_messages(true)).await;
    let mut hanging =
        client.send_message(Script::new("Go").reply(Reply::text("and").hanging()).to_string()).await.unwrap();
    while let Some(message) = hanging.next_message().await {
        if matches!(message.unwrap(), Message::StreamEvent(event) if event.text() == Some("and")) {
            break;
        }
    }
    client.interrupt().await.unwrap();
    let rest = Heard::all(hanging).await;
    assert!(
        matches!(rest.result(), ResultMessage::Error { subtype: ErrorSubtype::DuringExecution, .. }),
        "{rest:?}"
    );
    assert_eq!(ask(&client, Script::new("Again").says("here")).await.text(), "here");
}

#[tokio::test]
async fn a_queued_prompt_can_be_taken_back() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    let slow = Script::new("Slow").reply(Reply::text("slow").after_milliseconds(5000)).to_string();
    let slow = client.send_message(slow).await.unwrap();
    let mut back = client.send_message("Never mind").await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(client.cancel_message(back.prompt_uuid()).await.unwrap());
    assert_eq!(Heard::all(slow).await.text(), "slow");
    let mut last = None;
    while let Some(message) = back.next_message().await {
        last = Some(message);
    }
    assert!(matches!(last, Some(Err(Error::Cancelled))), "{last:?}");
    assert!(!client.cancel_message(back.prompt_uuid()).await.unwrap_or(false));
}

#[tokio::test]
async fn a_stream_that_is_dropped_does_not_spill_into_the_next() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    let script = Script::new("Work").reply(Reply::text("old").after_milliseconds(500));
    let mut dropped = client.send_message(script.to_string()).await.unwrap();
    assert!(dropped.next_message().await.is_some());
    drop(dropped);
    let next = ask(&client, Script::new("Next").says("new")).await;
    let said: String = next
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(message) => Some(message.text()),
            _ => None,
        })
        .collect();
    assert_eq!((said.contains("old"), next.text()), (false, "new"));
}

#[tokio::test]
async fn partial_messages_add_up_to_the_message() {
    let Some(home) = home() else { return };
    let client = connect(options(home).include_partial_messages(true)).await;
    let heard =
        ask(&client, Script::new("Tell").reply(Reply::default().thinking("Hm.").says("A tale."))).await;
    let pieces: String = heard
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::StreamEvent(StreamEvent { event, .. }) => event["delta"]["text"].as_str(),
            _ => None,
        })
        .collect();
    let thoughts = heard.messages.iter().any(|message| match message {
        Message::Assistant(message) => {
            matches!(&message.message.content[..], [ContentBlock::Thinking { thinking, .. }] if thinking == "Hm.")
        }
        _ => false,
    });
    assert_eq!((pieces.as_str(), thoughts, heard.text()), ("A tale.", true, "A tale."));
}

#[tokio::test]
async fn an_image_reaches_the_model() {
    let Some(home) = home() else { return };
    let mut client = connect(options(home)).await;
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let prompt = Prompt::from("What colour is this dot?").image("image/png", DOT);
    let heard = Heard::all(client.send_message(prompt.clone()).await.unwrap()).await;
    let requests = home.api().requests();
    let sent = requests.iter().map(|request| request.body.to_string()).any(|body| body.contains(&DOT[..60]));
    assert!(sent, "{heard:?}");
    // What it writes down may come later than what it says, and is there when it has ended.
    client.close().await.unwrap();
    let written = std::fs::read_to_string(home.transcript(heard.session())).unwrap();
    assert!(written.contains(prompt.uuid()));
}

#[tokio::test]
async fn a_failure_of_the_api_is_a_result_that_says_so() {
    let Some(home) = home() else { return };
    let client = connect(options(home)).await;
    let heard = ask(&client, Script::new("Fail").reply(Reply::status(400))).await;
    let ResultMessage::Success { is_error: true, result, details, .. } = heard.result() else {
        panic!("{heard:?}");
    };
    assert!(result.contains("400"), "{result}");
    if home.program().is_at_least("2.1.200") {
        assert_eq!(details.api_error_status, Some(400));
    }
    assert_eq!(ask(&client, Script::new("Again").says("better")).await.text(), "better");
}

#[tokio::test]
async fn the_turns_a_session_may_take_are_limited() {
    let Some(home) = home() else { return };
    let client = connect(options(home).max_turns(1)).await;
    let script =
        Script::new("Work").calls("Bash", json!({ "command": "echo one", "description": "d" })).says("never");
    let heard = ask(&client, script).await;
    assert!(
        matches!(heard.result(), ResultMessage::Error { subtype: ErrorSubtype::MaxTurns, .. }),
        "{heard:?}"
    );
}

#[tokio::test]
async fn a_client_that_was_closed_says_so() {
    let Some(home) = home() else { return };
    let mut client = connect(options(home)).await;
    client.close().await.unwrap();
    assert!(matches!(client.interrupt().await, Err(Error::NotConnected)));
    client.connect().await.unwrap();
    assert_eq!(ask(&client, Script::new("Again").says("here")).await.text(), "here");
}

#[tokio::test]
async fn a_flag_the_cli_does_not_know_is_told_with_its_own_words() {
    let Some(home) = home() else { return };
    let mut client =
        rethread_claude::ClaudeClient::new(options(home).extra_flag("no-such-flag").build()).unwrap();
    let error = client.connect().await.unwrap_err();
    assert!(error.to_string().contains("no-such-flag"), "{error}");
    assert!(matches!(error, Error::Ended { .. }));
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_told_with_the_clis_own_words() {
    let Some(home) = home() else { return };
    let missing = options(home).resume("00000000-0000-4000-8000-00000000dead");
    let mut said = String::new();
    match query("Hello", missing.build()).await {
        Err(error) => said = error.to_string(),
        Ok(mut answer) => {
            while let Some(message) = answer.next_message().await {
                said.push_str(&format!("{message:?}"));
            }
        }
    }
    assert!(said.contains("No conversation found"), "{said}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let fork = ClaudeAgentOptions::builder().fork_session(true);
    let error = fork.clone().try_build().unwrap_err();
    insta::assert_snapshot!(error, @"fork_session needs `resume` or `continue_conversation`");
    assert!(matches!(rethread_claude::ClaudeClient::new(fork.build()), Err(Error::Contradiction { .. })));
}

#[tokio::test]
async fn a_cli_that_is_killed_in_the_middle_of_a_sentence_is_told_and_its_session_goes_on() {
    let Some(home) = home() else { return };
    if !home.program().is_at_least("2.1.300") {
        return rethread_testkit::not_in_this_version("it does not tell its process");
    }
    let client = connect(options(home).include_partial_messages(true)).await;
    let session = ask(&client, Script::new("Hello").says("Hi.")).await.session().to_owned();
    let hanging = Script::new("Go").reply(Reply::text("and").hanging()).to_string();
    let mut stream = client.send_message(hanging).await.unwrap();
    loop {
        if let Message::StreamEvent(event) = stream.next_message().await.unwrap().unwrap()
            && event.text().is_some()
        {
            break;
        }
    }
    let process = client.server_info().unwrap()["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &process]).status().unwrap().success());
    let mut last = None;
    while let Some(message) = stream.next_message().await {
        last = Some(message);
    }
    let killed = Ending::Exited(128 + 9);
    assert!(matches!(&last, Some(Err(Error::Ended { ending, .. })) if *ending == killed), "{last:?}");
    let resumed = connect(options(home).resume(session.as_str())).await;
    let heard = ask(&resumed, Script::new("Again").says("still here")).await;
    assert_eq!((heard.text(), heard.session()), ("still here", session.as_str()));
}

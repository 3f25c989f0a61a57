//! Resume, continue, fork and resume-at, as the transcripts show them.

use rethread_claude::{ClaudeAgentOptionsBuilder, Prompt};
use rethread_testkit::{Prompt as Script, Reply};
use uuid::Uuid;

use crate::kit::{Heard, ask, connect, options, own_home};

/// Runs one turn in a process of its own, and returns what was heard.
async fn turn(options: ClaudeAgentOptionsBuilder, text: &str) -> Heard {
    let mut client = connect(options).await;
    let heard = ask(&client, Script::new(text).says(format!("answer to {text}"))).await;
    client.close().await.unwrap();
    heard
}

#[tokio::test]
async fn a_session_goes_on_where_it_is_resumed_continued_and_forked() {
    let Some(home) = own_home() else { return };
    let id = Uuid::new_v4().to_string();
    let first = turn(options(&home).session_id(&id).session_name("the-first"), "one").await;
    assert_eq!(first.session(), id);
    assert_eq!(turn(options(&home).resume(&id), "two").await.session(), id);
    let by_name = if home.program().is_at_least("2.1.200") { "the-first" } else { &id };
    assert_eq!(turn(options(&home).resume(by_name), "three").await.session(), id);
    let again = options(&home);
    // An older one goes on in a session of a new id.
    let again = match home.program().is_at_least("2.1.200") {
        true => again.continue_conversation(true),
        false => again.resume(&id),
    };
    assert_eq!(turn(again, "four").await.session(), id);
    let before = std::fs::read_to_string(home.transcript(&id)).unwrap();
    let forked = turn(options(&home).resume(&id).fork_session(true), "five").await;
    assert_ne!(forked.session(), id);
    let fork = std::fs::read_to_string(home.transcript(forked.session())).unwrap();
    for text in ["one", "two", "three", "four", "five"] {
        assert!(fork.contains(&format!("answer to {text}")), "{text}");
    }
    assert_eq!(
        before,
        std::fs::read_to_string(home.transcript(&id)).unwrap(),
        "a fork leaves its parent alone"
    );
}

#[tokio::test]
async fn a_session_resumed_at_a_message_has_forgotten_what_came_after() {
    let Some(home) = own_home() else { return };
    let id = Uuid::new_v4().to_string();
    let client = connect(options(&home).session_id(&id)).await;
    let first = ask(&client, Script::new("one").says("answer to one")).await;
    let second = Prompt::from(Script::new("two").says("answer to two").to_string());
    let second_uuid = second.uuid().to_owned();
    Heard::all(client.send_message(second).await.unwrap()).await;
    drop(client);
    let at = first.messages.iter().rev().find_map(|message| match message {
        rethread_claude::Message::Assistant(message) => message.uuid.clone(),
        _ => None,
    });
    let at = at.unwrap();
    let again = options(&home).resume(&id).resume_session_at(&at);
    let guarded = again.clone().resume_drops_turn(&second_uuid);
    let knows_the_guard = home.program().is_at_least("2.1.300");
    turn(if knows_the_guard { guarded } else { again }, "three").await;
    let last =
        home.api().requests().into_iter().rev().find(|request| request.body.to_string().contains("three"));
    let sent = last.unwrap().body["messages"].to_string();
    assert!(sent.contains("answer to one") && !sent.contains("answer to two"), "{sent}");
    if knows_the_guard {
        let wrong =
            options(&home).resume(&id).resume_session_at(&at).resume_drops_turn(Uuid::new_v4().to_string());
        let mut client = rethread_claude::ClaudeClient::new(wrong.build()).unwrap();
        let refused = match client.connect().await {
            Err(error) => error.to_string(),
            Ok(()) => {
                let mut turn = client.send_message("four").await.unwrap();
                let mut said = String::new();
                while let Some(message) = turn.next_message().await {
                    said.push_str(&format!("{message:?}"));
                }
                said
            }
        };
        assert!(refused.contains("drop"), "{refused}");
    }
}

#[tokio::test]
async fn a_session_without_persistence_leaves_no_transcript() {
    let Some(home) = own_home() else { return };
    turn(options(&home).no_session_persistence(true), "gone").await;
    let left = std::fs::read_dir(home.config().join("projects")).into_iter().flatten().flatten();
    let transcripts: Vec<_> = left
        .flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten())
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    assert!(transcripts.is_empty(), "{transcripts:?}");
}

#[tokio::test]
async fn a_session_whose_host_left_in_the_middle_can_be_resumed() {
    let Some(home) = own_home() else { return };
    let id = Uuid::new_v4().to_string();
    let client = connect(options(&home).session_id(&id).include_partial_messages(true)).await;
    ask(&client, Script::new("one").says("answer to one")).await;
    let hanging = Script::new("two").reply(Reply::text("half an").hanging()).to_string();
    let mut hanging = client.send_message(hanging).await.unwrap();
    while let Some(message) = hanging.next_message().await {
        if matches!(message.unwrap(), rethread_claude::Message::StreamEvent(event) if event.text().is_some())
        {
            break;
        }
    }
    drop(client);
    // The stream of a client that is gone ends, too.
    while hanging.next_message().await.is_some() {}
    assert_eq!(turn(options(&home).resume(&id), "three").await.session(), id);
}

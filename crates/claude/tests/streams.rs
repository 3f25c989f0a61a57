//! Who gets what the agent says, whatever those who asked do meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rethread_claude::transport::Ending;
use rethread_claude::{
    ClaudeAgentOptions, ClaudeClient, Error, Message, MessageStream, PermissionResult, Prompt,
    ResponseStream, query_with,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::by_hand::{ByHand, Hand, PANIC, connect, join, soon, welcome};

/// After how many refusals in a row, with a turn for everybody else after each, nothing moves any more.
const STUCK: usize = 100;

/// Returns what becomes of something that is tried once, and dropped.
async fn once<T>(what: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::ZERO, what).await.ok()
}

async fn rest(mut stream: ResponseStream) -> Vec<Result<Message, Error>> {
    let mut all = Vec::new();
    while let Some(message) = soon(stream.next_message()).await {
        all.push(message);
    }
    all
}

fn text(text: &str) -> String {
    json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } }).to_string()
}

/// Says that prompts are known by their names, so that none is held back.
async fn names_prompts(hand: &mut Hand) {
    let known = json!({ "type": "command_lifecycle", "command_uuid": "none", "state": "queued" });
    hand.says(known.to_string()).await;
}

/// Sends prompts to an agent that does not listen until no more can be sent, and returns how many were.
async fn fill(client: &ClaudeClient) -> usize {
    let long = "x".repeat(4 << 10);
    let (mut sent, mut refused) = (0, 0);
    while refused < STUCK {
        match once(client.send(long.as_str())).await {
            Some(uuid) => (sent, refused) = (sent + usize::from(uuid.is_ok()), 0),
            None => refused += 1,
        }
        tokio::task::yield_now().await;
    }
    sent
}

/// A prompt that waited for room and was given up was never sent, but everybody after it waited for its answer.
#[tokio::test]
async fn a_prompt_that_is_given_up_before_it_is_sent_holds_up_nobody() {
    let (client, mut hand) = connect(ClaudeAgentOptions::builder()).await;
    names_prompts(&mut hand).await;
    let sent = fill(&client).await;
    assert!(once(client.send_message("given up")).await.is_none());
    for _ in 0..sent {
        hand.hears().await;
    }
    let answer = soon(client.send_message("speak")).await.unwrap();
    let prompt = hand.hears().await;
    assert_eq!(prompt["message"]["content"], "speak");
    hand.ends(&prompt).await;
    assert!(matches!(rest(answer).await[..], [Ok(Message::Result(_))]));
}

/// A request waited without end to be sent to an agent that does not listen; only its answer had a limit.
#[tokio::test]
async fn a_request_that_cannot_be_sent_times_out_like_any_other() {
    let limit = Duration::from_millis(50);
    let (client, _hand) = connect(ClaudeAgentOptions::builder().control_timeout(limit)).await;
    fill(&client).await;
    let asked = soon(client.interrupt()).await;
    assert!(matches!(asked, Err(Error::TimedOut { request: "interrupt", .. })), "{asked:?}");
}

/// Who was about to send something was told that the client is not connected, and not how the CLI had ended.
#[tokio::test]
async fn a_prompt_that_comes_too_late_is_told_how_the_agent_ended() {
    let (client, hand) = connect(ClaudeAgentOptions::builder()).await;
    fill(&client).await;
    let late = async { (client.send_message("late").await.map(drop), client.send("late").await.map(drop)) };
    let leaves = async {
        tokio::task::yield_now().await;
        hand.leaves();
    };
    let (late, ()) = soon(async { tokio::join!(late, leaves) }).await;
    assert!(matches!(late, (Err(Error::Ended { .. }), Err(Error::Ended { .. }))), "{late:?}");
}

/// Tells when it is dropped.
struct Told(Option<oneshot::Sender<()>>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

/// The reader waited for room that nobody would ever make, and the callbacks with it.
#[tokio::test]
async fn messages_that_nobody_reads_do_not_outlive_the_client() {
    let (told, dropped) = oneshot::channel();
    let told = Mutex::new(Some(Told(Some(told))));
    let is_asked = Arc::new(Notify::new());
    let asked = Arc::clone(&is_asked);
    let options = ClaudeAgentOptions::builder().max_waiting_bytes(4096).can_use_tool(move |_| {
        let told = told.lock().unwrap().take();
        asked.notify_one();
        async move {
            std::future::pending::<()>().await;
            drop(told);
            PermissionResult::allow()
        }
    });
    let (client, mut hand) = connect(options).await;
    let request = json!({ "subtype": "can_use_tool", "tool_name": "Write", "input": {} });
    let request = json!({ "type": "control_request", "request_id": "q", "request": request });
    hand.says(request.to_string()).await;
    soon(is_asked.notified()).await;
    let mut refused = 0;
    while refused < STUCK {
        refused = if once(hand.says(text(&"x".repeat(1000)))).await.is_some() { 0 } else { refused + 1 };
        tokio::task::yield_now().await;
    }
    drop(client);
    soon(dropped).await.unwrap();
}

/// Answers were kept without end for an agent that asked without end and did not listen.
#[tokio::test]
async fn an_agent_that_asks_and_does_not_listen_has_to_wait() {
    let (_client, mut hand) = connect(ClaudeAgentOptions::builder()).await;
    let line =
        json!({ "type": "control_request", "request_id": "q", "request": { "subtype": "sing ".repeat(1000) } }).to_string();
    let (mut asked, mut refused) = (0, 0);
    while refused < STUCK && asked < 10_000 {
        match once(hand.says(&line)).await {
            Some(()) => (asked, refused) = (asked + 1, 0),
            None => refused += 1,
        }
        tokio::task::yield_now().await;
    }
    assert!(asked < 2000, "{asked} questions were taken");
    // One that is cut off in the middle spoils the next, but so many wait for sure.
    for _ in 0..800 {
        assert_eq!(hand.answer().await["subtype"], "error");
    }
}

/// Only the stream that had asked last was ever woken.
#[tokio::test]
async fn two_streams_of_messages_share_what_is_said() {
    let (client, mut hand) = connect(ClaudeAgentOptions::builder()).await;
    // In tasks of their own, since one task is woken for both.
    let next = |mut stream: MessageStream| tokio::spawn(async move { stream.next_message().await });
    let (one, other) = (next(client.messages().unwrap()), next(client.messages().unwrap()));
    tokio::task::yield_now().await;
    hand.says(text("a")).await;
    hand.says(text("b")).await;
    let (one, other) = soon(async { (one.await.unwrap(), other.await.unwrap()) }).await;
    let heard = [one, other].map(|message| match message.unwrap().unwrap() {
        Message::Assistant(message) => message.text(),
        other => panic!("{other:?}"),
    });
    assert_eq!(heard.iter().collect::<std::collections::BTreeSet<_>>().len(), 2, "{heard:?}");
}

#[tokio::test]
async fn there_may_be_no_limit_to_what_waits() {
    let (client, mut hand) = connect(ClaudeAgentOptions::builder().max_waiting_bytes(usize::MAX)).await;
    let answered = async {
        let request = hand.hears().await;
        hand.grants(&request).await;
    };
    let (interrupted, ()) = soon(async { tokio::join!(client.interrupt(), answered) }).await;
    interrupted.unwrap();
}

#[tokio::test]
async fn a_transport_that_panics_ends_every_stream() {
    let (client, mut hand) = connect(ClaudeAgentOptions::builder()).await;
    let answer = client.send_message("speak").await.unwrap();
    hand.says(PANIC).await;
    let ended = rest(answer).await;
    assert!(matches!(ended[..], [Err(Error::Ended { ending: Ending::Unknown, .. })]), "{ended:?}");
}

/// Turns were known by their prompts' UUIDs: the second stream took from the first, and took it along when it left.
#[tokio::test]
async fn two_streams_of_the_same_prompt_are_two() {
    let (client, mut hand) = connect(ClaudeAgentOptions::builder()).await;
    names_prompts(&mut hand).await;
    let mut loose = client.messages().unwrap();
    soon(loose.next_message()).await.unwrap().unwrap();
    let same = || Prompt::from("speak").with_uuid("0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22");
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(client.send_message(same()).await.unwrap());
    }
    drop(streams.pop());
    let prompt = hand.hears().await;
    hand.says(text("once")).await;
    hand.ends(&prompt).await;
    let second = rest(streams.pop().unwrap()).await;
    let first = rest(streams.pop().unwrap()).await;
    assert!(matches!(first[..], [Ok(Message::Assistant(_)), Ok(Message::Result(_))]), "{first:?}");
    assert!(matches!(second[..], [Ok(Message::Result(_))]), "{second:?}");
}

/// `connect` took a CLI that had been told to end for one that could be spoken to.
#[tokio::test]
async fn a_client_whose_close_was_given_up_connects_anew() {
    let (transport, mut hands) = ByHand::new();
    let mut client = ClaudeClient::with_transport(ClaudeAgentOptions::default(), transport).unwrap();
    for round in 0..2 {
        let mut hand = join(&mut client, &mut hands).await;
        match round {
            0 => assert!(once(client.close()).await.is_none()),
            _ => client.close_input().unwrap(),
        }
        hand.hears_the_end().await;
        assert!(matches!(client.send_message("late").await, Err(Error::NotConnected)));
        hand.leaves();
    }
    let mut hand = join(&mut client, &mut hands).await;
    let answer = client.send_message("speak").await.unwrap();
    let prompt = hand.hears().await;
    hand.ends(&prompt).await;
    assert_eq!(rest(answer).await.len(), 1);
}

#[tokio::test]
async fn one_thing_can_be_asked_over_any_transport() {
    let (transport, mut hands) = ByHand::new();
    let agent = async {
        let mut hand = welcome(&mut hands).await;
        let prompt = hand.hears().await;
        hand.says(text("Hi.")).await;
        hand.ends(&prompt).await;
        hand.hears_the_end().await;
        hand.leaves();
    };
    let asked = async {
        let mut answer = query_with("Hello", ClaudeAgentOptions::default(), transport).await.unwrap();
        let mut all = Vec::new();
        while let Some(message) = answer.next_message().await {
            all.push(message.unwrap());
        }
        all
    };
    let (heard, ()) = soon(async { tokio::join!(asked, agent) }).await;
    assert!(matches!(heard[..], [Message::Assistant(_), Message::Result(_)]), "{heard:?}");
}

/// An answer that could not be read was an error of whoever read messages, and who had asked waited to the end.
#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_to_who_asked() {
    let (client, mut hand) = connect(ClaudeAgentOptions::builder()).await;
    let answered = async {
        let request = hand.hears().await;
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let id = &request["request_id"];
        hand.says(format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id},"response":{deep}}}}}"#
        ))
        .await;
    };
    let (settings, ()): (Result<Value, _>, ()) =
        soon(async { tokio::join!(client.settings(), answered) }).await;
    assert!(matches!(settings, Err(Error::BadFrame { .. })), "{settings:?}");
}

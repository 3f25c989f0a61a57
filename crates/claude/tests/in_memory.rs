//! An agent in this very process, behind the transport trait: what waits, who is told, what is left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rethread_claude::transport::{Agent, Connection, Ending, Transport};
use rethread_claude::{ClaudeAgentOptions, ClaudeClient, Error, Launch, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::watch;

/// How much may wait in these tests.
const LIMIT: usize = 64 << 10;

/// An agent that says a given number of frames of a kibibyte before it answers anything but the first request.
#[derive(Debug)]
struct Talkative {
    frames: usize,
    said: Arc<AtomicUsize>,
    is_over: watch::Sender<bool>,
}

#[async_trait::async_trait]
impl Transport for Talkative {
    async fn open(&self, _: &Launch) -> Result<Connection> {
        let (ours, theirs) = tokio::io::duplex(16 << 10);
        let (frames, said, is_over) = (self.frames, Arc::clone(&self.said), self.is_over.clone());
        tokio::spawn(async move {
            let (input, mut output) = tokio::io::split(theirs);
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let line: Value = serde_json::from_str(&line).unwrap();
                if line["request"]["subtype"] != "initialize" {
                    for _ in 0..frames {
                        let text = json!({ "type": "text", "text": "x".repeat(1000) });
                        say(
                            &mut output,
                            json!({ "type": "assistant", "message": { "content": [text] } }),
                            &said,
                        )
                        .await;
                    }
                }
                let answer = match line["type"].as_str() {
                    Some("user") => {
                        json!({ "type": "result", "subtype": "success", "user_message_uuids": [line["uuid"]] })
                    }
                    _ => {
                        let response =
                            json!({ "subtype": "success", "request_id": line["request_id"], "response": {} });
                        json!({ "type": "control_response", "response": response })
                    }
                };
                say(&mut output, answer, &said).await;
            }
            is_over.send_replace(true);
        });
        let (output, input) = tokio::io::split(ours);
        Ok(Connection::new(output, input, Life(self.is_over.subscribe())))
    }
}

async fn say(output: &mut (impl AsyncWrite + Unpin), line: Value, said: &AtomicUsize) {
    let line = format!("{line}\n");
    // Who listens may leave at any time.
    if output.write_all(line.as_bytes()).await.is_ok() {
        said.fetch_add(line.len(), Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Life(watch::Receiver<bool>);

#[async_trait::async_trait]
impl Agent for Life {
    async fn ended(&mut self) -> Ending {
        drop(self.0.wait_for(|is_over| *is_over).await);
        Ending::Exited(0)
    }

    fn end(&mut self) {}
}

async fn connect(frames: usize) -> (ClaudeClient, Arc<AtomicUsize>) {
    let said = Arc::<AtomicUsize>::default();
    let agent = Talkative { frames, said: Arc::clone(&said), is_over: watch::Sender::new(false) };
    let options = ClaudeAgentOptions::builder().cwd("/no/folder").max_waiting_bytes(LIMIT);
    let mut client = ClaudeClient::with_transport(options.build(), agent).unwrap();
    client.connect().await.unwrap();
    (client, said)
}

/// Waits until nothing more is said.
async fn settled(said: &AtomicUsize) -> usize {
    let mut before = usize::MAX;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = said.load(Ordering::Relaxed);
        if now == before {
            return now;
        }
        before = now;
    }
}

#[tokio::test]
async fn an_agent_that_nobody_listens_to_has_to_wait() {
    let (client, said) = connect(10_000).await;
    let mut answer = client.send_message("speak").await.unwrap();
    let waiting = settled(&said).await;
    // What may wait, a chunk that was read at once, and the pipe.
    assert!(waiting < LIMIT + (64 << 10) + (16 << 10) + 4096, "{waiting} bytes were said to nobody");
    let mut heard = 0;
    while answer.next_message().await.transpose().unwrap().is_some() {
        heard += 1;
    }
    assert_eq!(heard, 10_001);
}

#[tokio::test]
async fn an_answer_is_reached_behind_messages_that_nobody_has_read() {
    let (client, _) = connect(5 * LIMIT / 1000).await;
    client.interrupt().await.unwrap();
    let (client, _) = connect(50 * LIMIT / 1000).await;
    let asked = client.interrupt().await;
    assert!(matches!(asked, Err(Error::Congested { request: "interrupt", .. })), "{asked:?}");
}

#[tokio::test]
async fn requests_and_prompts_that_are_given_up_leave_nothing_behind() {
    let (client, _) = connect(3).await;
    for _ in 0..200 {
        // Polled once, and dropped.
        drop(tokio::time::timeout(Duration::ZERO, client.interrupt()).await);
        drop(tokio::time::timeout(Duration::ZERO, client.send_message("never mind")).await);
    }
    let mut answer = client.send_message("speak").await.unwrap();
    let mut heard = 0;
    while answer.next_message().await.transpose().unwrap().is_some() {
        heard += 1;
    }
    assert!(heard >= 4, "{heard}");
    client.interrupt().await.unwrap();
}

#[tokio::test]
async fn a_client_that_is_dropped_ends_its_streams() {
    let (client, _) = connect(10).await;
    let mut answer = client.send_message("speak").await.unwrap();
    let mut rest = client.messages().unwrap();
    drop(client);
    while answer.next_message().await.is_some() {}
    while rest.next_message().await.is_some() {}
}

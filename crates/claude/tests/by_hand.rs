//! An agent whose every word a test chooses, in this very process.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rethread_claude::transport::{Agent, Connection, Ending, Transport};
use rethread_claude::{ClaudeAgentOptionsBuilder, ClaudeClient, Launch, Result};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadBuf, ReadHalf,
    WriteHalf,
};
use tokio::sync::{mpsc, watch};

/// After what time something that should come will not, on a machine that is busy with other things.
const LONG: Duration = Duration::from_secs(300);

/// What makes the transport panic.
pub(crate) const PANIC: &str = "panic, please";

/// How much the pipes hold.
const PIPE: usize = 16 << 10;

/// Fails if something takes for ever.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what).await.unwrap_or_else(|_| panic!("it hangs"))
}

/// What a test speaks through.
#[derive(Debug)]
pub(crate) struct Hand {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    over: watch::Sender<bool>,
}

impl Hand {
    /// Waits for the client's next line.
    pub(crate) async fn hears(&mut self) -> Value {
        let line = soon(self.input.next_line()).await.unwrap();
        serde_json::from_str(&line.unwrap_or_else(|| panic!("nothing more is said"))).unwrap()
    }

    /// Waits until the client says no more.
    pub(crate) async fn hears_the_end(&mut self) {
        while soon(self.input.next_line()).await.unwrap().is_some() {}
    }

    /// Says a line, whatever it is.
    pub(crate) async fn says(&mut self, line: impl AsRef<[u8]>) {
        let line = [line.as_ref(), b"\n"].concat();
        soon(self.output.write_all(&line)).await.unwrap();
    }

    /// Asks the client something, and returns its answer.
    pub(crate) async fn asks(&mut self, request: impl std::fmt::Display) -> Value {
        let line = format!(r#"{{"type":"control_request","request_id":"q","request":{request}}}"#);
        self.says(line).await;
        self.answer().await
    }

    /// Waits for an answer to what was asked.
    pub(crate) async fn answer(&mut self) -> Value {
        let answer = self.hears().await;
        assert_eq!(
            (&answer["type"], &answer["response"]["request_id"]),
            (&json!("control_response"), &json!("q"))
        );
        answer["response"].clone()
    }

    /// Answers a request of the client's.
    pub(crate) async fn grants(&mut self, request: &Value) {
        let response = json!({ "subtype": "success", "request_id": request["request_id"], "response": {} });
        self.says(json!({ "type": "control_response", "response": response }).to_string()).await;
    }

    /// Refuses a request of the client's.
    pub(crate) async fn refuses(&mut self, request: &Value, why: &str) {
        let response = json!({ "subtype": "error", "request_id": request["request_id"], "error": why });
        self.says(json!({ "type": "control_response", "response": response }).to_string()).await;
    }

    /// Ends the turn of a prompt.
    pub(crate) async fn ends(&mut self, prompt: &Value) {
        let result =
            json!({ "type": "result", "subtype": "success", "user_message_uuids": [prompt["uuid"]] });
        self.says(result.to_string()).await;
    }

    /// Ends as a process would.
    pub(crate) fn leaves(self) {
        self.over.send_replace(true);
    }
}

/// Gives each connection to a test.
#[derive(Debug)]
pub(crate) struct ByHand(mpsc::UnboundedSender<Hand>);

impl ByHand {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Hand>) {
        let (sender, hands) = mpsc::unbounded_channel();
        (Self(sender), hands)
    }
}

#[async_trait::async_trait]
impl Transport for ByHand {
    async fn open(&self, _: &Launch) -> Result<Connection> {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (input, output) = tokio::io::split(theirs);
        let over = watch::Sender::new(false);
        let life = Life(over.clone());
        self.0.send(Hand { input: BufReader::new(input).lines(), output, over }).unwrap();
        let (output, input) = tokio::io::split(ours);
        Ok(Connection::new(Fragile(output), input, life))
    }
}

#[derive(Debug)]
struct Life(watch::Sender<bool>);

#[async_trait::async_trait]
impl Agent for Life {
    async fn ended(&mut self) -> Ending {
        drop(self.0.subscribe().wait_for(|is_over| *is_over).await);
        Ending::Exited(0)
    }

    fn end(&mut self) {
        self.0.send_replace(true);
    }
}

/// Returns a client that is connected, and the hand that it talks to.
pub(crate) async fn connect(options: ClaudeAgentOptionsBuilder) -> (ClaudeClient, Hand) {
    let (transport, mut hands) = ByHand::new();
    let mut client = ClaudeClient::with_transport(options.build(), transport).unwrap();
    let hand = join(&mut client, &mut hands).await;
    (client, hand)
}

/// Connects a client, and returns the new hand that it talks to.
pub(crate) async fn join(client: &mut ClaudeClient, hands: &mut mpsc::UnboundedReceiver<Hand>) -> Hand {
    let connected = async { client.connect().await.unwrap() };
    let (hand, ()) = soon(async { tokio::join!(welcome(hands), connected) }).await;
    hand
}

/// Waits for a client that connects, and lets it.
pub(crate) async fn welcome(hands: &mut mpsc::UnboundedReceiver<Hand>) -> Hand {
    let mut hand = hands.recv().await.unwrap();
    let request = hand.hears().await;
    hand.grants(&request).await;
    hand
}

/// What the client hears, through a transport with a flaw.
struct Fragile(ReadHalf<DuplexStream>);

impl AsyncRead for Fragile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(context, buffer);
        assert!(!buffer.filled().starts_with(PANIC.as_bytes()), "as planned");
        read
    }
}

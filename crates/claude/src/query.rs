//! One prompt, one answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::client::{ClaudeClient, MessageStream, ResponseStream};
use crate::error::{Error, Result};
use crate::message::Message;
use crate::options::ClaudeAgentOptions;
use crate::prompt::Prompt;
use crate::transport::Transport;

/// Asks one thing, and returns everything that is said until the CLI has ended.
///
/// ```no_run
/// use rethread_claude::prelude::*;
///
/// # async fn run() -> rethread_claude::Result<()> {
/// let mut answer = query("What does this project do?", ClaudeAgentOptions::default()).await?;
/// while let Some(message) = answer.next_message().await {
///     if let Message::Result(ResultMessage::Success { result, .. }) = message? {
///         println!("{result}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub async fn query(prompt: impl Into<Prompt>, options: ClaudeAgentOptions) -> Result<QueryStream> {
    ask(ClaudeClient::new(options)?, prompt.into()).await
}

/// Asks one thing of an agent that is reached in another way, and returns everything that is said until it has ended.
pub async fn query_with(
    prompt: impl Into<Prompt>,
    options: ClaudeAgentOptions,
    transport: impl Transport + 'static,
) -> Result<QueryStream> {
    ask(ClaudeClient::with_transport(options, transport)?, prompt.into()).await
}

async fn ask(mut client: ClaudeClient, prompt: Prompt) -> Result<QueryStream> {
    client.connect().await?;
    let rest = client.messages()?;
    let turn = client.send_message(prompt).await?;
    Ok(QueryStream { client, turn: Some(turn), rest, is_closed: false })
}

/// Everything that is said in answer to one prompt, until the CLI has ended.
///
/// Dropping it ends the CLI.
#[derive(Debug)]
#[must_use = "the answer is only there for who reads it"]
pub struct QueryStream {
    client: ClaudeClient,
    turn: Option<ResponseStream>,
    rest: MessageStream,
    is_closed: bool,
}

impl QueryStream {
    /// Waits for the next message.
    pub async fn next_message(&mut self) -> Option<Result<Message>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns the client, to interrupt it for example.
    pub fn client(&self) -> &ClaudeClient {
        &self.client
    }
}

impl Stream for QueryStream {
    type Item = Result<Message>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(turn) = &mut self.turn {
            match Pin::new(turn).poll_next(context) {
                Poll::Ready(None) => {
                    self.turn = None;
                }
                other => return other,
            }
        }
        let next = Pin::new(&mut self.rest).poll_next(context);
        // A subagent in the background may still have to ask for something.
        if !self.is_closed && next.is_pending() && !self.rest.is_at_work() {
            self.is_closed = true;
            drop(self.client.close_input());
        }
        match next {
            // The result has said already what went wrong; the exit code says no more.
            Poll::Ready(Some(Err(Error::Ended { .. }))) => Poll::Ready(None),
            other => other,
        }
    }
}

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

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = Pin::new(&mut this.rest).poll_next(context);
        // The result has said already what went wrong, or else the turn will; the exit code says no more.
        let is_end = matches!(next, Poll::Ready(None | Some(Err(Error::Ended { .. }))));
        if let Some(turn) = &mut this.turn {
            // What is said before the prompt's turn begins comes first.
            if next.is_ready() && !is_end {
                return next;
            }
            match Pin::new(turn).poll_next(context) {
                Poll::Ready(None) => this.turn = None,
                other => return other,
            }
        }
        // A subagent in the background may still have to ask for something.
        if !this.is_closed && next.is_pending() && !this.rest.is_at_work() {
            this.is_closed = true;
            drop(this.client.close_input());
        }
        if is_end { Poll::Ready(None) } else { next }
    }
}

//! A conversation with the agent, over as many turns as it takes.

mod asker;
mod board;
mod caretaker;
mod complaints;
mod controls;
mod outbox;
mod reader;
mod requests;
mod response_stream;
mod turns;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::options::{ClaudeAgentOptions, initialize};
use crate::prompt::Prompt;
use crate::transport::{Ending, ProcessTransport, Transport};

use asker::Asker;
use board::Board;
use caretaker::Caretaker;
use complaints::Complaints;
use outbox::Outbox;
use reader::{LAST_WORDS, Reader};
use requests::Requests;

pub use controls::{ContextUsage, Interrupted, RewindResult};
pub use response_stream::{MessageStream, ResponseStream};

/// Drives one Claude Code process: prompts, their answers, and everything that can be asked of a session meanwhile.
///
/// All calls but [`connect`](Self::connect) and [`close`](Self::close) take `&self`, so that a client in an `Arc` can be
/// used from many tasks. Dropping the client ends the process, and everything it started.
///
/// ```no_run
/// use rethread_claude::prelude::*;
///
/// # async fn run() -> rethread_claude::Result<()> {
/// let mut client = ClaudeClient::new(ClaudeAgentOptions::builder().max_turns(10).build())?;
/// client.connect().await?;
/// let mut answer = client.send_message("List the files in src/").await?;
/// while let Some(message) = answer.next_message().await {
///     if let Message::Assistant(message) = message? {
///         print!("{}", message.text());
///     }
/// }
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ClaudeClient {
    options: Arc<ClaudeAgentOptions>,
    transport: Arc<dyn Transport>,
    live: Option<Live>,
}

/// What there is while the client is connected.
#[derive(Debug)]
struct Live {
    board: Arc<Board>,
    outbox: Outbox,
    caretaker: Caretaker,
    asker: Asker,
    requests: Requests,
    server_info: Value,
}

impl ClaudeClient {
    /// Returns a client that will run the CLI as a process. Options that contradict each other are refused.
    pub fn new(options: ClaudeAgentOptions) -> Result<Self> {
        let grace = options.close_timeout.min(Duration::from_secs(5));
        Self::with_transport(options, ProcessTransport::with_grace(grace))
    }

    /// Returns a client that reaches its agent in another way.
    pub fn with_transport(options: ClaudeAgentOptions, transport: impl Transport + 'static) -> Result<Self> {
        options.check()?;
        Ok(Self { options: Arc::new(options), transport: Arc::new(transport), live: None })
    }

    /// Starts the CLI, and waits until it is ready. Does nothing if it runs already and was not told to end.
    pub async fn connect(&mut self) -> Result<()> {
        if self.speaking().is_ok() {
            return Ok(());
        }
        // One that was told to end, and did not yet, may still write to the same session.
        self.close().await?;
        let options = &self.options;
        let launch = options.launch(options.cli_path.as_deref().unwrap_or(Path::new("")));
        let mut live = Live::begin(options, self.transport.open(&launch).await?);
        live.server_info =
            live.asker.ask("initialize", initialize(options), options.initialize_timeout).await?;
        self.live = Some(live);
        Ok(())
    }

    /// Sends a prompt, and returns the messages that answer it, up to its result.
    ///
    /// While another prompt is being answered, this one waits for its turn; Claude Code may also take it up in the middle of
    /// that turn, and then both end with the same result. What is said meanwhile in answer to nobody's prompt, such as a
    /// report of a subagent in the background, comes with the stream too, unless [`messages`](Self::messages) are read: only
    /// the last result of a stream is its own.
    pub async fn send_message(&self, prompt: impl Into<Prompt>) -> Result<ResponseStream> {
        let (live, prompt) = (self.speaking()?, prompt.into());
        // Nothing is awaited after the turn is open: a turn whose prompt was never sent would never end.
        let slot = live.outbox.slot().await;
        let (turn, now) = live.board.open(prompt.uuid(), prompt.to_line());
        let stream = ResponseStream::new(&live.board, turn, prompt.uuid());
        match now.map(|line| live.outbox.send_in(slot, &line)) {
            Some(Err(_)) => Err(live.lost().await),
            _ => Ok(stream),
        }
    }

    /// Sends a prompt, and returns its UUID. Its answer comes through [`messages`](Self::messages).
    pub async fn send(&self, prompt: impl Into<Prompt>) -> Result<String> {
        let (live, prompt) = (self.speaking()?, prompt.into());
        let slot = live.outbox.slot().await;
        live.board.note(prompt.uuid());
        match live.outbox.send_in(slot, &prompt.to_line()) {
            Ok(()) => Ok(prompt.uuid().to_owned()),
            Err(_) => Err(live.lost().await),
        }
    }

    /// Returns everything that the CLI says outside of the turns of [`send_message`](Self::send_message), to its end.
    ///
    /// Subagents in the background report here, and so do turns that were begun with [`send`](Self::send).
    pub fn messages(&self) -> Result<MessageStream> {
        Ok(MessageStream::new(&self.live()?.board))
    }

    /// Returns what the CLI said about itself when it started: its commands, agents, models, version.
    pub fn server_info(&self) -> Result<&Value> {
        Ok(&self.live()?.server_info)
    }

    /// Tells the CLI that no more prompts will come. It ends when it is done with those it has.
    pub fn close_input(&self) -> Result<()> {
        self.live()?.outbox.close();
        Ok(())
    }

    /// Waits for the CLI's end, and returns how it ended.
    pub async fn ended(&self) -> Result<Ending> {
        let mut caretaker = self.live()?.caretaker.clone();
        Ok(caretaker.ended().await)
    }

    /// Lets the CLI end, and makes it end after [`close_timeout`](ClaudeAgentOptions::close_timeout). Everything that it
    /// started has ended, too, when this returns.
    pub async fn close(&mut self) -> Result<()> {
        let Some(live) = &self.live else { return Ok(()) };
        live.outbox.close();
        live.board.close();
        let mut caretaker = live.caretaker.clone();
        caretaker.ended_within(self.options.close_timeout).await;
        self.live = None;
        Ok(())
    }

    /// Makes a control request that this crate has no call for, and returns its answer.
    ///
    /// `request` is without its `subtype`: `client.control("get_settings", json!({}))`.
    pub async fn control(&self, subtype: &'static str, request: Value) -> Result<Value> {
        let mut request = if request.is_object() { request } else { json!({}) };
        request["subtype"] = json!(subtype);
        self.live()?.asker.ask(subtype, request, self.options.control_timeout).await
    }

    /// Makes a control request, and reads its answer.
    async fn ask<T: DeserializeOwned>(&self, subtype: &'static str, request: Value) -> Result<T> {
        let answer = self.control(subtype, request).await?;
        serde_json::from_value(answer)
            .map_err(|source| Error::BadAnswer { request: subtype, source: Arc::new(source) })
    }

    fn live(&self) -> Result<&Live> {
        self.live.as_ref().ok_or(Error::NotConnected)
    }

    /// Returns what there is while the CLI lives, and how it ended otherwise.
    fn speaking(&self) -> Result<&Live> {
        let live = self.live()?;
        match live.board.end() {
            Some(end) => Err(end),
            None if live.outbox.is_closed() => Err(Error::NotConnected),
            None => Ok(live),
        }
    }
}

impl Live {
    fn begin(options: &Arc<ClaudeAgentOptions>, connection: crate::transport::Connection) -> Self {
        let board = Arc::new(Board::new(options.max_waiting_bytes));
        let outbox = Outbox::new(connection.input);
        let caretaker = Caretaker::new(connection.agent);
        let complaints = Complaints::new(options.stderr.clone());
        let complaining = connection.complaints.map(|input| tokio::spawn(complaints.clone().read(input)));
        let asker = Asker::new(Arc::clone(&board), outbox.clone(), complaints.clone());
        let requests = Requests::new(Arc::clone(options), outbox.clone(), asker.clone());
        for (name, server) in &options.mcp_servers {
            requests.serve(name, server);
        }
        let reader = Reader {
            board: Arc::clone(&board),
            outbox: outbox.clone(),
            requests: requests.clone(),
            caretaker: caretaker.clone(),
            complaints,
            complaining,
            close_timeout: options.close_timeout,
            max_frame_bytes: options.max_frame_bytes,
        };
        tokio::spawn(reader.read(connection.output));
        Self { board, outbox, caretaker, asker, requests, server_info: Value::Null }
    }

    /// Returns why the CLI does not listen any more: it has ended, most likely, and in a moment it is known how.
    async fn lost(&self) -> Error {
        let ended = tokio::time::timeout(LAST_WORDS, self.board.ended()).await;
        ended.unwrap_or(Error::NotConnected)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.board.leave_all();
        self.outbox.close();
        self.caretaker.end();
    }
}

//! How a client reaches the agent: a process by default, anything that speaks the protocol otherwise.

mod process;

use std::fmt::Debug;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::Result;
use crate::options::Launch;

pub use process::ProcessTransport;

/// Starts an agent that speaks Claude Code's protocol: one JSON object a line, both ways.
///
/// # Contract
///
/// * Each call of [`open`](Transport::open) gives a new agent, which knows nothing of those before it.
/// * When the [`Connection`] is dropped, the agent ends, and so does everything it started.
///
/// ```
/// use rethread_claude::transport::{Agent, Connection, Ending, Transport};
/// use rethread_claude::{Launch, Result};
///
/// /// An agent in this very process.
/// #[derive(Debug)]
/// struct Here;
///
/// #[async_trait::async_trait]
/// impl Transport for Here {
///     async fn open(&self, _: &Launch) -> Result<Connection> {
///         let (ours, theirs) = tokio::io::duplex(1 << 16);
///         tokio::spawn(async move { /* read prompts from `theirs`, write messages to it */ drop(theirs) });
///         let (output, input) = tokio::io::split(ours);
///         Ok(Connection::new(output, input, Gone))
///     }
/// }
///
/// #[derive(Debug)]
/// struct Gone;
///
/// #[async_trait::async_trait]
/// impl Agent for Gone {
///     async fn ended(&mut self) -> Ending {
///         Ending::Exited(0)
///     }
///     fn end(&mut self) {}
/// }
/// ```
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Starts the agent.
    async fn open(&self, launch: &Launch) -> Result<Connection>;
}

/// A running agent's life.
#[async_trait]
pub trait Agent: Debug + Send {
    /// Waits for its end. It may be dropped and called again.
    async fn ended(&mut self) -> Ending;

    /// Has it end soon, gently first and then by force. Returns at once.
    fn end(&mut self);
}

/// What connects a client to a running agent.
pub struct Connection {
    /// What the agent says.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// What it is told.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it complains about, if that comes apart from the rest.
    pub complaints: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Its life.
    pub agent: Box<dyn Agent>,
}

impl Connection {
    /// Returns a connection to an agent that does not complain.
    pub fn new(
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        agent: impl Agent + 'static,
    ) -> Self {
        Self { output: Box::new(output), input: Box::new(input), complaints: None, agent: Box::new(agent) }
    }

    /// Returns the connection with a place to complain.
    pub fn complaining(mut self, complaints: impl AsyncRead + Send + Unpin + 'static) -> Self {
        self.complaints = Some(Box::new(complaints));
        self
    }
}

impl Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// With an exit code; 128 and more for a signal, as a shell tells it.
    Exited(i32),
    /// Nobody knows how, or whether: it let go of its output and was not seen again.
    Unknown,
}

impl Ending {
    pub(crate) fn describe(self) -> String {
        match self {
            Ending::Exited(code) => format!(" with code {code}"),
            Ending::Unknown => String::new(),
        }
    }
}

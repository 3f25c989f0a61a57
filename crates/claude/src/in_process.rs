//! Servers of tools in this very process, reached through the CLI's own pipes.

mod bridge;
mod tools;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;

pub(crate) use bridge::{Bridge, ToCli, Told};
pub use tools::{ToolOutput, ToolServer};

/// A server of tools that runs in this process: a [`ToolServer`], or anything that the `rmcp` crate can serve.
#[derive(Clone)]
pub struct InProcessServer {
    start: Arc<dyn Fn(Duration, ToCli) -> Bridge + Send + Sync>,
    timeout: Duration,
}

impl InProcessServer {
    /// Returns a server that is a handler of the `rmcp` crate's. Each connection gets a clone of it.
    ///
    /// What such a server says of its own accord goes to Claude Code, too: that its tools have changed, or what it wants to
    /// know from the person, which [`on_elicitation`](crate::ClaudeAgentOptions::on_elicitation) answers. A call that
    /// panics, or takes longer than ten minutes, is answered with an error; [`timeout`](Self::timeout) sets another time.
    pub fn new(handler: impl ServerHandler + Clone) -> Self {
        let start = move |limit, to_cli| Bridge::start(handler.clone(), limit, to_cli);
        Self { start: Arc::new(start), timeout: Duration::from_secs(600) }
    }

    /// Gives calls another time than ten minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts it for one connection.
    pub(crate) fn start(&self, to_cli: ToCli) -> Bridge {
        (self.start)(self.timeout, to_cli)
    }
}

impl fmt::Debug for InProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcessServer")
    }
}
